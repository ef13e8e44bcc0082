package service

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// fingerprint hashes what makes two requests the same.
func (t *NewTask) fingerprint(d *xxhash.Digest) uint64 {
	var n [8]byte
	number := func(v int64) {
		binary.LittleEndian.PutUint64(n[:], uint64(v))
		d.Write(n[:])
	}
	text := func(s string) {
		number(int64(len(s)))
		d.WriteString(s)
	}
	d.Reset()
	if len(t.PayloadFingerprint) > 0 {
		number(-1) // no payload is that long
		text(string(t.PayloadFingerprint))
	} else {
		number(int64(len(t.Task.Payload)))
		d.Write(t.Task.Payload)
	}
	number(int64(t.When.Delay))
	number(int64(t.When.At))
	number(int64(t.Task.Visibility))
	number(int64(t.Task.MaxRetries))
	expires := t.Task.Expires
	if t.ExpireAfter != 0 {
		expires = 0 // what became of it, when the task is sent again to another shard
	}
	number(int64(expires))
	number(int64(t.ExpireAfter))
	if t.Slack != 0 || t.Latest != 0 { // as they were asked for: what became of it differs
		text("smoothing")
		number(int64(t.Slack))
		number(int64(t.Latest))
	}
	if t.Task.HandlerTimeout != 0 {
		text("timeout")
		number(int64(t.Task.HandlerTimeout))
	}
	if b := t.Task.Backoff; b != nil {
		number(int64(b.Kind))
		number(int64(b.Base))
		number(int64(b.Max))
		number(int64(b.Jitter))
	}
	for _, a := range t.Task.Attributes {
		text(a.Key)
		text(a.Value)
	}
	if r := t.Task.Traits; r != nil {
		number(int64(r.Priority))
		number(int64(r.FairnessWeight))
		text(r.FairnessKey)
		text(r.RateKey)
		text(r.ConcurrencyKey)
		if r.OrderingKey != "" {
			text("ordering")
			text(r.OrderingKey)
		}
	}
	if k := t.Task.Key; k != nil {
		text("idempotency")
		text(k.Text)
		number(int64(k.Window))
		number(int64(k.OnConflict))
	}
	return d.Sum64()
}

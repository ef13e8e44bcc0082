package pebblestore

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// limits are the rates and permits in memory. Changes of rates are written behind them
// without a sync: the log is one, so a hold that is synced has synced what it took.
// Permits are not written: no other process holds tasks of this directory, so on
// opening it those of the holds are all there are.
type limits struct {
	*base
	mu    sync.Mutex
	table *limit.Table // guarded by mu

	counting sync.Mutex      // taken before the lock of a shard, which is taken before mu
	counted  map[string]bool // guarded by counting: caps of namespaces that all holds have permits of, see countNamespace
}

// What a key of tableLimits is about.
const (
	limitRate   byte = 'r'
	limitPermit byte = 'p' // written by versions of before; removed on opening
)

// write writes what is different.
func (l *limits) write(d *datadir.Dir, changed []limit.Change) error {
	if len(changed) == 0 {
		return nil
	}
	batch := d.DB().NewBatch()
	for _, c := range changed {
		if err := writeRate(batch, c); err != nil {
			return errors.Join(d.ReadError(err), batch.Close())
		}
	}
	return d.CommitNoSync(batch)
}

func writeRate(batch *pebble.Batch, c limit.Change) error {
	key := appendRateKey(nil, c.Key)
	if c.State == nil {
		return batch.Delete(key, nil)
	}
	return batch.Set(key, appendRate(nil, c), nil)
}

// appendRateKey names whose rate it is: the topic, and last the key.
func appendRateKey(b []byte, k store.LimitKey) []byte {
	b = append(appendPrefix(b, 0, tableLimits), limitRate)
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(k.Topic))), k.Topic...)
	return append(b, k.Key...)
}

func decodeRateKey(b []byte) (k store.LimitKey, ok bool) {
	in := input{b: b[prefixLen:]}
	if in.byte() != limitRate {
		return k, false
	}
	if length := in.bytes(2); len(length) == 2 {
		k.Topic = string(in.bytes(uint64(binary.BigEndian.Uint16(length))))
	}
	k.Key = string(in.b)
	return k, !in.short
}

// appendRate appends the stored form of a rate: its kind, its numbers, and the slots
// of a window.
func appendRate(b []byte, c limit.Change) []byte {
	b = append(b, byte(c.State.Kind))
	for _, n := range [...]int64{c.Rests, c.State.Last, c.State.Period, c.State.Count, int64(len(c.State.Used))} {
		b = binary.AppendVarint(b, n)
	}
	for _, u := range c.State.Used {
		b = binary.AppendVarint(b, u.End)
		b = binary.AppendVarint(b, int64(u.Count))
	}
	return b
}

func decodeRate(b []byte, c *limit.Change) bool {
	if len(b) == 0 {
		return false
	}
	c.State = &limit.State{Kind: store.RateKind(b[0])}
	b = b[1:]
	good := true
	next := func() int64 {
		n, size := binary.Varint(b)
		if good = good && size > 0; good {
			b = b[size:]
		}
		return n
	}
	c.Rests, c.State.Last, c.State.Period, c.State.Count = next(), next(), next(), next()
	for slots := next(); good && slots > 0; slots-- {
		c.State.Used = append(c.State.Used, limit.Used{End: next(), Count: int(next())})
	}
	return good
}

// read reads the rates on opening. A rate that cannot be read
// is as if it had rested.
func (l *limits) read(d *datadir.Dir) error {
	l.table = limit.NewTable()
	lower, upper := appendPrefix(nil, 0, tableLimits), appendPrefix(nil, 0, tableLimits+1)
	return d.Scan(lower, upper, func(key, value []byte) (bool, error) {
		if len(key) > prefixLen && key[prefixLen] == limitPermit {
			return true, d.DB().Delete(key, pebble.NoSync)
		}
		var c limit.Change
		var ok bool
		if c.Key, ok = decodeRateKey(key); ok && decodeRate(value, &c) {
			l.table.Load(c)
		} else {
			d.Log.Error("unreadable rate: it begins anew")
		}
		return true, nil
	})
}

package record

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// EncodeSent returns all of a task that is on its way to its shard. Which of its attributes
// are indexed is not in it: that is for where it arrives.
func EncodeSent(t *store.Task) ([]byte, error) {
	body, err := AppendBody(nil, t)
	if err != nil {
		return nil, err
	}
	sent := Sent{
		Id: t.ID, Body: body, DueMs: int64(t.Due), ExpiresMs: int64(t.Expires), VisibilityMs: store.CeilMillis(t.Visibility), Fingerprint: t.Fingerprint,
		Tells: string(t.Tells),
	}
	if k := t.Key; k != nil {
		sent.KeyWindowMs, sent.KeyOnConflict, sent.KeySameRepeats = store.CeilMillis(k.Window), int32(k.OnConflict), k.SameRepeats
	}
	return sent.MarshalVT()
}

// DecodeSent reads it.
func DecodeSent(b []byte) (*store.Task, error) {
	var sent Sent
	if err := sent.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("decode task on its way: %w", err)
	}
	t := &store.Task{
		ID: sent.Id, Due: store.Millis(sent.DueMs), Expires: store.Millis(sent.ExpiresMs),
		Visibility: store.FromMillis(sent.VisibilityMs), Fingerprint: sent.Fingerprint, Tells: store.CellID(sent.Tells),
	}
	if err := DecodeBody(sent.Body, t); err != nil {
		return nil, err
	}
	if t.Key != nil {
		t.Key.Window = store.FromMillis(sent.KeyWindowMs)
		t.Key.OnConflict, t.Key.SameRepeats = store.KeyConflict(sent.KeyOnConflict), sent.KeySameRepeats
	}
	return t, nil
}

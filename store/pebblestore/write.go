package pebblestore

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// writer returns the batch of the turn.
func (t *turn) writer() *pebble.Batch {
	if t.batch == nil {
		t.batch = t.dir.DB().NewBatch()
	}
	return t.batch
}

func (t *turn) set(key, value []byte) error {
	return t.writer().Set(key, value, nil)
}

// remove deletes a key that was set once, or, when it may have been rewritten, any
// number of times.
func (t *turn) remove(key []byte, rewritten bool) error {
	if rewritten {
		return t.writer().Delete(key, nil)
	}
	return t.writer().SingleDelete(key, nil)
}

// has reports whether there is a key, as it is before what the turn has not applied yet.
func (t *turn) has(key []byte) (bool, error) {
	_, closer, err := t.dir.DB().Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, t.dir.ReadError(err)
	}
	return true, closer.Close()
}

// replace writes a key that may be there, so that it can be deleted as if it was
// set once.
func (t *turn) replace(key, value []byte) error {
	if err := t.writer().Delete(key, nil); err != nil {
		return err
	}
	return t.set(key, value)
}

// index is set of a key that goes behind the batch: see turn.indexes.
func (t *turn) index(key, value []byte) error {
	if t.indexes == nil {
		t.indexes = t.dir.DB().NewBatch()
	}
	return t.indexes.Set(key, value, nil)
}

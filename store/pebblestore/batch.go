package pebblestore

import (
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// batch is what a call sees of its shard, and what it changes there: the shard as it is
// without the changes, the keys to write, and what writing them does to the shard's memory.
// Its owner has the shard's lock.
type batch struct {
	dir *datadir.Dir
	sh  *shard
	now time.Time
	ms  store.Millis // now, rounded down: a task is due once ms has reached it

	puts *pebble.Batch // nil: nothing is to be written yet
	// indexes are what is added to indexes. They come behind puts, so that its keys are
	// next to each other: then Pebble need not search for each from the top.
	indexes    *pebble.Batch
	key, value []byte // scratch

	stored lookup  // tasks, as they are without the changes
	next   effects // what writing the batch does to the shard's memory
}

func (b *batch) moment() life.Moment { return life.Moment{At: b.now} }

// in returns the moment d from now.
func (b *batch) in(d time.Duration) store.Millis { return b.moment().In(d) }

// stamp is the number of the batch that is collected.
func (b *batch) stamp() uint64 { return b.sh.meta.batches + 1 }

// find reads a task as it is without the changes.
func (b *batch) find(id string) (entry, found, error) { return b.stored.find(id) }

// has reports whether there is a key without the changes.
func (b *batch) has(key []byte) (bool, error) {
	_, closer, err := b.dir.DB().Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, b.dir.ReadError(err)
	}
	return true, closer.Close()
}

// writer returns the keys to write. Once it was called the shard's numbers are written too.
func (b *batch) writer() *pebble.Batch {
	if b.puts == nil {
		b.puts = b.dir.DB().NewBatch()
	}
	return b.puts
}

func (b *batch) set(key, value []byte) error {
	b.written(key)
	return b.writer().Set(key, value, nil)
}

// remove deletes a key that was set once, or, when it may have been rewritten, any
// number of times.
func (b *batch) remove(key []byte, rewritten bool) error {
	b.written(key)
	if rewritten {
		return b.writer().Delete(key, nil)
	}
	return b.writer().SingleDelete(key, nil)
}

// replace writes a key that may be there, so that it can be deleted as if it was
// set once.
func (b *batch) replace(key, value []byte) error {
	if err := b.writer().Delete(key, nil); err != nil {
		return err
	}
	return b.set(key, value)
}

// index is set of a key that comes behind the others: see batch.indexes.
func (b *batch) index(key, value []byte) error {
	if b.indexes == nil {
		b.indexes = b.dir.DB().NewBatch()
	}
	return b.indexes.Set(key, value, nil)
}

// join moves what is added to indexes to the end of puts.
func (b *batch) join() error {
	if b.indexes == nil {
		return nil
	}
	err := b.puts.Apply(b.indexes, nil)
	b.indexes.Close() //nolint:errcheck // it always returns nil
	b.indexes = nil
	return err
}

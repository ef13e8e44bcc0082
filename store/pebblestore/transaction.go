package pebblestore

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// transaction is a call's time at a shard: it has the shard's lock. Items of the call
// read the shard as it was before, and what they change is collected and applied at
// once, when the transaction ends. So an id that comes twice in a call must be preceded
// by apply: see item.
//
// Operations are made of its parts, which all write to its batch.
type transaction struct {
	batch
	tasks      tasks
	line       line
	attributes attributes
	history    history
	journals   journals
	log        changelog

	cells  cells
	boxes  boxes
	queues queues

	ids       taskIDs
	cellIDs   ids // of cells that the batch changes
	seqRaised bool

	unsynced []*pebble.Batch // applied, not synced
	made     []func(store.Stamp)
	heard    int64 // number of the last parcel of the in-box, before
}

var transactions = sync.Pool{New: func() any {
	t := new(transaction)
	b := &t.batch
	t.tasks.batch, t.line.batch, t.attributes.batch, t.history.batch, t.journals.batch, t.log.batch = b, b, b, b, b, b
	t.cells.batch, t.boxes.batch, t.queues.batch = b, b, b
	return t
}}

// access says what a call needs of its shard.
type access struct {
	grows  bool         // adds tasks: there must be room, and it must not be sealed; creates the shard
	owned  bool         // creates the shard
	closed bool         // although it may be sealed
	full   bool         // although there may be no room
	fence  *store.Fence // of the current claim
}

// begin locks the shard. What was locked is unlocked by run.
func begin(d *datadir.Dir, sh *shard) *transaction {
	sh.mu.Lock()
	t := transactions.Get().(*transaction)
	t.dir, t.sh = d, sh
	t.stored.dir, t.stored.number = d, sh.number
	t.now = now()
	t.ms = store.Millis(t.now.UnixMilli())
	return t
}

// run has do collect changes, and applies them.
func (t *transaction) run(life uint64, a access, do func(*transaction) error) (_ store.Stamp, err error) {
	defer t.sh.mu.Unlock()
	defer func() { err = errors.Join(err, t.forgetSeen()) }()
	if err := t.sh.load(t.dir); err != nil {
		return store.Stamp{}, err
	}
	switch {
	case a.fence != nil && !t.sh.owner.is(*a.fence):
		return store.Stamp{}, store.ErrFenced
	case a.grows && !a.closed && t.sh.meta.sealed:
		return store.Stamp{}, store.ErrSealed
	}
	if a.grows {
		if err := t.admit(life); err != nil {
			return store.Stamp{}, err
		}
	}
	t.ids.newest, t.heard = t.sh.meta.newest, t.sh.meta.boxes.in
	if err := do(t); err != nil {
		return store.Stamp{}, err
	}
	if err := t.apply(); err != nil {
		return store.Stamp{}, err
	}
	return store.Stamp{Now: t.now, Seq: t.sh.meta.seq, In: t.sh.meta.boxes.in}, nil
}

// tell tells of what was done and is not synced yet. It is called without the lock.
func (t *transaction) tell(s *base, at store.Stamp) {
	if s.onInBox != nil && at.In > t.heard {
		s.onInBox(t.sh.name, at.In)
	}
	for _, made := range t.made {
		made(at)
	}
}

// admit refuses tasks of another topic than the shard's.
func (t *transaction) admit(life uint64) error {
	next, ours := t.sh.life.Adding(life)
	if !ours {
		return store.ErrSealed
	}
	return t.putLife(next)
}

func (t *transaction) putLife(l store.ShardLife) error {
	if l == t.sh.life {
		return nil
	}
	t.key = appendPrefix(t.key[:0], t.sh.number, tableLife)
	t.value = binary.BigEndian.AppendUint64(t.value[:0], l.Topic)
	var ended byte
	if l.Ended {
		ended = 1
	}
	t.value = append(t.value, ended)
	t.next.life = &l
	return t.set(t.key, t.value)
}

// item begins the next item of a call. When its id came before, what was collected
// is applied first, so that the item finds it done.
func (t *transaction) item(id string) error {
	if t.ids.came(id) {
		if err := t.repeat(); err != nil {
			return err
		}
	}
	t.ids.note(id)
	return nil
}

// repeat applies what was collected, because an id comes again.
func (t *transaction) repeat() error {
	if err := t.apply(); err != nil {
		return err
	}
	t.ids.clear()
	t.cellIDs.clear()
	return nil
}

// forgetSeen has the next look at the shard see it as it is then.
func (t *transaction) forgetSeen() error {
	return errors.Join(t.stored.close(), t.line.close())
}

// end waits for the sync of what was applied, or, when nothing was, of what the call may
// have read. It is called without the lock.
func (t *transaction) end(err error) error {
	applied := len(t.unsynced)
	for _, b := range t.unsynced {
		t.dir.Await(b)
		t.sh.unsynced.Add(-1)
	}
	switch {
	case t.dir.Failed() != nil:
		return t.abandon(applied > 0 || errors.Is(err, store.ErrUnknown))
	case err != nil && applied > 0:
		err = errors.Join(store.ErrUnknown, err) // some of its items were done
	case err == nil && applied == 0:
		err = t.settle()
	}
	t.recycle()
	return err
}

// settle returns once everything that the call may have read is synced.
func (t *transaction) settle() error {
	if t.sh.unsynced.Load() == 0 {
		return nil
	}
	return t.dir.Sync()
}

// abandon is the end after a failure. It leaves everything to the garbage collector, as
// Pebble may still use the batches.
func (t *transaction) abandon(sent bool) error {
	if sent {
		return t.dir.FailedAs(store.ErrUnknown)
	}
	return t.dir.FailedAs(store.ErrUnavailable)
}

// recycle keeps the memory of a transaction for another one.
func (t *transaction) recycle() {
	for _, b := range t.unsynced {
		b.Close() //nolint:errcheck // it always returns nil
	}
	for _, b := range [...]*pebble.Batch{t.puts, t.indexes} {
		if b != nil {
			b.Close() //nolint:errcheck // as above
		}
	}
	if cap(t.value) > maxScratch {
		return
	}
	t.next.reset()
	t.batch = batch{stored: lookup{key: t.stored.key[:0]}, key: t.key[:0], value: t.value[:0], next: t.next}
	t.log.reset()
	t.ids.reset()
	t.cellIDs.reset()
	clear(t.unsynced)
	clear(t.made)
	t.unsynced, t.made, t.seqRaised = t.unsynced[:0], t.made[:0], false
	transactions.Put(t)
}

// maxScratch is how much memory a transaction that is used again may have for one value.
const maxScratch = 1 << 20

package pebblestore

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// turn is a call's turn at a shard: it has the shard's lock. Items of the call
// read the shard as it was before the turn, and what they change is collected and
// applied at once, when the turn ends. So an id that comes twice in a call must be
// preceded by apply: see item.
type turn struct {
	dir   *datadir.Dir
	sh    *shard
	now   time.Time
	ms    store.Millis // now, rounded down: a task is due once ms has reached it
	batch *pebble.Batch
	// indexes are what is added to indexes. They come behind the batch, so that its
	// keys are next to each other: then Pebble need not search for each from the top.
	indexes *pebble.Batch
	rising  []string            // ids since the last apply, each above the ones before it
	seen    map[string]struct{} // the other ids since the last apply
	newest  uuid7               // the shard's, with what the turn added
	fresh   []uuid7             // rising: ids that are new since the last apply, not in seen

	key, value []byte // scratch
	tasks      lookup
	line       *pebble.Iterator // over ordering keys, as they were when it was made; nil: none
	unused     []hold           // allocated, see room
	payloads   []byte           // of tasks that were held, and room for more
	coming     int              // holds that the call may begin, as far as it says

	worker, node, by string // of the last hold, see who

	// What the batch will do to the memory of the shard.
	begun, extended, ended   []*hold
	pending, done, dead      int64 // differences
	becamePending, seqRaised bool
	owner                    *owner            // the next one
	life                     *store.ShardLife  // the next one
	opened                   bool              // it is not sealed any more
	dropped                  bool              // nothing but the owner is left
	sealed                   bool              // no new task from here on
	indexed                  *store.IndexState // the next one
	told                     told
	log                      *store.Watching // the next one
	trimmed                  int64           // the log is forgotten up to here

	unsynced []*pebble.Batch // applied, not synced
}

var turns = sync.Pool{New: func() any { return &turn{seen: make(map[string]struct{})} }}

// access says what a call needs of its shard.
type access struct {
	grows  bool         // adds tasks: there must be room, and it must not be sealed; creates the shard
	owned  bool         // creates the shard
	closed bool         // although it may be sealed
	fence  *store.Fence // of the current claim
}

// beginTurn locks the shard. What was locked is unlocked by run.
func beginTurn(d *datadir.Dir, sh *shard) *turn {
	sh.mu.Lock()
	t := turns.Get().(*turn)
	t.dir, t.sh = d, sh
	t.tasks.dir, t.tasks.number = d, sh.number
	t.now = now()
	t.ms = store.Millis(t.now.UnixMilli())
	return t
}

func (t *turn) moment() life.Moment { return life.Moment{At: t.now} }

// in returns the moment d from now.
func (t *turn) in(d time.Duration) store.Millis { return t.moment().In(d) }

// run has do collect changes, and applies them.
func (t *turn) run(life uint64, a access, do func(*turn) error) (_ store.Stamp, err error) {
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
	t.newest = t.sh.meta.newest
	if err := do(t); err != nil {
		return store.Stamp{}, err
	}
	if err := t.apply(); err != nil {
		return store.Stamp{}, err
	}
	return store.Stamp{Now: t.now, Seq: t.sh.meta.seq}, nil
}

// end waits for the sync of what the turn applied, or, when it applied nothing, of
// what it may have read. It is called without the lock.
func (t *turn) end(err error) error {
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

// settle returns once everything that the turn may have read is synced.
func (t *turn) settle() error {
	if t.sh.unsynced.Load() == 0 {
		return nil
	}
	return t.dir.Sync()
}

// abandon is the end of a turn after a failure. It leaves everything to the garbage
// collector, as Pebble may still use the batches.
func (t *turn) abandon(sent bool) error {
	if sent {
		return t.dir.FailedAs(store.ErrUnknown)
	}
	return t.dir.FailedAs(store.ErrUnavailable)
}

func (t *turn) recycle() {
	for _, b := range t.unsynced {
		b.Close() //nolint:errcheck // it always returns nil
	}
	for _, b := range [...]*pebble.Batch{t.batch, t.indexes} {
		if b != nil {
			b.Close() //nolint:errcheck // as above
		}
	}
	if len(t.seen) > maxKept {
		t.seen = make(map[string]struct{}) // clearing takes as long as it ever was
	}
	clear(t.seen)
	clear(t.rising)
	clear(t.begun)
	clear(t.extended)
	clear(t.ended)
	clear(t.unsynced)
	*t = turn{
		tasks: lookup{key: t.tasks.key[:0]},
		seen:  t.seen, rising: t.rising[:0], key: t.key[:0], value: t.value[:0],
		told:  told{changes: t.told.changes[:0]},
		fresh: t.fresh[:0], begun: t.begun[:0], extended: t.extended[:0], ended: t.ended[:0], unsynced: t.unsynced[:0],
	}
	if cap(t.value) <= maxScratch {
		turns.Put(t)
	}
}

// What a turn that is used again may keep.
const (
	maxKept    = 4096
	maxScratch = 1 << 20
)

// find reads a task as it was before what the turn has not applied yet.
func (t *turn) find(id string) (entry, found, error) { return t.tasks.find(id) }

// admit refuses tasks of another topic than the shard's.
func (t *turn) admit(life uint64) error {
	next, ours := t.sh.life.Adding(life)
	if !ours {
		return store.ErrSealed
	}
	return t.putLife(next)
}

func (t *turn) putLife(l store.ShardLife) error {
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
	t.life = &l
	return t.set(t.key, t.value)
}

package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// turn is a call's turn at a shard: it has the shard's lock. Items of the call
// read the shard as it was before the turn, and what they change is collected and
// applied at once, when the turn ends. So an id that comes twice in a call must be
// preceded by apply: see item.
type turn struct {
	s     *Store
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

// change gives do a turn at the shard, and returns when what it did is synced.
func (s *Store) change(ctx context.Context, name store.Shard, a access, do func(*turn) error) (store.Stamp, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stamp{}, err
	}
	defer s.leave()
	if a.grows && !s.disk.room() {
		return store.Stamp{}, s.fullError()
	}
	t := s.begin(s.shard(name, a.grows || a.owned))
	stamp, err := t.run(name.Life, a, do)
	return stamp, t.end(err)
}

// begin locks the shard. What was locked is unlocked by run.
func (s *Store) begin(sh *shard) *turn {
	sh.mu.Lock()
	t := turns.Get().(*turn)
	t.s, t.sh = s, sh
	t.tasks.s, t.tasks.number = s, sh.number
	t.now = now()
	t.ms = store.Millis(t.now.UnixMilli())
	return t
}

func (t *turn) moment() life.Moment { return life.Moment{At: t.now} }

// in returns the moment d from now.
func (t *turn) in(d time.Duration) store.Millis { return t.moment().In(d) }

func (t *turn) run(life uint64, a access, do func(*turn) error) (_ store.Stamp, err error) {
	defer t.sh.mu.Unlock()
	defer func() { err = errors.Join(err, t.forgetSeen()) }()
	if err := t.sh.load(t.s); err != nil {
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
	s, sh, applied := t.s, t.sh, len(t.unsynced)
	for _, b := range t.unsynced {
		if syncErr := b.SyncWait(); syncErr != nil {
			s.disk.freeze(syncErr)
		}
		sh.unsynced.Add(-1)
	}
	switch {
	case s.disk.failure() != nil:
		return t.abandon(applied > 0 || errors.Is(err, store.ErrUnknown))
	case err != nil && applied > 0:
		err = errors.Join(store.ErrUnknown, err) // some of its items were done
	case err == nil && applied == 0:
		err = s.settle(sh)
	}
	t.recycle()
	return err
}

// settle returns once everything that could be read of the shard is synced.
func (s *Store) settle(sh *shard) error {
	if sh.unsynced.Load() == 0 {
		return nil
	}
	b := s.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return s.readError(err)
	}
	if err := b.Commit(pebble.Sync); err != nil {
		s.disk.freeze(err)
	}
	if s.disk.failure() != nil {
		return s.failed(store.ErrUnavailable)
	}
	return b.Close()
}

// abandon is the end of a turn after a failure. It leaves everything to the garbage
// collector, as Pebble may still use the batches.
func (t *turn) abandon(sent bool) error {
	if sent {
		return t.s.failed(store.ErrUnknown)
	}
	return t.s.failed(store.ErrUnavailable)
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

// item begins the next item of a call. When its id came before, what was collected
// is applied first, so that the item finds it done.
func (t *turn) item(id string) error {
	if t.came(id) {
		if err := t.repeat(); err != nil {
			return err
		}
	}
	if t.rises(id) {
		t.rising = append(t.rising, id)
	} else {
		t.seen[id] = struct{}{}
	}
	return nil
}

// came reports whether an id came before in the call, since the last apply. Ids
// mostly come in order, and one above all before it is new without a look.
func (t *turn) came(id string) bool {
	if t.rises(id) {
		return false
	}
	if _, again := t.seen[id]; again {
		return true
	}
	_, again := slices.BinarySearch(t.rising, id)
	return again
}

// rises reports whether an id is above all of rising, and so of seen.
func (t *turn) rises(id string) bool {
	return len(t.rising) == 0 || id > t.rising[len(t.rising)-1]
}

// repeat applies what was collected, because an id comes again.
func (t *turn) repeat() error {
	if err := t.apply(); err != nil {
		return err
	}
	clear(t.seen)
	t.rising, t.fresh = t.rising[:0], t.fresh[:0]
	return nil
}

// stamp is the number of the batch that the turn collects.
func (t *turn) stamp() uint64 { return t.sh.meta.batches + 1 }

// writer returns the batch of the turn.
func (t *turn) writer() *pebble.Batch {
	if t.batch == nil {
		t.batch = t.s.db.NewBatch()
	}
	return t.batch
}

// forgetSeen has the next look at the shard see it as it is then.
func (t *turn) forgetSeen() error {
	err := t.tasks.close()
	if t.line != nil {
		if lineErr := t.line.Close(); lineErr != nil {
			err = errors.Join(err, t.s.readError(lineErr))
		}
		t.line = nil
	}
	return err
}

// apply makes what was collected visible, and leaves it to end to wait for its sync.
func (t *turn) apply() error {
	if t.batch == nil && len(t.begun)+len(t.extended)+len(t.ended) == 0 {
		return nil
	}
	if t.s.disk.brimming() {
		return t.s.fullError()
	}
	if err := t.forgetSeen(); err != nil {
		return err
	}
	sh, m := t.sh, t.sh.meta
	m.batches++
	m.pending += t.pending
	m.done += t.done
	m.dead += t.dead
	m.newest = t.newest
	m.sealed = (m.sealed || t.sealed) && !t.dropped && !t.opened
	if t.becamePending && !t.seqRaised {
		m.seq++
		t.seqRaised = true
	}
	if err := t.writeIndexState(&m); err != nil {
		return err
	}
	if err := t.applyLog(&m.log); err != nil {
		return err
	}
	if err := t.writeMeta(m); err != nil {
		return err
	}
	if err := t.writeHolds(m.batches); err != nil {
		return err
	}
	if err := t.writeIndexes(); err != nil {
		return err
	}
	sh.unsynced.Add(1)
	t.s.disk.changed(t.batch.Len(), int(t.batch.Count()))
	if err := t.s.db.ApplyNoSyncWait(t.batch, pebble.Sync); err != nil {
		t.s.disk.freeze(err) // what Pebble did is not known
	}
	if t.s.disk.failure() != nil {
		return t.s.failed(store.ErrUnknown) // the sync may never come
	}
	t.unsynced = append(t.unsynced, t.batch)
	t.batch = nil
	sh.meta, sh.known = m, true
	t.remember()
	return nil
}

// writeMeta adds the shard's numbers to the batch, and its name when that was not
// stored yet.
func (t *turn) writeMeta(m meta) error {
	sh := t.sh
	t.key = appendPrefix(t.key[:0], sh.number, tableMeta)
	t.value = m.append(t.value[:0])
	if err := t.set(t.key, t.value); err != nil || sh.known {
		return err
	}
	t.value = binary.BigEndian.AppendUint32(t.value[:0], sh.number)
	return t.set(shardKey(sh.name), t.value)
}

// writeHolds adds the group of what began or was extended to the batch, and takes
// out those that nothing is left of. It is called once the batch will be applied,
// or the store has failed.
func (t *turn) writeHolds(number uint64) error {
	if live := len(t.begun) + len(t.extended); live > 0 {
		g := &group{number: number, live: live}
		t.value = appendGroup(t.value[:0], t.begun, t.extended)
		t.key = g.appendKey(t.key[:0], t.sh.number)
		if err := t.set(t.key, t.value); err != nil {
			return err
		}
		for _, h := range t.begun {
			h.group = g
		}
		for _, h := range t.extended {
			if err := t.leave(h.group); err != nil {
				return err
			}
			h.group = g
		}
	}
	for _, h := range t.ended {
		if err := t.leave(h.group); err != nil {
			return err
		}
	}
	return nil
}

// writeIndexes moves what is added to indexes to the end of the batch.
func (t *turn) writeIndexes() error {
	if t.indexes == nil {
		return nil
	}
	err := t.batch.Apply(t.indexes, nil)
	t.indexes.Close() //nolint:errcheck // it always returns nil
	t.indexes = nil
	return err
}

// leave counts a hold out of its group.
func (t *turn) leave(g *group) error {
	if g.live--; g.live > 0 {
		return nil
	}
	t.key = g.appendKey(t.key[:0], t.sh.number)
	return t.remove(t.key, false)
}

// remember makes the shard's memory agree with what was applied.
func (t *turn) remember() {
	if t.owner != nil {
		t.sh.owner = *t.owner
	}
	if t.life != nil {
		t.sh.life = *t.life
	}
	if t.indexed != nil {
		t.sh.index = *t.indexed
	}
	if t.dropped {
		t.sh.holds.drop()
		t.sh.firstDue, t.sh.firstTrim = math.MaxInt64, math.MaxInt64
	}
	for _, h := range t.ended {
		t.sh.holds.remove(h)
	}
	for _, h := range t.begun {
		t.sh.holds.add(h)
	}
	for _, h := range t.extended {
		t.sh.holds.replace(h)
	}
	clear(t.begun)
	clear(t.extended)
	clear(t.ended)
	t.begun, t.extended, t.ended = t.begun[:0], t.extended[:0], t.ended[:0]
	t.pending, t.done, t.dead, t.becamePending = 0, 0, 0, false
	t.owner, t.life, t.dropped, t.sealed, t.opened, t.indexed = nil, nil, false, false, false, nil
	t.log, t.trimmed = nil, 0
}

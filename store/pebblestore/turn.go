package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
)

// turn is a call's turn at a shard: it has the shard's lock. Items of the call
// read the shard as it was before the turn, and what they change is collected and
// applied at once, when the turn ends. So an id that comes twice in a call must be
// preceded by apply: see item.
type turn struct {
	s     *Store
	sh    *shard
	now   time.Time
	ms    store.Millis
	batch *pebble.Batch
	seen  map[string]struct{} // ids since the last apply

	key, value, raw []byte // scratch

	// What the batch will do to the memory of the shard.
	begun, extended, ended   []*hold
	pending, done, dead      int64 // differences
	becamePending, seqRaised bool

	unsynced []*pebble.Batch // applied, not synced
}

var turns = sync.Pool{New: func() any { return &turn{seen: make(map[string]struct{})} }}

// access says what a call needs of its shard.
type access struct {
	grows bool         // adds tasks, so there must be room, and creates the shard
	owned bool         // creates the shard
	fence *store.Fence // of the current claim
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
	stamp, err := t.run(a.fence, do)
	return stamp, t.end(err)
}

// begin locks the shard. What was locked is unlocked by run.
func (s *Store) begin(sh *shard) *turn {
	sh.mu.Lock()
	t := turns.Get().(*turn)
	t.s, t.sh = s, sh
	t.now = now()
	t.ms = store.Millis(t.now.UnixMilli())
	return t
}

func (t *turn) run(fence *store.Fence, do func(*turn) error) (store.Stamp, error) {
	defer t.sh.mu.Unlock()
	if err := t.sh.load(t.s); err != nil {
		return store.Stamp{}, err
	}
	if fence != nil && !t.sh.owner.is(*fence) {
		return store.Stamp{}, store.ErrFenced
	}
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
	if t.batch != nil {
		t.batch.Close() //nolint:errcheck // as above
	}
	if len(t.seen) > maxKept {
		t.seen = make(map[string]struct{}) // clearing takes as long as it ever was
	}
	clear(t.seen)
	clear(t.begun)
	clear(t.extended)
	clear(t.ended)
	clear(t.unsynced)
	*t = turn{
		seen: t.seen, key: t.key[:0], value: t.value[:0], raw: t.raw[:0],
		begun: t.begun[:0], extended: t.extended[:0], ended: t.ended[:0], unsynced: t.unsynced[:0],
	}
	if cap(t.value)+cap(t.raw) <= maxScratch {
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
	if _, again := t.seen[id]; again {
		if err := t.apply(); err != nil {
			return err
		}
		clear(t.seen)
	}
	t.seen[id] = struct{}{}
	return nil
}

// writer returns the batch of the turn.
func (t *turn) writer() *pebble.Batch {
	if t.batch == nil {
		t.batch = t.s.db.NewBatch()
	}
	return t.batch
}

// apply makes what was collected visible, and leaves it to end to wait for its sync.
func (t *turn) apply() error {
	if t.batch == nil {
		return nil
	}
	sh, m := t.sh, t.sh.meta
	m.pending += t.pending
	m.done += t.done
	m.dead += t.dead
	if t.becamePending && !t.seqRaised {
		m.seq++
		t.seqRaised = true
	}
	if err := t.writeMeta(m); err != nil {
		return err
	}
	sh.unsynced.Add(1)
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

// writeMeta adds the shard's numbers to the batch when they changed, and its name
// when that was not stored yet.
func (t *turn) writeMeta(m meta) error {
	sh := t.sh
	if m != sh.meta {
		t.key = appendPrefix(t.key[:0], sh.number, tableMeta)
		t.value = m.append(t.value[:0])
		if err := t.batch.Set(t.key, t.value, nil); err != nil {
			return err
		}
	}
	if sh.known {
		return nil
	}
	t.value = binary.BigEndian.AppendUint32(t.value[:0], sh.number)
	return t.batch.Set(shardKey(sh.name), t.value, nil)
}

// remember makes the shard's memory agree with what was applied.
func (t *turn) remember() {
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
}

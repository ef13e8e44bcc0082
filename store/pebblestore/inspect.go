package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Get returns tasks by id.
func (s *Store) Get(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	snapshots := make([]store.Snapshot, 0, len(ids))
	stamp, err := s.change(ctx, name, access{}, func(t *turn) (err error) {
		var bodies store.Bodies
		for _, id := range ids {
			if bodies.Full() {
				break
			}
			snap, err := t.snapshot(id)
			if err != nil {
				return err
			}
			snapshots = append(snapshots, snap)
			bodies.Add(&snap.Task)
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, snapshots, nil
}

// snapshot returns a task as it stands. Of one that cannot be read it returns what
// is known of it.
func (t *turn) snapshot(id string) (store.Snapshot, error) {
	snap := store.Snapshot{Task: store.Task{ID: id}}
	e, f, err := t.find(id)
	if err != nil || f == absent {
		return snap, err
	}
	e.fill(&snap.Task)
	if !e.unreadable {
		if err := record.DecodeBody(e.body, &snap.Task); err != nil {
			snap.Task = store.Task{ID: id}
			e.fill(&snap.Task)
		}
	}
	snap.State, snap.Token = e.stateAt(t.ms), e.token
	snap.Reason, snap.Finished = e.reason, e.finished
	if h := t.sh.holds.get(id); h != nil {
		snap.State, snap.Attempt = store.StateRunning, h.attempt
		snap.Token, snap.Deadline = h.token, h.deadline
		snap.Worker, snap.Node = h.who()
		snap.Started, snap.Cancelled = h.started, h.cancelled
	}
	return snap, nil
}

// Window returns pending tasks in order of due time and id. It may return what is
// not synced yet, which Hold would refuse after a crash.
func (s *Store) Window(ctx context.Context, name store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	stamp, lower, err := s.windowStart(sh, w)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if w.Lane != nil {
		entries, err := s.laneWindow(sh.number, w)
		return stamp, entries, err
	}
	var entries []store.Entry
	upper := afterMillis(sh.number, tablePending, w.To)
	err = s.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
		if due, id, ok := decodeTimeKey(key); ok && len(entries) < w.Limit {
			traits, err := record.DecodeTraits(value)
			if err != nil {
				s.dir.Log.Error("unreadable traits: the task is taken for one without", "task", id, "err", err)
			}
			entries = append(entries, store.Entry{ID: id, Due: due, Traits: traits})
		}
		return len(entries) < w.Limit, nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, entries, nil
}

// windowStart returns the key at which to begin: never before the first task that
// there is, as the deleted ones before it are costly to pass.
func (s *Store) windowStart(sh *shard, w store.WindowQuery) (store.Stamp, []byte, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(s.dir); err != nil {
		return store.Stamp{}, nil, err
	}
	stamp := store.Stamp{Now: now(), Seq: sh.meta.seq}
	if w.Lane == nil && (w.After.ID != "" || w.After.Due != 0) && w.After.Due >= sh.firstDue {
		lower := appendTimeKey(nil, sh.number, tablePending, w.After.Due, w.After.ID)
		return stamp, append(lower, 0), nil // the next key there can be
	}
	if err := sh.advance(s.dir, w.To); err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, appendMillis(appendPrefix(nil, sh.number, tablePending), sh.firstDue), nil
}

// Running pages through holds in the order in which they began, as far as this
// process knows it: after a restart a walk begins again.
func (s *Store) Running(ctx context.Context, name store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	var running []store.Running
	next, err := s.walkHolds(ctx, name, cursor, limit, func(_ *turn, h *hold) (bool, error) {
		running = append(running, h.running())
		return true, nil
	})
	if err != nil {
		return nil, "", err
	}
	return running, next, nil
}

// walkHolds visits a page of holds, which visit may end.
func (s *Store) walkHolds(ctx context.Context, name store.Shard, cursor string, limit int, visit func(*turn, *hold) (bool, error)) (next string, err error) {
	position, err := parseCursor(store.KindRunning, cursor)
	if err != nil {
		return "", err
	}
	after, err := s.boot.serial(position)
	if err != nil {
		return "", err
	}
	_, err = s.change(ctx, name, access{}, func(t *turn) error {
		page, more := t.sh.holds.after(after, limit)
		for i, h := range page {
			goOn, err := visit(t, h)
			if err != nil {
				return err
			}
			if !goOn && i+1 < len(page) {
				page, more = page[:i+1], true
				break
			}
		}
		if more && len(page) > 0 {
			next = formatCursor(store.KindRunning, s.boot.position(page[len(page)-1].serial))
		}
		return nil
	})
	return next, err
}

// List pages through tasks of a kind.
func (s *Store) List(ctx context.Context, name store.Shard, kind store.Kind, cursor string, limit int) (tasks []store.Snapshot, next string, err error) {
	var bodies store.Bodies
	see := func(t *turn, id string) (bool, error) {
		snap, err := t.snapshot(id)
		if err == nil && snap.State != store.StateUnknown {
			tasks = append(tasks, snap)
			bodies.Add(&snap.Task)
		}
		return !bodies.Full(), err
	}
	switch kind {
	case store.KindRunning:
		next, err = s.walkHolds(ctx, name, cursor, limit, func(t *turn, h *hold) (bool, error) { return see(t, h.id) })
	case store.KindPending:
		next, err = s.walkIndex(ctx, name, kind, tablePending, cursor, limit, see)
	case store.KindDone:
		next, err = s.walkIndex(ctx, name, kind, tableDone, cursor, limit, see)
	case store.KindDead:
		next, err = s.walkIndex(ctx, name, kind, tableDead, cursor, limit, see)
	default:
		err = fmt.Errorf("no such kind of task: %d", kind)
	}
	if err != nil {
		return nil, "", err
	}
	return tasks, next, nil
}

// walkIndex visits a page of an index, which visit may end. The position of a cursor is the rest of the
// last key, behind its prefix.
func (s *Store) walkIndex(ctx context.Context, name store.Shard, kind store.Kind, index table, cursor string, limit int, visit func(*turn, string) (bool, error)) (next string, err error) {
	position, err := parseCursor(kind, cursor)
	if err != nil {
		return "", err
	}
	_, err = s.change(ctx, name, access{}, func(t *turn) error {
		lower := appendPrefix(nil, t.sh.number, index)
		if position != nil {
			lower = append(append(lower, position...), 0)
		} else if index == tablePending {
			lower = appendMillis(lower, t.sh.firstDue)
		}
		var last []byte
		seen, goOn := 0, true
		return s.dir.Scan(lower, appendPrefix(nil, t.sh.number, index+1), func(key, _ []byte) (bool, error) {
			if seen == limit || !goOn {
				next = formatCursor(kind, last)
				return false, nil
			}
			seen++
			last = append(last[:0], key[prefixLen:]...)
			_, id, ok := decodeTimeKey(key)
			if !ok {
				return true, nil
			}
			goOn, err = visit(t, id)
			return true, err
		})
	})
	return next, err
}

// maxReady is up to where Stats counts the ready tasks of a shard.
const maxReady = 100_000

// Stats returns counts and ownership of shards. Ready is counted up to 100,000.
func (s *Store) Stats(ctx context.Context, names []store.Shard) ([]store.Stats, error) {
	return s.eachNumbers(ctx, names, s.stats)
}

// Counts is Stats without Ready and OldestMs: all but whether there are keys is in
// memory.
func (s *Store) Counts(ctx context.Context, names []store.Shard) ([]store.Stats, error) {
	return s.eachNumbers(ctx, names, s.counts)
}

// eachNumbers asks for the numbers of each shard.
func (s *Store) eachNumbers(ctx context.Context, names []store.Shard, of func(*shard) (store.Stats, error)) ([]store.Stats, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.dir.Leave()
	stats := make([]store.Stats, len(names))
	for i, name := range names {
		var err error
		if stats[i], err = of(s.shards.get(name, false)); err != nil {
			return nil, err
		}
	}
	return stats, nil
}

func (s *Store) stats(sh *shard) (store.Stats, error) {
	st, err := s.counts(sh)
	if err != nil || st.Pending == 0 {
		return st, err
	}
	lower, err := sh.firstPending(s.dir)
	if err != nil {
		return st, err
	}
	now := store.Millis(st.Now.UnixMilli())
	err = s.dir.Scan(lower, appendPrefix(nil, sh.number, tablePending+1), func(key, _ []byte) (bool, error) {
		due := millisAt(key[prefixLen:])
		if st.OldestMs == 0 {
			st.OldestMs = due
		}
		if due > now || st.Ready == maxReady {
			return false, nil
		}
		st.Ready++
		return true, nil
	})
	return st, err
}

func (s *Store) counts(sh *shard) (store.Stats, error) {
	st, err := sh.numbers(s.dir)
	if err == nil {
		st.Keys, err = s.hasKeys(sh)
	}
	return st, err
}

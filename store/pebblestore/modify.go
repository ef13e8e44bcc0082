package pebblestore

import (
	"bytes"
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Remove deletes pending tasks.
func (s *Store) Remove(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	results := make([]store.RemoveResult, len(ids))
	stamp, err := s.change(ctx, name, access{}, func(t *turn) (err error) {
		for i, id := range ids {
			if results[i], err = t.modify(id, func(e *entry) error {
				if err := t.removePending(e.due, id, e.traits()); err != nil {
					return err
				}
				t.tell(store.Change{Kind: store.ChangeDeleted, ID: id, Attempt: e.attempt}, e)
				if err := t.stepOut(e.traits(), e.standsAt(), id); err != nil {
					return err
				}
				return t.dropTask(id, e)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// modify does something to a pending task. One that cannot be read is left alone
// until it is held.
func (t *turn) modify(id string, do func(*entry) error) (store.RemoveResult, error) {
	if err := t.item(id); err != nil {
		return store.RemoveResult{}, err
	}
	e, f, err := t.find(id)
	if err != nil {
		return store.RemoveResult{}, err
	}
	phase, state := e.phase(f), e.stateAt(t.ms)
	if f != absent && t.sh.holds.get(id) != nil {
		phase, state = life.Running, store.StateRunning
	}
	switch status := life.Change(phase); status {
	case store.OK:
	case store.WrongState:
		return store.RemoveResult{Status: status, State: state}, nil
	default:
		return store.RemoveResult{Status: status}, nil
	}
	return store.RemoveResult{Status: store.OK}, do(&e)
}

// Requeue makes dead tasks due now with Attempt 0 and no expiry.
func (s *Store) Requeue(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return changeDead(ctx, s, name, ids, func(t *turn, id string, e *entry) (store.RemoveResult, error) {
		if err := e.check(id); err != nil {
			return store.RemoveResult{Status: store.WrongState}, nil
		}
		traits := bytes.Clone(e.traits())
		if key := record.Ordering(traits); key != "" && t.sh.meta.sealed {
			e.body = bytes.Clone(e.body) // what find returned is valid until the next one
			if closed, err := t.closedTo(key); closed || err != nil {
				return store.RemoveResult{Status: store.Closed}, err
			}
		}
		if err := t.lineUp(traits, t.ms, id); err != nil {
			return store.RemoveResult{}, err
		}
		if err := t.removeFinished(id, e); err != nil {
			return store.RemoveResult{}, err
		}
		e.state, e.due, e.attempt, e.expires = pending, t.ms, 0, 0
		if err := t.rewriteTask(id, e); err != nil {
			return store.RemoveResult{}, err
		}
		t.tell(store.Change{Kind: store.ChangeRequeued, ID: id, Due: e.due, Version: e.edits + 1}, e)
		result := store.RemoveResult{Status: store.OK, Due: e.due}
		result.Traits, _ = record.DecodeTraits(traits)
		return result, t.addPending(e.due, id, traits)
	}, store.RemoveResult{Status: store.NotFound})
}

// RemoveDead deletes dead tasks.
func (s *Store) RemoveDead(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	return changeDead(ctx, s, name, ids, func(t *turn, id string, e *entry) (store.Status, error) {
		if err := t.removeFinished(id, e); err != nil {
			return 0, err
		}
		t.tell(store.Change{Kind: store.ChangeDeleted, ID: id, Attempt: e.attempt}, e)
		return store.OK, t.dropTask(id, e)
	}, store.NotFound)
}

// changeDead does something to dead tasks; absent is the result of those that are not.
func changeDead[R any](ctx context.Context, s *Store, name store.Shard, ids []string,
	do func(*turn, string, *entry) (R, error), absent R,
) (store.Stamp, []R, error) {
	results := make([]R, len(ids))
	stamp, err := s.change(ctx, name, access{}, func(t *turn) error {
		for i, id := range ids {
			if err := t.item(id); err != nil {
				return err
			}
			e, f, err := t.find(id)
			if err != nil {
				return err
			}
			if results[i] = absent; life.Requeue(e.phase(f)) != store.OK {
				continue
			}
			if results[i], err = do(t, id, &e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// Trim deletes done tasks whose retention has passed, at most limit.
func (s *Store) Trim(ctx context.Context, name store.Shard, limit int) (int, error) {
	return s.trim(ctx, name, (*turn).trim, func(t *turn) ([]store.Entry, error) { return t.overdue(limit) })
}

// trim removes the tasks whose entries find returns, and returns how many.
func (s *Store) trim(ctx context.Context, name store.Shard, remove func(*turn, store.Entry) error, find func(*turn) ([]store.Entry, error)) (trimmed int, err error) {
	_, err = s.change(ctx, name, access{}, func(t *turn) error {
		over, err := find(t)
		for _, e := range over {
			if err := remove(t, e); err != nil {
				return err
			}
		}
		trimmed = len(over)
		return err
	})
	if err != nil {
		return 0, err
	}
	return trimmed, nil
}

// overdue returns done tasks whose retention has passed; Due is the end of it.
func (t *turn) overdue(limit int) (over []store.Entry, err error) {
	if limit <= 0 || t.sh.meta.done == 0 {
		return nil, nil
	}
	lower := appendMillis(appendPrefix(nil, t.sh.number, tableTrim), t.sh.firstTrim)
	upper := appendMillis(appendPrefix(nil, t.sh.number, tableTrim), t.ms+1)
	first := t.ms + 1
	err = t.dir.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		at, id, ok := decodeTimeKey(key)
		if !ok {
			return true, nil
		}
		first = min(first, at)
		over = append(over, store.Entry{ID: id, Due: at})
		return len(over) < limit, nil
	})
	if err == nil {
		t.sh.firstTrim = max(t.sh.firstTrim, first)
	}
	return over, err
}

// trim deletes a done task whose retention is over.
func (t *turn) trim(over store.Entry) error {
	e, f, err := t.find(over.ID)
	switch {
	case err != nil:
		return err
	case f != readable || e.state != done || e.trim != over.Due:
		return t.removeFrom(tableTrim, over.Due, over.ID) // an entry of nothing
	}
	if err := t.removeFinished(over.ID, &e); err != nil {
		return err
	}
	return t.dropTask(over.ID, &e)
}

// Seal makes a shard take no new task.
func (s *Store) Seal(ctx context.Context, name store.Shard) error {
	_, err := s.change(ctx, name, access{owned: true}, func(t *turn) error {
		life, ours := t.sh.life.Sealing(name.Life)
		if !ours {
			return nil
		}
		t.sealed = true
		t.writer() // it is written with the numbers
		return t.putLife(life)
	})
	return err
}

// DropShard deletes everything of a shard but its owner record.
func (s *Store) DropShard(ctx context.Context, name store.Shard) error {
	_, err := s.change(ctx, name, access{owned: name.Life != 0}, func(t *turn) error {
		life, ours := t.sh.life.Dropping(name.Life)
		if t.sh.number == 0 || !ours {
			return nil
		}
		for _, table := range []table{tableTasks, tablePending, tableHolds, tableDead, tableDone, tableTrim, tableLanes, tableHistory, tableKeys, tableOrder, tableIndex, tableLog} {
			lower, upper := appendPrefix(nil, t.sh.number, table), appendPrefix(nil, t.sh.number, table+1)
			if err := t.writer().DeleteRange(lower, upper, nil); err != nil {
				return err
			}
		}
		m := t.sh.meta
		t.pending, t.done, t.dead = -m.pending, -m.done, -m.dead
		t.dropped = true
		return t.putLife(life)
	})
	return err
}

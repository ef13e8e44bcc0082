package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Trim deletes done tasks whose retention has passed, at most limit.
func (s retention) Trim(ctx context.Context, name store.Shard, limit int) (int, error) {
	return s.trim(ctx, name, func(t *transaction) ([]store.Entry, func(store.Entry) error, error) {
		done := doneTasks{t}
		over, err := done.overdue(limit)
		return over, done.trim, err
	})
}

// TrimDead deletes dead tasks up to and including a position, at most limit.
func (s retention) TrimDead(ctx context.Context, name store.Shard, upTo store.Entry, limit int) (int, error) {
	return s.trim(ctx, name, func(t *transaction) ([]store.Entry, func(store.Entry) error, error) {
		dead := deadLetters{t}
		lower := appendPrefix(nil, t.sh.number, tableDead)
		upper := append(appendTimeKey(nil, t.sh.number, tableDead, upTo.Due, upTo.ID), 0)
		over, err := dead.entries(lower, upper, limit)
		return over, dead.trim, err
	})
}

// trim asks which entries of an index are over, and how to remove one with its task. It
// returns how many there were.
func (s retention) trim(ctx context.Context, name store.Shard, find func(*transaction) ([]store.Entry, func(store.Entry) error, error)) (trimmed int, err error) {
	_, err = s.change(ctx, name, access{}, func(t *transaction) error {
		over, remove, err := find(t)
		for _, e := range over {
			if err := remove(e); err != nil {
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

// doneTasks are those that are kept for their retention.
type doneTasks struct{ *transaction }

// overdue returns done tasks whose retention has passed; Due is the end of it.
func (t doneTasks) overdue(limit int) (over []store.Entry, err error) {
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
func (t doneTasks) trim(over store.Entry) error {
	return t.trimFinished(tableTrim, over, func(e *entry) bool { return e.state == done && e.trim == over.Due })
}

// trimFinished deletes a task by its entry in an index. An entry that is not of its task as it
// stands is of nothing, and goes alone.
func (t *transaction) trimFinished(index table, over store.Entry, stands func(*entry) bool) error {
	e, f, err := t.find(over.ID)
	switch {
	case err != nil:
		return err
	case f != readable || !stands(&e):
		return t.tasks.removeFrom(index, over.Due, over.ID)
	}
	if err := t.tasks.removeFinished(over.ID, &e); err != nil {
		return err
	}
	return t.erase(over.ID, &e)
}

package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// DeadWindow returns dead tasks in order of the time they died and id.
func (s *Store) DeadWindow(ctx context.Context, name store.Shard, w store.WindowQuery) ([]store.Entry, error) {
	var entries []store.Entry
	_, err := s.change(ctx, name, access{}, func(t *turn) (err error) {
		lower := appendPrefix(nil, t.sh.number, tableDead)
		if w.After != (store.Entry{}) {
			lower = append(appendTimeKey(nil, t.sh.number, tableDead, w.After.Due, w.After.ID), 0)
		}
		entries, err = t.deadEntries(lower, afterMillis(t.sh.number, tableDead, w.To), w.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// deadEntries reads at most limit entries of the index of dead tasks.
func (t *turn) deadEntries(lower, upper []byte, limit int) (entries []store.Entry, err error) {
	if limit <= 0 || t.sh.meta.dead == 0 {
		return nil, nil
	}
	err = t.dir.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		if at, id, ok := decodeTimeKey(key); ok {
			entries = append(entries, store.Entry{ID: id, Due: at})
		}
		return len(entries) < limit, nil
	})
	return entries, err
}

// TrimDead deletes dead tasks up to and including a position, at most limit.
func (s *Store) TrimDead(ctx context.Context, name store.Shard, upTo store.Entry, limit int) (int, error) {
	return s.trim(ctx, name, (*turn).trimDead, func(t *turn) ([]store.Entry, error) {
		lower := appendPrefix(nil, t.sh.number, tableDead)
		upper := append(appendTimeKey(nil, t.sh.number, tableDead, upTo.Due, upTo.ID), 0)
		return t.deadEntries(lower, upper, limit)
	})
}

// trimDead deletes a dead task, by its entry in the index.
func (t *turn) trimDead(over store.Entry) error {
	e, f, err := t.find(over.ID)
	switch {
	case err != nil:
		return err
	case f != readable || e.state != dead && e.state != expired || e.finished != over.Due:
		return t.removeFrom(tableDead, over.Due, over.ID) // an entry of nothing
	}
	if err := t.removeFinished(over.ID, &e); err != nil {
		return err
	}
	return t.dropTask(over.ID, &e)
}

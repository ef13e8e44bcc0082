package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// DeadWindow returns dead tasks in order of the time they died and id.
func (s *taskReader) DeadWindow(ctx context.Context, name store.Shard, w store.WindowQuery) ([]store.Entry, error) {
	var entries []store.Entry
	_, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		lower := appendPrefix(nil, t.sh.number, tableDead)
		if w.After != (store.Entry{}) {
			lower = append(appendTimeKey(nil, t.sh.number, tableDead, w.After.Due, w.After.ID), 0)
		}
		entries, err = (deadLetters{t}).entries(lower, afterMillis(t.sh.number, tableDead, w.To), w.Limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// deadLetters are the tasks that died, and those that expired.
type deadLetters struct{ *transaction }

// entries reads at most limit entries of the index of dead tasks.
func (t deadLetters) entries(lower, upper []byte, limit int) (entries []store.Entry, err error) {
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

// trim deletes a dead task, by its entry in the index.
func (t deadLetters) trim(over store.Entry) error {
	return t.trimFinished(tableDead, over, func(e *entry) bool {
		return (e.state == dead || e.state == expired) && e.finished == over.Due
	})
}

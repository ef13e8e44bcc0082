package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// A history lies under a key of its own, so that whoever moves a task need not read and
// write it. The entry of the task, and its hold, say whether there is one.

// History returns what the attempts of tasks left behind.
func (s *Store) History(ctx context.Context, name store.Shard, ids []string) ([]store.History, error) {
	all := make([]store.History, len(ids))
	_, err := s.change(ctx, name, access{}, func(t *turn) (err error) {
		for i, id := range ids {
			if all[i], err = t.history(id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// history reads what is kept of a task, nothing when that cannot be read.
func (t *turn) history(id string) (h store.History, err error) {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableHistory, id)
	err = t.dir.Read(t.key, func(b []byte) error {
		h, err = record.DecodeHistory(b)
		if err != nil {
			t.dir.Log.Error("unreadable history of a task is left out", "topic", t.sh.name.Topic, "shard", t.sh.name.N, "task", id, "err", err)
		}
		return nil
	})
	return h, err
}

// recordAttempt keeps the attempt of a hold that is over, and the result of a done task. The
// entry is written after it.
func (t *turn) recordAttempt(h *hold, e *entry, outcome store.Outcome, why string, result []byte) error {
	var past store.History
	if e.history {
		var err error
		if past, err = t.history(h.id); err != nil {
			return err
		}
	}
	worker, node := h.who()
	past.Remember(store.Attempt{
		Number:  h.attempt,
		Worker:  worker,
		Node:    node,
		Started: h.started,
		Ended:   t.ms,
		Outcome: outcome,
		Error:   why,
	})
	past.Result = result
	e.history = true
	b, err := record.AppendHistory(t.value[:0], past)
	if err != nil {
		return err
	}
	t.value = b
	t.key = appendIDKey(t.key[:0], t.sh.number, tableHistory, h.id)
	return t.set(t.key, t.value)
}

// forget deletes the history of a task. It may have been written any number of times.
func (t *turn) forget(id string) error {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableHistory, id)
	return t.remove(t.key, true)
}

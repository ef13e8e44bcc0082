package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Remove deletes pending tasks.
func (s taskWriter) Remove(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	results := make([]store.RemoveResult, len(ids))
	stamp, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		for i, id := range ids {
			if results[i], err = (editor{t}).remove(id); err != nil {
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

func (t editor) remove(id string) (store.RemoveResult, error) {
	return t.change(id, func(e *entry) error { return t.drop(id, e) })
}

// drop deletes a pending task.
func (t editor) drop(id string, e *entry) error {
	if err := t.tasks.removePending(e.due, id, e.traits()); err != nil {
		return err
	}
	if err := t.tellEnd(store.Change{Kind: store.ChangeDeleted, ID: id, Attempt: e.attempt}, e, nil, nil); err != nil {
		return err
	}
	if err := t.line.leave(e.traits(), e.standsAt(), id); err != nil {
		return err
	}
	return t.erase(id, e)
}

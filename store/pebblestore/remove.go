package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Remove deletes pending tasks.
func (s taskWriter) Remove(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return changeEach(ctx, s.base, name, access{}, len(ids), func(t *transaction, i int) (store.RemoveResult, error) {
		return editor{t}.remove(ids[i])
	})
}

func (t editor) remove(id string) (store.RemoveResult, error) {
	return t.change(id, func(e *entry) error { return t.drop(id, e) })
}

// drop deletes a pending task.
func (t editor) drop(id string, e *entry) error {
	if err := t.endPending(e, store.Change{Kind: store.ChangeDeleted, ID: id, Attempt: e.attempt}); err != nil {
		return err
	}
	return t.erase(id, e)
}

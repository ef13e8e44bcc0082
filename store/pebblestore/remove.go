package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Remove deletes pending tasks.
func (s taskWriter) Remove(ctx context.Context, name store.Shard, removals []store.Removal) (store.Stamp, []store.RemoveResult, error) {
	return changeEach(ctx, s.base, name, access{}, len(removals), func(t *transaction, i int) (store.RemoveResult, error) {
		return editor{t}.remove(&removals[i])
	})
}

func (t editor) remove(r *store.Removal) (result store.RemoveResult, err error) {
	stale := false
	result, err = t.change(r.ID, func(e *entry) error {
		if stale = !r.Takes(e.edits + 1); stale {
			return nil
		}
		return t.drop(r.ID, e)
	})
	if stale {
		result = store.RemoveResult{Status: store.Stale}
	}
	return result, err
}

// drop deletes a pending task.
func (t editor) drop(id string, e *entry) error {
	if err := t.endPending(e, store.Change{Kind: store.ChangeDeleted, ID: id, Attempt: e.attempt}); err != nil {
		return err
	}
	return t.erase(id, e)
}

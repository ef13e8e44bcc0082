package pebblestore

import (
	"bytes"
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Requeue makes dead tasks due now with Attempt 0 and no expiry.
func (s taskWriter) Requeue(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return changeDead(ctx, s.base, name, ids, deadLetters.requeue, store.RemoveResult{Status: store.NotFound})
}

// RemoveDead deletes dead tasks.
func (s taskWriter) RemoveDead(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	return changeDead(ctx, s.base, name, ids, deadLetters.remove, store.NotFound)
}

// changeDead does something to dead tasks; absent is the result of those that are not.
func changeDead[R any](ctx context.Context, s *base, name store.Shard, ids []string,
	do func(deadLetters, string, *entry) (R, error), absent R,
) (store.Stamp, []R, error) {
	return changeEach(ctx, s, name, access{}, len(ids), func(t *transaction, i int) (R, error) {
		id := ids[i]
		if err := t.item(id); err != nil {
			return absent, err
		}
		e, f, err := t.find(id)
		if err != nil || life.Requeue(e.phase(f)) != store.OK {
			return absent, err
		}
		return do(deadLetters{t}, id, &e)
	})
}

func (t deadLetters) requeue(id string, e *entry) (store.RemoveResult, error) {
	if err := e.check(id); err != nil {
		return store.RemoveResult{Status: store.WrongState}, nil
	}
	traits := bytes.Clone(e.traits())
	if key := record.Ordering(traits); key != "" && t.sh.meta.sealed {
		e.body = bytes.Clone(e.body) // what find returned is valid until the next one
		if closed, err := t.line.closedTo(key); closed || err != nil {
			return store.RemoveResult{Status: store.Closed}, err
		}
	}
	if err := t.line.enter(traits, t.ms, id); err != nil {
		return store.RemoveResult{}, err
	}
	if err := t.tasks.removeFinished(id, e); err != nil {
		return store.RemoveResult{}, err
	}
	e.state, e.due, e.attempt, e.expires = pending, t.ms, 0, 0
	if err := t.tasks.rewrite(id, e); err != nil {
		return store.RemoveResult{}, err
	}
	if err := t.tellEnd(store.Change{Kind: store.ChangeRequeued, ID: id, Due: e.due, Version: e.edits + 1}, e, nil, nil, nil); err != nil {
		return store.RemoveResult{}, err
	}
	result := store.RemoveResult{Status: store.OK, Due: e.due}
	result.Traits, _ = record.DecodeTraits(traits)
	return result, t.tasks.addPending(e.due, id, traits)
}

func (t deadLetters) remove(id string, e *entry) (store.Status, error) {
	if err := t.tasks.removeFinished(id, e); err != nil {
		return 0, err
	}
	t.log.tell(store.Change{Kind: store.ChangeDeleted, ID: id, Attempt: e.attempt}, e)
	return store.OK, t.erase(id, e)
}

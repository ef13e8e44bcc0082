package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Edit implements store.Writer.
func (m writer) Edit(ctx context.Context, s store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	return batch(ctx, m.core, s, access{}, edits, func(sh *shard, now clock, e store.Edit) store.EditResult {
		return sh.edit(&e, now)
	})
}

// edit changes one pending task.
func (sh *shard) edit(e *store.Edit, now clock) store.EditResult {
	r := sh.tasks[e.ID]
	if r == nil {
		return store.EditResult{Status: store.NotFound}
	}
	t := r.life()
	edited := life.Edit(&t, e, r.task.Version(), r.task.Fingerprint, now.Millis())
	switch edited.Status {
	case store.OK:
	case store.WrongState:
		return store.EditResult{Status: edited.Status, State: r.state(now)}
	case store.Stale:
		return store.EditResult{Status: edited.Status, Version: r.task.Version()}
	default:
		return store.EditResult{Status: edited.Status}
	}
	sh.take(r)
	was := r.task.Traits
	if e.Task != nil {
		r.task = revised(&r.task, e.Task)
		sh.index = sh.index.Add(e.Task.Indexed, false)
	}
	r.task.Edits++
	r.task.Due = edited.Due
	sh.put(r)
	sh.tell(r, store.Change{Kind: store.ChangeUpdated}, now)
	moves := edited.Moves || !was.Same(r.task.Traits)
	sh.woke = sh.woke || moves
	return store.EditResult{Status: store.OK, Due: edited.Due, Version: r.task.Version(), Traits: r.task.Traits, Moved: moves}
}

// revised returns t with what an edit may change taken from a copy of other.
func revised(t, other *store.Task) store.Task {
	c := copyTask(other)
	c.ID, c.Due, c.Created, c.Fingerprint = t.ID, t.Due, t.Created, t.Fingerprint
	c.Attempt, c.LastError, c.Edits, c.Tells = t.Attempt, t.LastError, t.Edits, t.Tells
	return c
}

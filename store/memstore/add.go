package memstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Add implements store.Writer.
func (m writer) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return batch(ctx, m.core, s, access{adds: true, open: true}, tasks, func(sh *shard, now clock, t *store.Task) store.AddResult {
		result := sh.add(t, now)
		sh.woke = sh.woke || result.Status == store.Added
		return result
	})
}

// HoldNew implements store.Owner.
func (m *owner) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	next := 0
	return batch(ctx, m.core, s, access{adds: true, open: true, fence: &f}, tasks, func(sh *shard, now clock, t *store.Task) store.AddResult {
		hold := holds[next]
		next++
		return sh.holdNew(t, hold, now)
	})
}

// add stores a copy of t as pending, unless a live task has its id.
func (sh *shard) add(t *store.Task, now clock) store.AddResult {
	result := store.AddResult{Status: store.Added, Due: t.Due}
	empty := len(sh.tasks) == 0
	if old := sh.tasks[t.ID]; old != nil {
		if status := life.Add(old.phase(), old.task.Fingerprint == t.Fingerprint); status != store.Added {
			return old.refuse(status, now)
		}
		result.Replaced = old.state(now)
		sh.take(old)
	}
	sh.index = sh.index.Add(t.Indexed, empty)
	r := &record{task: copyTask(t), kind: store.KindPending}
	r.task.Attempt, r.task.LastError, r.task.Edits = 0, "", 0
	sh.put(r)
	sh.tell(r, store.Change{Kind: store.ChangeEnqueued}, now)
	return result
}

// refuse tells why a task cannot be added: r lives under its id.
func (r *record) refuse(status store.Status, now clock) store.AddResult {
	result := store.AddResult{Status: status, Due: r.task.Due, State: r.state(now)}
	if status == store.Duplicate {
		result.Token = r.token
	}
	return result
}

// holdNew adds t and holds it when it is due.
func (sh *shard) holdNew(t *store.Task, h store.Hold, now clock) store.AddResult {
	result := sh.add(t, now)
	if result.Status != store.Added {
		return result
	}
	r := sh.tasks[t.ID]
	if !life.HoldsNew(t, now.Millis()) {
		sh.woke = true // stays pending
		return result
	}
	sh.hold(r, h, now)
	result.Status, result.Deadline, result.Attempt = store.Held, r.deadline, r.task.Attempt
	return result
}

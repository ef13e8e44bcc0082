package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Add inserts tasks that are absent by id.
func (s taskWriter) Add(ctx context.Context, name store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return changeEach(ctx, s.base, name, access{grows: true}, len(tasks), func(t *transaction, i int) (store.AddResult, error) {
		return adder{transaction: t}.add(tasks[i], nil)
	})
}

// HoldNew adds tasks, and holds those that are due.
func (s *shardOwner) HoldNew(ctx context.Context, name store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	if len(tasks) != len(holds) {
		return store.Stamp{}, nil, fmt.Errorf("%d holds for %d tasks", len(holds), len(tasks))
	}
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.change(ctx, name, access{grows: true, fence: &f}, func(t *transaction) (err error) {
		a := adder{t, &holder{transaction: t, coming: len(tasks)}}
		for i, task := range tasks {
			if results[i], err = a.add(task, &holds[i]); err != nil {
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

// adder adds tasks.
type adder struct {
	*transaction
	holds *holder // of those that are to be held at once
}

// add adds one task. With a hold, and when it is due, it is held at once.
func (a adder) add(task *store.Task, h *store.Hold) (store.AddResult, error) {
	a.key = appendIDKey(a.key[:0], a.sh.number, tableTasks, task.ID)
	if a.ids.isNew(a.key) {
		return a.insert(task, h, false)
	}
	if a.ids.wasNew(a.key) {
		if err := a.repeat(); err != nil {
			return store.AddResult{}, err
		}
	}
	if err := a.item(task.ID); err != nil {
		return store.AddResult{}, err
	}
	old, f, err := a.find(task.ID)
	switch {
	case err != nil:
		return store.AddResult{}, err
	case f == absent:
		return a.insert(task, h, false)
	}
	same := !old.unreadable && old.fingerprint == task.Fingerprint
	if status := life.Add(old.phase(f), same); status != store.Added {
		return a.present(task, &old, status), nil
	}
	return a.again(task, h, &old)
}

// again adds a task in the place of a finished one.
func (a adder) again(task *store.Task, h *store.Hold, old *entry) (store.AddResult, error) {
	if err := a.tasks.removeFinished(task.ID, old); err != nil {
		return store.AddResult{}, err
	}
	if old.history {
		if err := a.history.forget(task.ID); err != nil {
			return store.AddResult{}, err
		}
	}
	if old.journal {
		if err := a.journals.forget(task.ID); err != nil {
			return store.AddResult{}, err
		}
	}
	if err := a.attributes.drop(task.ID, old.attributes()); err != nil {
		return store.AddResult{}, err
	}
	result, err := a.insert(task, h, true)
	result.Replaced = old.stateAt(a.ms)
	return result, err
}

// insert adds a task whose id is free; rewritten says that a finished one had it.
func (a adder) insert(task *store.Task, h *store.Hold, rewritten bool) (store.AddResult, error) {
	result := store.AddResult{Status: store.Added, Due: task.Due}
	if err := a.writeTask(task, 0, rewritten); err != nil {
		return result, err
	}
	a.log.tellNew(store.Change{Kind: store.ChangeEnqueued, Version: 1}, task)
	if h == nil || !life.HoldsNew(task, a.ms) {
		traits := record.AppendTraits(nil, task.Traits)
		if err := a.line.enter(traits, task.Due, task.ID); err != nil {
			return result, err
		}
		return result, a.tasks.addPending(task.Due, task.ID, traits)
	}
	begun := a.holds.newHold(task.ID, h, &entry{stamp: a.stamp(), visibility: task.Visibility, rewritten: rewritten, indexed: task.Indexed.In(task.Attributes), tells: task.Tells})
	a.next.begin(begun)
	a.log.tellNew(store.Change{Kind: store.ChangeHeld, Attempt: begun.attempt, Version: 1, Worker: h.Worker}, task)
	result.Status, result.Deadline, result.Attempt = store.Held, begun.deadline, begun.attempt
	return result, nil
}

// writeTask writes the entry of a task that begins anew, after so many edits.
func (a adder) writeTask(task *store.Task, edits int64, rewritten bool) (err error) {
	e := entry{
		edits:       edits,
		due:         task.Due,
		fingerprint: task.Fingerprint,
		stamp:       a.stamp(),
		expires:     task.Expires,
		visibility:  task.Visibility,
		rewritten:   rewritten,
		indexed:     task.Indexed.In(task.Attributes),
		tells:       task.Tells,
	}
	a.next.newer = a.next.newer || e.tells != ""
	a.attributes.spoke(task.Indexed)
	if err := a.attributes.add(task.ID, e.indexed.Of(task.Attributes)); err != nil {
		return err
	}
	a.key = appendIDKey(a.key[:0], a.sh.number, tableTasks, task.ID)
	a.value, err = record.AppendBody(e.appendHeader(a.value[:0]), task)
	if err != nil {
		return err
	}
	if err := a.set(a.key, a.value); err != nil {
		return err
	}
	a.keep(a.key, a.value, &e)
	return nil
}

// present is the outcome of adding a task whose id is taken by a live one.
func (a adder) present(task *store.Task, old *entry, status store.Status) store.AddResult {
	result := store.AddResult{Status: status, Due: old.due, State: old.stateAt(a.ms)}
	if h := a.sh.holds.get(task.ID); h != nil {
		result.State = store.StateRunning
		if status == store.Duplicate {
			result.Token, result.Deadline, result.Attempt = h.token, h.deadline, h.attempt
		}
	}
	return result
}

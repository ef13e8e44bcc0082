package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Add inserts tasks that are absent by id.
func (s *Store) Add(ctx context.Context, name store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.change(ctx, name, access{grows: true}, func(t *turn) (err error) {
		for i, task := range tasks {
			if results[i], err = t.add(task, nil); err != nil {
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

// HoldNew adds tasks, and holds those that are due.
func (s *Store) HoldNew(ctx context.Context, name store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	if len(tasks) != len(holds) {
		return store.Stamp{}, nil, fmt.Errorf("%d holds for %d tasks", len(holds), len(tasks))
	}
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.change(ctx, name, access{grows: true, fence: &f}, func(t *turn) (err error) {
		t.coming = len(tasks)
		for i, task := range tasks {
			if results[i], err = t.add(task, &holds[i]); err != nil {
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

// add adds one task. With a hold, and when it is due, it is held at once.
func (t *turn) add(task *store.Task, h *store.Hold) (store.AddResult, error) {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, task.ID)
	if t.isNew() {
		return t.insert(task, h, false)
	}
	if t.again() {
		if err := t.repeat(); err != nil {
			return store.AddResult{}, err
		}
	}
	if err := t.item(task.ID); err != nil {
		return store.AddResult{}, err
	}
	old, f, err := t.find(task.ID)
	switch {
	case err != nil:
		return store.AddResult{}, err
	case f == absent:
		return t.insert(task, h, false)
	}
	same := !old.unreadable && old.fingerprint == task.Fingerprint
	if status := life.Add(old.phase(f), same); status != store.Added {
		return t.present(task, &old, status), nil
	}
	if err := t.removeFinished(task.ID, &old); err != nil {
		return store.AddResult{}, err
	}
	if old.history {
		if err := t.forget(task.ID); err != nil {
			return store.AddResult{}, err
		}
	}
	if err := t.removeEntries(task.ID, old.attributes()); err != nil {
		return store.AddResult{}, err
	}
	result, err := t.insert(task, h, true)
	result.Replaced = old.stateAt(t.ms)
	return result, err
}

// insert adds a task whose id is free; rewritten says that a finished one had it.
func (t *turn) insert(task *store.Task, h *store.Hold, rewritten bool) (store.AddResult, error) {
	result := store.AddResult{Status: store.Added, Due: task.Due}
	if err := t.addTask(task, rewritten); err != nil {
		return result, err
	}
	t.tellNew(store.Change{Kind: store.ChangeEnqueued, Version: 1}, task)
	if h == nil || !life.HoldsNew(task, t.ms) {
		traits := record.AppendTraits(nil, task.Traits)
		if err := t.lineUp(traits, task.Due, task.ID); err != nil {
			return result, err
		}
		return result, t.addPending(task.Due, task.ID, traits)
	}
	begun := t.newHold(task.ID, h, &entry{stamp: t.stamp(), visibility: task.Visibility, rewritten: rewritten, indexed: task.Indexed.In(task.Attributes)})
	t.beginHold(begun)
	t.tellNew(store.Change{Kind: store.ChangeHeld, Attempt: begun.attempt, Version: 1, Worker: h.Worker}, task)
	result.Status, result.Deadline, result.Attempt = store.Held, begun.deadline, begun.attempt
	return result, nil
}

// addTask writes the entry of a new task.
func (t *turn) addTask(task *store.Task, rewritten bool) (err error) {
	return t.writeTask(task, 0, rewritten)
}

// writeTask writes the entry of a task that begins anew, after so many edits.
func (t *turn) writeTask(task *store.Task, edits int64, rewritten bool) (err error) {
	e := entry{
		edits:       edits,
		due:         task.Due,
		fingerprint: task.Fingerprint,
		stamp:       t.stamp(),
		expires:     task.Expires,
		visibility:  task.Visibility,
		rewritten:   rewritten,
		indexed:     task.Indexed.In(task.Attributes),
	}
	t.spoke(task.Indexed)
	if err := t.addEntries(task.ID, e.indexed.Of(task.Attributes)); err != nil {
		return err
	}
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, task.ID)
	t.value, err = record.AppendBody(e.appendHeader(t.value[:0]), task)
	if err != nil {
		return err
	}
	return t.set(t.key, t.value)
}

// present is the outcome of adding a task whose id is taken by a live one.
func (t *turn) present(task *store.Task, old *entry, status store.Status) store.AddResult {
	result := store.AddResult{Status: status, Due: old.due, State: old.stateAt(t.ms)}
	if h := t.sh.holds.get(task.ID); h != nil {
		result.State = store.StateRunning
		if status == store.Duplicate {
			result.Token, result.Deadline, result.Attempt = h.token, h.deadline, h.attempt
		}
	}
	return result
}

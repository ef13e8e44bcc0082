package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// AddKeyed adds tasks whose keys are free.
func (s taskWriter) AddKeyed(ctx context.Context, name store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	results := make([]store.AddResult, len(tasks))
	stamp, err := s.change(ctx, name, access{grows: true, closed: true}, func(t *transaction) (err error) {
		k := keyedAdder{adder{transaction: t}, marks{t}}
		for i, task := range tasks {
			if err := t.repeat(); err != nil { // each finds what those before it did
				return err
			}
			if results[i], err = k.addKeyed(task); err != nil {
				return err
			}
		}
		if err := t.repeat(); err != nil {
			return err
		}
		_, err = k.marks.trim(2 * len(tasks))
		return err
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// keyedAdder adds tasks under idempotency keys, and those of ordering keys where others of
// theirs are.
type keyedAdder struct {
	adder
	marks marks
}

func (k keyedAdder) addKeyed(task *store.Task) (store.AddResult, error) {
	if task.Key == nil {
		return k.addOrdered(task)
	}
	m, err := k.marks.get(task.Mark())
	if err != nil {
		return store.AddResult{}, err
	}
	if m == nil {
		return k.addFree(task, nil, 0)
	}
	h, err := k.marks.holder(m)
	switch {
	case err != nil:
		return store.AddResult{}, err
	case !k.marks.taken(m, &h):
		return k.addFree(task, m, 0)
	}
	known := store.AddResult{Status: store.Duplicate, ID: m.id, Due: m.due, State: h.state}
	if h.state.Pending() || h.state == store.StateRunning {
		known.Due = h.due
	}
	same := h.found == readable && !h.unreadable && h.fingerprint == task.Fingerprint
	again := m.id == task.ID || m.past.Has(task.ID)
	switch status := life.KeyConflict(task.Key, h.phase, again, same); status {
	case store.Duplicate, store.Taken:
		known.Status = status
		return known, nil
	case store.Passed:
		result, err := k.addFree(task, m, m.until)
		if result.Status == store.Added {
			result.Status = store.Passed
		}
		return result, err
	}
	return k.replaceKeyed(task, m, &h)
}

// addFree adds a task under a key that is free, or passes to it until the given
// moment. old is what stands under the key.
func (k keyedAdder) addFree(task *store.Task, old *keyMark, until store.Millis) (store.AddResult, error) {
	if closed, err := k.line.closedTo(task.Traits.Ordering()); closed || err != nil {
		return store.AddResult{Status: store.Closed, ID: task.ID}, err
	}
	result, err := k.add(task, nil)
	if result.ID = task.ID; err != nil || result.Status != store.Added {
		result.Token, result.Deadline, result.Attempt = store.Token{}, 0, 0
		return result, err
	}
	m := &keyMark{id: task.ID, due: task.Due, until: until}
	if until == 0 && task.Key.Window > 0 {
		m.until = k.in(task.Key.Window)
	}
	if m.look = m.until; m.look == 0 {
		m.look = store.KeyLook(k.ms, task.Due)
	}
	if old != nil {
		m.past = old.past.Add(old.id)
		if err := k.remove(appendLookKey(nil, k.sh.number, old.look, task.Mark()), true); err != nil {
			return result, err
		}
	}
	return result, k.marks.put(task.Mark(), m)
}

// replaceKeyed gives the pending task that has a key what another one asks for.
func (k keyedAdder) replaceKeyed(task *store.Task, m *keyMark, h *keyHolder) (store.AddResult, error) {
	if err := k.tasks.removePending(h.due, m.id, h.traits()); err != nil {
		return store.AddResult{}, err
	}
	if h.history {
		if err := k.history.forget(m.id); err != nil {
			return store.AddResult{}, err
		}
	}
	if h.journal {
		if err := k.journals.forget(m.id); err != nil {
			return store.AddResult{}, err
		}
	}
	if err := k.attributes.drop(m.id, h.attributes()); err != nil {
		return store.AddResult{}, err
	}
	if err := k.line.leave(h.traits(), h.standsAt(), m.id); err != nil {
		return store.AddResult{}, err
	}
	if err := k.leave(store.Ended{ID: m.id, Kind: store.ChangeDeleted, Attempt: h.attempt}, &h.entry, nil); err != nil {
		return store.AddResult{}, err
	}
	next := *task
	next.ID = m.id
	if err := k.writeTask(&next, h.edits+1, true); err != nil {
		return store.AddResult{}, err
	}
	k.log.tellNew(store.Change{Kind: store.ChangeUpdated, Version: h.edits + 2}, &next)
	traits := record.AppendTraits(nil, next.Traits)
	if err := k.tasks.addPending(next.Due, m.id, traits); err != nil {
		return store.AddResult{}, err
	}
	if err := k.line.enter(traits, next.Due, m.id); err != nil {
		return store.AddResult{}, err
	}
	m.past, m.due = m.past.Add(task.ID), task.Due
	if m.until == 0 {
		if err := k.remove(appendLookKey(nil, k.sh.number, m.look, task.Mark()), true); err != nil {
			return store.AddResult{}, err
		}
		m.look = store.KeyLook(k.ms, task.Due)
	}
	return store.AddResult{Status: store.Replaced, ID: m.id, Due: next.Due, State: store.PendingState(next.Due, k.ms, 0)}, k.marks.put(task.Mark(), m)
}

// addOrdered adds a task without an idempotency key where others of its ordering key are.
func (k keyedAdder) addOrdered(task *store.Task) (store.AddResult, error) {
	result := store.AddResult{Status: store.Closed, ID: task.ID}
	e, f, err := k.find(task.ID)
	if err != nil {
		return result, err
	}
	if live := f == broken || f == readable && e.state == pending; !live {
		if closed, err := k.line.closedTo(task.Traits.Ordering()); closed || err != nil {
			return result, err
		}
	}
	result, err = k.add(task, nil)
	result.ID, result.Token, result.Deadline, result.Attempt = task.ID, store.Token{}, 0, 0
	return result, err
}

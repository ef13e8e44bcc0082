package pebblestore

import (
	"bytes"
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Edit changes pending tasks in place.
func (s taskWriter) Edit(ctx context.Context, name store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	results := make([]store.EditResult, len(edits))
	stamp, err := s.change(ctx, name, access{}, func(t *transaction) error {
		pending := editor{t}
		for i := range edits {
			result, err := pending.change(edits[i].ID, func(e *entry) (err error) {
				results[i], err = pending.edit(&edits[i], e)
				return err
			})
			if err != nil {
				return err
			}
			if result.Status != store.OK {
				results[i] = store.EditResult{Status: result.Status, State: result.State}
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// editor changes tasks that are pending.
type editor struct{ *transaction }

// change does something to a pending task. One that cannot be read is left alone
// until it is held.
func (t editor) change(id string, do func(*entry) error) (store.RemoveResult, error) {
	if err := t.item(id); err != nil {
		return store.RemoveResult{}, err
	}
	e, phase, state, err := t.look(id)
	if err != nil {
		return store.RemoveResult{}, err
	}
	switch status := life.Change(phase); status {
	case store.OK:
	case store.WrongState:
		return store.RemoveResult{Status: status, State: state}, nil
	default:
		return store.RemoveResult{Status: status}, nil
	}
	return store.RemoveResult{Status: store.OK}, do(&e)
}

// look reads a task, and says where in its life it is.
func (t editor) look(id string) (e entry, phase life.Phase, state store.State, err error) {
	e, f, err := t.find(id)
	if f != absent && t.sh.holds.get(id) != nil {
		return e, life.Running, store.StateRunning, err
	}
	return e, e.phase(f), e.stateAt(t.ms), err
}

// edit changes the entry of a pending task.
func (t editor) edit(edit *store.Edit, e *entry) (result store.EditResult, err error) {
	rules := e.life(readable)
	edited := life.Edit(&rules, edit, e.edits+1, e.fingerprint, t.ms)
	switch edited.Status {
	case store.OK:
	case store.Stale:
		return store.EditResult{Status: edited.Status, Version: e.edits + 1}, nil
	default:
		return store.EditResult{Status: edited.Status}, nil
	}
	was, stood, due, moves := e.due, e.standsAt(), edited.Due, edited.Moves
	before, had := bytes.Clone(e.traits()), e.attributes()
	if task := edit.Task; task != nil {
		e.expires, e.visibility = task.Expires, task.Visibility
		e.indexed = task.Indexed.In(task.Attributes)
		t.attributes.spoke(task.Indexed)
		if e.body, err = record.AppendBody(nil, task); err != nil {
			return result, err
		}
	}
	if err := t.attributes.change(edit.ID, had, e.attributes()); err != nil {
		return result, err
	}
	e.edits++
	e.due = due
	if err := t.tasks.rewrite(edit.ID, e); err != nil {
		return result, err
	}
	t.log.tell(store.Change{Kind: store.ChangeUpdated, ID: edit.ID, Due: due, Attempt: e.attempt, Version: e.edits + 1}, e)
	after := e.traits()
	if moves = moves || !bytes.Equal(before, after); moves {
		if err := t.tasks.removePending(was, edit.ID, before); err != nil {
			return result, err
		}
		if err := t.tasks.addPending(due, edit.ID, after); err != nil {
			return result, err
		}
		if err := t.line.leave(before, stood, edit.ID); err != nil {
			return result, err
		}
		if err := t.line.enter(after, e.standsAt(), edit.ID); err != nil {
			return result, err
		}
	}
	result = store.EditResult{Status: store.OK, Due: due, Version: e.edits + 1, Moved: moves}
	result.Traits, _ = record.DecodeTraits(after) // what is not readable is dead-lettered by Hold
	return result, nil
}

package pebblestore

import (
	"bytes"
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Edit changes pending tasks in place.
func (s *Store) Edit(ctx context.Context, name store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	results := make([]store.EditResult, len(edits))
	stamp, err := s.change(ctx, name, access{}, func(t *turn) error {
		for i := range edits {
			result, err := t.modify(edits[i].ID, func(e *entry) (err error) {
				results[i], err = t.edit(&edits[i], e)
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

// edit changes the entry of a pending task.
func (t *turn) edit(edit *store.Edit, e *entry) (result store.EditResult, err error) {
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
		t.spoke(task.Indexed)
		if e.body, err = record.AppendBody(nil, task); err != nil {
			return result, err
		}
	}
	if err := t.changeEntries(edit.ID, had, e.attributes()); err != nil {
		return result, err
	}
	e.edits++
	e.due = due
	if err := t.rewriteTask(edit.ID, e); err != nil {
		return result, err
	}
	t.tell(store.Change{Kind: store.ChangeUpdated, ID: edit.ID, Due: due, Attempt: e.attempt, Version: e.edits + 1}, e)
	after := e.traits()
	if moves = moves || !bytes.Equal(before, after); moves {
		if err := t.removePending(was, edit.ID, before); err != nil {
			return result, err
		}
		if err := t.addPending(due, edit.ID, after); err != nil {
			return result, err
		}
		if err := t.stepOut(before, stood, edit.ID); err != nil {
			return result, err
		}
		if err := t.lineUp(after, e.standsAt(), edit.ID); err != nil {
			return result, err
		}
	}
	result = store.EditResult{Status: store.OK, Due: due, Version: e.edits + 1, Moved: moves}
	result.Traits, _ = record.DecodeTraits(after) // what is not readable is dead-lettered by Hold
	return result, nil
}

package sealstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// Get implements store.Reader. Tasks that cannot be read stay Encrypted.
func (s *Store) Get(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	stamp, all, err := s.Inner.Get(ctx, shard, ids)
	if err != nil {
		return stamp, all, err
	}
	return stamp, all, s.openAll(ctx, shard, all)
}

// List implements store.Reader. Tasks that cannot be read stay Encrypted.
func (s *Store) List(ctx context.Context, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
	all, next, err := s.Inner.List(ctx, shard, kind, cursor, limit)
	if err != nil {
		return all, next, err
	}
	return all, next, s.openAll(ctx, shard, all)
}

// openAll opens tasks that are looked at. It fails only when the registry cannot be asked.
func (s *Store) openAll(ctx context.Context, shard store.Shard, all []store.Snapshot) error {
	open := s.keys.opener(shard.Topic)
	for i := range all {
		err := open.task(ctx, &all[i].Task)
		if err != nil && !errors.Is(err, errCorrupt) && !errors.Is(err, ErrUnknownKey) {
			return err
		}
		if err != nil {
			veil(&all[i].Task)
		}
	}
	return nil
}

// veil takes out of a task what cannot be read.
func veil(t *store.Task) {
	t.Payload, t.Encrypted = nil, true
	if t.RunOf != nil {
		run := *t.RunOf
		run.RecipientData = nil
		t.RunOf = &run
	}
	if t.StepOf != nil {
		step := *t.StepOf
		step.Input, step.Inputs, step.Journal = nil, nil, nil
		t.StepOf = &step
	}
}

// History implements store.Reader.
func (s *Store) History(ctx context.Context, shard store.Shard, ids []string) ([]store.History, error) {
	all, err := s.Inner.History(ctx, shard, ids)
	if err != nil {
		return all, err
	}
	open := s.keys.opener(shard.Topic)
	for i := range all {
		h := &all[i]
		for k := range h.Attempts {
			h.Attempts[k].Error = open.shown(ctx, h.Attempts[k].Error)
		}
		if h.Result, err = open.value(ctx, h.Result); err != nil {
			return nil, fmt.Errorf("result of task %q: %w", ids[i], err)
		}
	}
	return all, nil
}

// Journal implements store.Reader.
func (s *Store) Journal(ctx context.Context, shard store.Shard, id string) ([]store.JournalEntry, error) {
	entries, err := s.Inner.Journal(ctx, shard, id)
	if err != nil {
		return entries, err
	}
	open := s.keys.opener(shard.Topic)
	if err := open.journal(ctx, entries); err != nil {
		return nil, fmt.Errorf("journal of task %q: %w", id, err)
	}
	return entries, nil
}

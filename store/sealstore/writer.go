package sealstore

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Add implements store.Writer.
func (s *Store) Add(ctx context.Context, shard store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.Add(ctx, shard, seal.tasks(tasks))
}

// AddKeyed implements store.Writer.
func (s *Store) AddKeyed(ctx context.Context, shard store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.AddKeyed(ctx, shard, seal.tasks(tasks))
}

// Ack implements store.Writer.
func (s *Store) Ack(ctx context.Context, shard store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.Ack(ctx, shard, seal.acks(acks), retention)
}

// Nack implements store.Writer.
func (s *Store) Nack(ctx context.Context, shard store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.Nack(ctx, shard, seal.nacks(nacks))
}

// Checkpoint implements store.Writer.
func (s *Store) Checkpoint(ctx context.Context, shard store.Shard, checkpoints []store.Checkpoint) (store.Stamp, []store.Status, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.Checkpoint(ctx, shard, seal.checkpoints(checkpoints))
}

// Edit implements store.Writer. An edit with a task that could not be read is refused.
func (s *Store) Edit(ctx context.Context, shard store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	sealed := make([]store.Edit, len(edits))
	for i, e := range edits {
		if e.Task != nil {
			if e.Task.Encrypted {
				return store.Stamp{}, nil, fmt.Errorf("edit task %q, which cannot be read: %w", e.ID, ErrUnknownKey)
			}
			e.Task = seal.tasks([]*store.Task{e.Task})[0]
		}
		sealed[i] = e
	}
	return s.Inner.Edit(ctx, shard, sealed)
}

package shard

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// checkpointsDone is what a store call of checkpoints came to.
type checkpointsDone struct {
	batch    []settleItem
	statuses []store.Status
	err      error
}

// checkpointSize is what counts of a checkpoint.
func checkpointSize(it *settleItem) int { return len(it.ask.Name) + len(it.ask.Value) }

func (s *settler) storeCheckpoints(ctx context.Context, batch []settleItem) *checkpointsDone {
	m := &checkpointsDone{batch: batch}
	checkpoints := make([]store.Checkpoint, len(batch))
	for i := range batch {
		ask := batch[i].ask
		checkpoints[i] = store.Checkpoint{ID: ask.ID, Token: batch[i].token(), JournalEntry: store.JournalEntry{Name: ask.Name, Value: ask.Value}}
	}
	_, m.err = s.Resolve(ctx, func() (err error) {
		_, m.statuses, err = s.store.Checkpoint(ctx, s.id, checkpoints)
		return err
	})
	return m
}

func (m *checkpointsDone) answer() {
	if m.err != nil {
		refuseAll(m.batch, problem.FromStore(m.err))
		return
	}
	for i, status := range m.statuses {
		switch it := &m.batch[i]; status {
		case store.OK, store.Already:
			it.finish(func(r *subscription.Settled) { r.Already = status == store.Already })
		case store.JournalFull:
			it.refuse(problem.JournalFull(it.ask.ID))
		default:
			it.refuse(problem.HoldLost(it.ask.ID))
		}
	}
}

func (s *settler) onCheckpoints(m *checkpointsDone) {
	for i, status := range m.statuses {
		switch it := &m.batch[i]; status {
		case store.OK:
			s.Metrics.JournalEntries.Inc()
		case store.Already, store.JournalFull:
		default:
			s.holds.unregister(it.ask.ID, it.token())
		}
	}
	s.claim.noteError(m.err)
	s.scheduleFlush()
}

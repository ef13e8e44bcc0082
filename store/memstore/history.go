package memstore

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// History implements store.Reader.
func (m reader) History(ctx context.Context, s store.Shard, ids []string) ([]store.History, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	all := make([]store.History, len(ids))
	for i, id := range ids {
		if r := sh.tasks[id]; r != nil && r.past != nil {
			all[i] = store.History{Attempts: slices.Clone(r.past.Attempts), Result: slices.Clone(r.past.Result)}
		}
	}
	return all, nil
}

// remember appends the attempt of the running record r, which is over now, to its history.
// How it ended is in a.
func (r *record) remember(a store.Attempt, now clock) {
	if r.past == nil {
		r.past = new(store.History)
	}
	a.Number, a.Worker, a.Node = r.task.Attempt, r.worker, r.node
	a.Due, a.Started, a.Ended = r.task.Due, r.started, now.Millis()
	r.past.Remember(a)
}

// Cancel implements store.Writer.
func (m writer) Cancel(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.CancelResult, error) {
	return batch(ctx, m.core, s, access{}, ids, func(sh *shard, now clock, id string) store.CancelResult {
		return sh.cancel(id, now)
	})
}

// cancel asks for a running task to be ended.
func (sh *shard) cancel(id string, now clock) store.CancelResult {
	r := sh.tasks[id]
	switch status := life.Cancel(r.phase()); status {
	case store.OK:
	case store.WrongState:
		return store.CancelResult{Status: status, State: r.state(now)}
	default:
		return store.CancelResult{Status: status}
	}
	if !r.cancelled {
		r.cancelled = true
		sh.tell(r, store.Change{Kind: store.ChangeCancelRequested, Worker: r.worker}, now)
	}
	return store.CancelResult{Status: store.OK, Token: r.token}
}

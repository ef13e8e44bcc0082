package loglevel

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Store is a store with lines of what becomes of its tasks. Everything else passes through.
func (t *Tasks) Store(st store.Store) store.Store { return lined{st, t} }

// Cells is Store for the cells of a store.
func (t *Tasks) Cells(cells store.Cells) store.Cells { return linedCells{cells, t} }

// lined is a store the calls of which are logged by task.
type lined struct {
	store.Store
	tasks *Tasks
}

func (l lined) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := l.Store.Add(ctx, s, tasks)
	l.tasks.added(ctx, s, tasks, nil, results)
	return stamp, results, err
}

func (l lined) AddKeyed(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := l.Store.AddKeyed(ctx, s, tasks)
	l.tasks.added(ctx, s, tasks, nil, results)
	return stamp, results, err
}

func (l lined) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := l.Store.HoldNew(ctx, s, f, tasks, holds)
	l.tasks.added(ctx, s, tasks, holds, results)
	return stamp, results, err
}

// added writes lines of new tasks, and of those that were held at once.
func (t *Tasks) added(ctx context.Context, s store.Shard, tasks []*store.Task, holds []store.Hold, results []store.AddResult) {
	if len(results) != len(tasks) || !t.ofTasks(ctx, s.Topic) {
		return
	}
	for i := range results {
		r := &results[i]
		switch r.Status {
		case store.Added, store.Held, store.Replaced, store.Passed:
			t.write(ctx, s, line{message: "task enqueued", task: tasks[i].ID, due: r.Due})
		}
		if r.Status == store.Held {
			t.write(ctx, s, line{message: "task held", task: tasks[i].ID, attempt: r.Attempt, worker: holds[i].Worker, due: r.Due, reached: t.now()})
		}
	}
}

func (l lined) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	stamp, results, err := l.Store.Hold(ctx, s, f, holds)
	if !l.tasks.ofTasks(ctx, s.Topic) {
		return stamp, results, err
	}
	now := l.tasks.now()
	for i := range results {
		switch r := &results[i]; r.Status {
		case store.OK:
			l.tasks.write(ctx, s, line{message: "task held", task: r.Task.ID, attempt: r.Task.Attempt, worker: holds[i].Worker, due: r.Due, reached: now})
		case store.Expired:
			l.tasks.write(ctx, s, line{message: "task settled", task: holds[i].ID, outcome: "expired"})
		case store.Corrupt:
			l.tasks.write(ctx, s, line{message: "task settled", task: holds[i].ID, outcome: "unreadable"})
		}
	}
	return stamp, results, err
}

func (l lined) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	stamp, results, err := l.Store.Ack(ctx, s, acks, retention)
	if !l.tasks.ofTasks(ctx, s.Topic) {
		return stamp, results, err
	}
	for i, status := range results {
		if status == store.OK {
			l.tasks.write(ctx, s, line{message: "task settled", task: acks[i].ID, outcome: outcomeOf(store.OutcomeAcked)})
		}
	}
	return stamp, results, err
}

func (l lined) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	stamp, results, err := l.Store.Nack(ctx, s, nacks)
	l.tasks.nacked(ctx, s, "task settled", nacks, results)
	return stamp, results, err
}

func (l lined) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	stamp, results, err := l.Store.Recover(ctx, s, f, nacks)
	l.tasks.nacked(ctx, s, "task recovered", nacks, results)
	return stamp, results, err
}

// nacked writes lines of holds that ended without success. A task that is not due again is dead.
func (t *Tasks) nacked(ctx context.Context, s store.Shard, message string, nacks []store.Nack, results []store.NackResult) {
	if !t.ofTasks(ctx, s.Topic) {
		return
	}
	for i := range results {
		if r := &results[i]; r.Status == store.OK {
			t.write(ctx, s, line{message: message, task: nacks[i].ID, attempt: r.Attempt, due: r.Due, outcome: outcomeOf(nacks[i].Outcome)})
		}
	}
}

func (l lined) Edit(ctx context.Context, s store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	stamp, results, err := l.Store.Edit(ctx, s, edits)
	if !l.tasks.ofTasks(ctx, s.Topic) {
		return stamp, results, err
	}
	for i := range results {
		if r := &results[i]; r.Status == store.OK && r.Moved {
			l.tasks.write(ctx, s, line{message: "task moved", task: edits[i].ID, due: r.Due})
		}
	}
	return stamp, results, err
}

type cellStore = store.Cells

// linedCells are the cells of a store, the commits of which are logged by task.
type linedCells struct {
	cellStore
	tasks *Tasks
}

func (l linedCells) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	stamp, results, err := l.cellStore.Commit(ctx, s, f, commits)
	if !l.tasks.ofTasks(ctx, s.Topic) {
		return stamp, results, err
	}
	for i := range results {
		if results[i].Status != store.OK {
			continue
		}
		for _, task := range commits[i].Adds {
			l.tasks.write(ctx, s, line{message: "task enqueued", task: task.ID, due: task.Due})
		}
		for _, a := range commits[i].Acks {
			l.tasks.write(ctx, s, line{message: "task settled", task: a.ID, outcome: outcomeOf(store.OutcomeAcked)})
		}
	}
	return stamp, results, err
}

package meter

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/store"
)

// Store returns a store whose calls are counted. What is repeated, as an answer was lost, is counted
// by what the last answer says.
func (m *Meter) Store(st store.Store) store.Store { return counted{st, m} }

// Cells returns cells whose commits are counted.
func (m *Meter) Cells(cells store.Cells) store.Cells { return countedCells{cells, m} }

// cellStore is the role under another name: one field cannot be called as its method.
type cellStore = store.Cells

// counted is a store whose calls are counted where they change what a pulse is of.
type counted struct {
	store.Store
	meter *Meter
}

func (c counted) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := c.Store.Add(ctx, s, tasks)
	c.added(s, results)
	return stamp, results, err
}

func (c counted) AddKeyed(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := c.Store.AddKeyed(ctx, s, tasks)
	c.added(s, results)
	return stamp, results, err
}

func (c counted) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := c.Store.HoldNew(ctx, s, f, tasks, holds)
	c.added(s, results)
	return stamp, results, err
}

func (c counted) added(s store.Shard, results []store.AddResult) {
	var t pulse.Tally
	for i := range results {
		switch results[i].Status {
		case store.Added, store.Held, store.Replaced, store.Passed:
			t[pulse.Enqueued]++
		}
	}
	c.meter.Count(s.Topic, t)
}

func (c counted) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	stamp, results, err := c.Store.Hold(ctx, s, f, holds)
	var t pulse.Tally
	for i := range results {
		if s := results[i].Status; s == store.Expired || s == store.Corrupt {
			t[pulse.Dead]++
		}
	}
	c.meter.Count(s.Topic, t)
	return stamp, results, err
}

func (c counted) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	stamp, results, err := c.Store.Ack(ctx, s, acks, retention)
	var t pulse.Tally
	for _, status := range results {
		if status == store.OK {
			t[pulse.Acked]++
		}
	}
	c.meter.Count(s.Topic, t)
	return stamp, results, err
}

func (c counted) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	stamp, results, err := c.Store.Nack(ctx, s, nacks)
	c.nacked(s, nacks, results)
	return stamp, results, err
}

func (c counted) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	stamp, results, err := c.Store.Recover(ctx, s, f, nacks)
	c.nacked(s, nacks, results)
	return stamp, results, err
}

// nacked counts holds that ended without success: those of attempts that count have failed.
func (c counted) nacked(s store.Shard, nacks []store.Nack, results []store.NackResult) {
	var t pulse.Tally
	for i := range results {
		if results[i].Status != store.OK {
			continue
		}
		if !nacks[i].Uncount {
			t[pulse.Failed]++
		}
		if results[i].Due == 0 {
			t[pulse.Dead]++
		}
	}
	c.meter.Count(s.Topic, t)
}

// countedCells are the cells of a store, the commits of which are counted.
type countedCells struct {
	cellStore
	meter *Meter
}

func (c countedCells) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	stamp, results, err := c.cellStore.Commit(ctx, s, f, commits)
	var t pulse.Tally
	for i := range results {
		if results[i].Status == store.OK {
			t[pulse.Enqueued] += len(commits[i].Adds)
			t[pulse.Acked] += len(commits[i].Acks)
		}
	}
	c.meter.Count(s.Topic, t)
	return stamp, results, err
}

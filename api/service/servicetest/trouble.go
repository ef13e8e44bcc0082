package servicetest

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Fault is what goes wrong with a call to a store.
type Fault struct {
	Before, After time.Duration // how long it is on its way, and its answer
	Lost          bool          // so is the answer
}

// Trouble has a fault drawn for each call that reads or changes tasks; nil: they are well.
func (g *gatedStore) Trouble(draw func() Fault) {
	if draw == nil {
		g.faults.Store(nil)
		return
	}
	g.faults.Store(&draw)
}

// faulty runs a call with the fault that is drawn for it; lost is what it means that the answer does not come.
func faulty[R any](g *gatedStore, lost error, do func() (store.Stamp, []R, error)) (store.Stamp, []R, error) {
	draw := g.faults.Load()
	if draw == nil {
		return do()
	}
	f := (*draw)()
	time.Sleep(f.Before)
	stamp, results, err := do()
	time.Sleep(f.After)
	if f.Lost && err == nil {
		return store.Stamp{}, nil, lost
	}
	return stamp, results, err
}

func (g *gatedStore) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return faulty(g, store.ErrUnknown, func() (store.Stamp, []store.AddResult, error) { return g.Store.Add(ctx, s, tasks) })
}

func (g *gatedStore) Ack(ctx context.Context, s store.Shard, acks []store.Ack, keep time.Duration) (store.Stamp, []store.Status, error) {
	return faulty(g, store.ErrUnknown, func() (store.Stamp, []store.Status, error) { return g.Store.Ack(ctx, s, acks, keep) })
}

func (g *gatedStore) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return faulty(g, store.ErrUnknown, func() (store.Stamp, []store.NackResult, error) { return g.Store.Nack(ctx, s, nacks) })
}

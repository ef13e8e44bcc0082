package upkeep

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// watchWaiters looks after the calls that wait until ctx ends.
func (s *Upkeep) watchWaiters(ctx context.Context) {
	s.rhythm.every(ctx, runtime.WaitersEvery, func(ctx context.Context) {
		if s.node.Waiters().Any() {
			s.lookForWaiters(ctx)
		}
	})
}

// lookForWaiters wakes the calls whose task the store says is settled, or gone, and
// reminds the owners of the others.
func (s *Upkeep) lookForWaiters(ctx context.Context) {
	for at, ids := range ordered.All(s.node.Waiters().ByShard(), place.Compare) {
		slices.Sort(ids)
		s.node.TellWaiting(at, ids, false)
		for len(ids) > 0 {
			part := ids[:min(len(ids), store.BatchItems)]
			ids = ids[len(part):]
			_, found, err := store.GetAll(ctx, s.store, at, part)
			if err != nil {
				s.node.Log().Debug("no look at tasks that are waited for", "topic", at.Topic, "shard", at.N, "err", err)
				return
			}
			for i := range found {
				if !found[i].State.Live() {
					s.node.TellSettled(at, part[i])
				}
			}
		}
	}
}

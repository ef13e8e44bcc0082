package sealstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// keyPause is for how long a task goes back whose key is not known.
const keyPause = 30 * time.Second

// Hold implements store.Owner. A task that cannot be read is not handed out: it is NotDue when its
// key is not known, and Corrupt when it does not open.
func (s *Store) Hold(ctx context.Context, shard store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	stamp, results, err := s.Inner.Hold(ctx, shard, f, holds)
	if err != nil {
		return stamp, results, err
	}
	open := s.keys.opener(shard.Topic)
	var back []store.Nack
	var places []int
	for i := range results {
		if results[i].Status != store.OK {
			continue
		}
		if err := open.task(ctx, results[i].Task); err != nil {
			back, places = append(back, unreadable(&holds[i], err)), append(places, i)
		}
	}
	if len(back) == 0 {
		return stamp, results, nil
	}
	return stamp, results, s.giveBack(ctx, shard, results, back, places)
}

// unreadable is how the hold of a task ends that cannot be read.
func unreadable(h *store.Hold, err error) store.Nack {
	if errors.Is(err, errCorrupt) {
		return store.Nack{ID: h.ID, Token: h.Token, Reason: store.ReasonCorrupt, Error: err.Error(), Outcome: store.OutcomeFailed}
	}
	return store.Nack{ID: h.ID, Token: h.Token, Delay: keyPause, Uncount: true, Outcome: store.OutcomeReleased}
}

// giveBack ends holds, and puts what became of them into the results at their places. If that fails, the
// holds stand: the call is not known to have done what it was for, and repeated it does.
func (s *Store) giveBack(ctx context.Context, shard store.Shard, results []store.HoldResult, back []store.Nack, places []int) error {
	_, ended, err := s.Nack(ctx, shard, back)
	if err != nil {
		return fmt.Errorf("%w: give back tasks that cannot be read: %s", store.ErrUnknown, err.Error())
	}
	for k, i := range places {
		switch {
		case ended[k].Status != store.OK:
			results[i] = store.HoldResult{Status: store.WrongState}
		case back[k].Reason == store.ReasonNone && ended[k].Due != 0:
			results[i] = store.HoldResult{Status: store.NotDue, Due: ended[k].Due}
		default: // also one that was to be cancelled
			results[i] = store.HoldResult{Status: store.Corrupt}
		}
	}
	return nil
}

// HoldNew implements store.Owner.
func (s *Store) HoldNew(ctx context.Context, shard store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.HoldNew(ctx, shard, f, seal.tasks(tasks), holds)
}

// Recover implements store.Owner.
func (s *Store) Recover(ctx context.Context, shard store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return s.Inner.Recover(ctx, shard, f, seal.nacks(nacks))
}

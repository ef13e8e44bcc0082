package service

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
)

// Retrieve waits up to wait for due tasks and returns at most n, held.
func (s *Delivery) Retrieve(ctx context.Context, o subscription.Options, n int, wait time.Duration) ([]subscription.Delivery, error) {
	l := s.limits
	if most := min(l.RetrieveTasks, l.MaxInFlight); n < 1 || n > most {
		return nil, problem.BadField("max_tasks", "OUT_OF_RANGE_FIELD", "max_tasks must be 1 to %d", most)
	}
	if wait < 0 || wait > l.RetrieveWait {
		return nil, problem.BadField("wait_ms", "OUT_OF_RANGE_FIELD", "wait_ms must be 0 to %d", l.RetrieveWait.Milliseconds())
	}
	o.MaxInFlight, o.TellsSent = n, true // nothing is sent before the poll is over
	out := subscription.NewGathering()
	sub, err := s.Subscribe(ctx, o, out)
	if err != nil {
		return nil, err
	}
	if err := sub.Grant(n); err != nil {
		sub.Unsubscribe(nil)
		return nil, err
	}
	out.Await(ctx, max(wait, minRetrieveWait))
	got := out.Close()
	if ctx.Err() != nil {
		sub.Unsubscribe(got)
		return nil, problem.AsError(ctx.Err())
	}
	sub.Unsubscribe(nil)
	return got, nil
}

// minRetrieveWait is the time for ready tasks to come by when a poll does not wait.
const minRetrieveWait = 20 * time.Millisecond

package workflows

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

func (s *Workflows) checkWait(wait time.Duration) *problem.Error {
	if wait < 0 || wait > s.limits.RetrieveWait {
		return problem.BadField("wait_ms", "OUT_OF_RANGE_FIELD", "wait_ms must be 0 to %d", s.limits.RetrieveWait.Milliseconds())
	}
	return nil
}

// Wait returns a workflow once it has ended, and as it is when the wait is over.
func (s *Workflows) Wait(ctx context.Context, topic, id string, wait time.Duration) (status workflow.Status, err error) {
	if err := s.checkWait(wait); err != nil {
		return status, err
	}
	if e := s.at(ctx, topic, id, func(t *store.Topic) (err error) {
		status, err = s.kept.Wait(ctx, t, id, wait)
		return err
	}); e != nil {
		return status, e
	}
	return status, nil
}

package service

import (
	"context"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store/place"
)

// Wait returns a task once it is done, dead or expired, and otherwise as it is when the
// wait is over. A task that is gone is a NotFound error, with the reason TASK_GONE when
// this call saw it: it was acked and its topic keeps no done tasks, or deleted. With an
// empty topic every topic is searched.
func (s *Tasks) Wait(ctx context.Context, topic, id string, wait time.Duration) (Found, error) {
	if err := s.node.Serving(); err != nil {
		return Found{}, err
	}
	if err := s.limits.checkWait(wait); err != nil {
		return Found{}, err
	}
	found, err := s.look.find(ctx, topic, id)
	if err != nil {
		return Found{}, err
	}
	if wait > 0 && found.State.Live() {
		found, err = s.await(ctx, found, wait)
	}
	if err != nil {
		return Found{}, err
	}
	return s.look.withHistory(ctx, found)
}

// checkWait is of calls that wait.
func (l *limits) checkWait(wait time.Duration) *problem.Error {
	if wait < 0 || wait > l.RetrieveWait {
		return problem.BadField("wait_ms", "OUT_OF_RANGE_FIELD", "wait_ms must be 0 to %d", l.RetrieveWait.Milliseconds())
	}
	return nil
}

// await returns a task that was found live once it is not, or wait is over.
func (s *Tasks) await(ctx context.Context, found Found, wait time.Duration) (Found, *problem.Error) {
	t, err := s.look.store.GetTopic(ctx, found.Topic)
	if err != nil {
		return Found{}, problem.FromStore(err)
	}
	call := s.node.Waiters().Add(place.Candidates(&t, found.ID), found.ID)
	defer s.node.Waiters().Remove(call)
	over := time.NewTimer(wait)
	defer over.Stop()
	for first := true; ; first = false {
		for _, place := range call.Places {
			s.node.TellWaiting(place, []string{found.ID}, first)
		}
		// It may have been settled before anybody knew that this call waits for it.
		again, e := s.look.find(ctx, found.Topic, found.ID)
		switch {
		case e != nil && e.Kind == problem.NotFound:
			return Found{}, errGone(found.ID)
		case e != nil:
			return Found{}, e
		case !again.State.Live():
			return again, nil
		}
		select {
		case <-call.Wake:
		case <-over.C:
			return again, nil
		case <-ctx.Done():
			return Found{}, problem.FromStore(ctx.Err())
		}
	}
}

func errGone(id string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "TASK_GONE", Field: "id",
		Message: fmt.Sprintf("task %q was there and is gone: acked on a topic that keeps no done tasks, or deleted", id)}
}

package actors

import (
	"context"
	"fmt"
	"time"
)

// Wait returns a task once it is done, dead or expired, and otherwise as it is when the
// wait is over. A task that is gone is a NotFound error, with the reason TASK_GONE when
// this call saw it: it was acked and its topic keeps no done tasks, or deleted. With an
// empty topic every topic is searched.
func (s *System) Wait(ctx context.Context, topic, id string, wait time.Duration) (Found, error) {
	if err := s.serving(); err != nil {
		return Found{}, err
	}
	if err := s.cfg.Limits.checkWait(wait); err != nil {
		return Found{}, err
	}
	found, err := s.find(ctx, topic, id)
	if err != nil {
		return Found{}, err
	}
	if wait > 0 && live(found.State) {
		found, err = s.await(ctx, found, wait)
	}
	if err != nil {
		return Found{}, err
	}
	return s.withHistory(ctx, found)
}

// checkWait is of calls that wait.
func (l *Limits) checkWait(wait time.Duration) *Error {
	if wait < 0 || wait > l.RetrieveWait {
		return invalid("wait_ms", "OUT_OF_RANGE_FIELD", "wait_ms must be 0 to %d", l.RetrieveWait.Milliseconds())
	}
	return nil
}

// await returns a task that was found live once it is not, or wait is over.
func (s *System) await(ctx context.Context, found Found, wait time.Duration) (Found, *Error) {
	t, err := s.store.GetTopic(ctx, found.Topic)
	if err != nil {
		return Found{}, storeError(err)
	}
	call := s.waiters.add(placesOf(&t, found.ID), found.ID)
	defer s.waiters.remove(call)
	over := time.NewTimer(wait)
	defer over.Stop()
	for first := true; ; first = false {
		for _, place := range call.places {
			s.tellWaiting(place, []string{found.ID}, first)
		}
		// It may have been settled before anybody knew that this call waits for it.
		again, e := s.find(ctx, found.Topic, found.ID)
		switch {
		case e != nil && e.Kind == NotFound:
			return Found{}, errGone(found.ID)
		case e != nil:
			return Found{}, e
		case !live(again.State):
			return again, nil
		}
		select {
		case <-call.wake:
		case <-over.C:
			return again, nil
		case <-ctx.Done():
			return Found{}, storeError(ctx.Err())
		}
	}
}

func errGone(id string) *Error {
	return &Error{Kind: NotFound, Reason: "TASK_GONE", Field: "id",
		Message: fmt.Sprintf("task %q was there and is gone: acked on a topic that keeps no done tasks, or deleted", id)}
}

// withHistory adds what a task's attempts left behind. What came after the task was
// found is left out.
func (s *System) withHistory(ctx context.Context, f Found) (Found, error) {
	all, err := s.store.History(ctx, f.Shard, []string{f.ID})
	if err != nil {
		return Found{}, failure(err)
	}
	f.History = all[0]
	if live(f.State) {
		f.Result = nil
	}
	return f, nil
}

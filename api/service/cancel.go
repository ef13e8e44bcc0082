package service

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// CancelOutcome is what came of a Cancel.
type CancelOutcome uint8

const (
	CancelRequested CancelOutcome = iota + 1 // the worker is told, and has not ended the task
	CancelTooLate                            // the task ended otherwise
	CancelConfirmed                          // the task is dead, cancelled
	CancelDeleted                            // nobody held the task, and it was deleted
)

// Cancelled is the answer to a Cancel.
type Cancelled struct {
	Topic   string
	Outcome CancelOutcome
	State   store.State // StateUnknown when the task is gone
}

// Cancel asks the worker of a running task to stop, and waits up to wait for it to end
// the task. A pending task is refused, or deleted when orDelete is set. With an empty
// topic every topic is searched. The wait also ends with waiting, and not the call: what was
// asked for is answered.
func (s *Tasks) Cancel(ctx, waiting context.Context, topic, id string, wait time.Duration, orDelete bool) (Cancelled, error) {
	if err := s.node.Serving(); err != nil {
		return Cancelled{}, err
	}
	if err := s.limits.checkWait(wait); err != nil {
		return Cancelled{}, err
	}
	topic, e := s.look.locate(ctx, topic, id)
	if e != nil {
		return Cancelled{}, e
	}
	ref, e := s.node.Topics().Open(ctx, topic, false)
	if e != nil {
		return Cancelled{}, e
	}
	state, e := s.requestCancel(ctx, ref, id, orDelete, false)
	out := Cancelled{Topic: topic, Outcome: CancelRequested, State: state}
	switch {
	case e != nil:
		return Cancelled{}, e
	case state == store.StateUnknown:
		out.Outcome = CancelDeleted
	case state != store.StateRunning:
		out.Outcome = CancelTooLate
	case wait > 0:
		out = s.awaitCancel(waiting, out, id, wait)
		if err := ctx.Err(); err != nil {
			return Cancelled{}, problem.FromStore(err)
		}
	}
	return out, nil
}

// cancelTries is how often a task may change hands while it is asked for.
const cancelTries = 5

// requestCancel marks a running task as to be ended, and tells its worker. It returns
// the state of the task: running; done, dead or expired, when it was too late; unknown,
// when it was deleted. With force that is also done to the task of a step.
func (s *Tasks) requestCancel(ctx context.Context, ref *actors.Topic, id string, orDelete, force bool) (store.State, *problem.Error) {
	for try := 1; ; try++ {
		state, e := s.markCancelled(ctx, ref, id)
		if e != nil || !state.Pending() {
			return state, e
		}
		if !orDelete || try == cancelTries {
			return state, errNotRunning(id, state)
		}
		_, err := s.delete(ctx, ref.Config().Name, id, force)
		if e = problem.FromStore(err); e == nil {
			return store.StateUnknown, nil
		}
		if e.Kind != problem.Precondition || e.Reason == problem.ReasonStep { // else a worker has it now
			return state, e
		}
	}
}

func errNotRunning(id string, state store.State) *problem.Error {
	e := problem.WrongState(id, state)
	e.Reason, e.Message = "TASK_NOT_RUNNING", e.Message+": nothing runs that could be cancelled; delete it instead, or ask with or_delete"
	return e
}

// markCancelled marks a task in the store, and tells those who can reach its worker.
func (s *Tasks) markCancelled(ctx context.Context, ref *actors.Topic, id string) (store.State, *problem.Error) {
	for place, e := range places(ctx, s.node, ref, id) {
		if e != nil {
			return 0, e
		}
		var results []store.CancelResult
		if _, err := s.node.Resolve(ctx, func() (err error) {
			_, results, err = s.store.Cancel(ctx, place, []string{id})
			return err
		}); err != nil {
			return 0, problem.FromStore(err)
		}
		switch r := results[0]; r.Status {
		case store.OK:
			ref.Cancelled(place, fleet.EndedHold{ID: id, Token: r.Token})
			return store.StateRunning, nil
		case store.NotFound:
		default:
			return r.State, nil
		}
	}
	return 0, problem.NoTask(id)
}

// awaitCancel waits for the end of a task whose worker was told. Where it cannot, the answer is
// that it was: an error would say that nothing was done.
func (s *Tasks) awaitCancel(ctx context.Context, out Cancelled, id string, wait time.Duration) Cancelled {
	found, err := s.Wait(ctx, out.Topic, id, wait)
	if e := problem.FromStore(err); e != nil && e.Kind == problem.NotFound {
		out.Outcome, out.State = CancelTooLate, store.StateUnknown // success on a topic that keeps no done tasks
		return out
	}
	if err != nil {
		return out
	}
	out.State = found.State
	switch {
	case found.State == store.StateDead && found.Reason == store.ReasonCancelled:
		out.Outcome = CancelConfirmed
	case !found.State.Live():
		out.Outcome = CancelTooLate
	}
	return out
}

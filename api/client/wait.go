package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// longestPoll is how long one call waits at most; a longer wait is several of them.
const longestPoll = 30 * time.Second

// Wait returns a task once it is done, dead or expired, and as it stands when wait is
// over: its State tells. The result of a done task is there while the topic keeps done
// tasks. Where it keeps none, a task that is gone is all there is to know, and the error
// is ErrNotFound, as for a task that was deleted. Every topic is searched when topic is
// empty.
func (c *Tasks) Wait(ctx context.Context, topic, id string, wait time.Duration) (Snapshot, error) {
	for over := time.Now().Add(wait); ; {
		poll := max(0, min(time.Until(over), longestPoll))
		task, settled, err := c.waitOnce(ctx, topic, id, poll)
		if err != nil || settled || poll < longestPoll {
			return task, err
		}
		topic = task.Topic
	}
}

func (c *Tasks) waitOnce(ctx context.Context, topic, id string, poll time.Duration) (task Snapshot, settled bool, err error) {
	ctx, cancel := c.boundedPoll(ctx, poll)
	defer cancel()
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.queue.WaitTask, &ddqv1.WaitTaskRequest{Topic: topic, Id: id, WaitMs: wire.Millis(poll)})
	return snapshot(reply.GetTask()), reply.GetSettled(), err
}

// boundedPoll gives ctx the client's timeout beyond what the server waits, unless it
// has a deadline.
func (c *caller) boundedPoll(ctx context.Context, poll time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, poll+c.cfg.Timeout)
}

// EnqueueAndWait is Enqueue and then Wait for the task.
func (c *Tasks) EnqueueAndWait(ctx context.Context, t Task, wait time.Duration) (Snapshot, error) {
	receipt, err := c.Enqueue(ctx, t)
	if err != nil {
		return Snapshot{}, err
	}
	return c.Wait(ctx, receipt.Topic, receipt.ID, wait)
}

// CancelOutcome is what came of a Cancel.
type CancelOutcome int32

// What may come of it.
const (
	CancelRequested CancelOutcome = CancelOutcome(ddqv1.CancelOutcome_CANCEL_OUTCOME_REQUESTED) // the worker is told, and has not ended the task yet
	CancelTooLate   CancelOutcome = CancelOutcome(ddqv1.CancelOutcome_CANCEL_OUTCOME_TOO_LATE)  // the task ended otherwise
	CancelConfirmed CancelOutcome = CancelOutcome(ddqv1.CancelOutcome_CANCEL_OUTCOME_CONFIRMED) // the task is dead, cancelled
	CancelDeleted   CancelOutcome = CancelOutcome(ddqv1.CancelOutcome_CANCEL_OUTCOME_DELETED)   // no worker held the task, and it was deleted
)

// String returns the outcome in lower case, such as "too_late".
func (o CancelOutcome) String() string {
	return wire.Word(ddqv1.CancelOutcome(o).String(), "CANCEL_OUTCOME_")
}

// CancelOptions say how to cancel a task.
type CancelOptions struct {
	// Wait is how long to wait for the worker to end the task, at most a minute.
	// Without it the answer is that the worker is told.
	Wait time.Duration

	// OrDelete deletes the task when no worker holds it, instead of refusing with
	// ErrPrecondition.
	OrDelete bool
}

// Cancellation is the answer to a Cancel.
type Cancellation struct {
	Topic   string
	Outcome CancelOutcome
	State   State // StateUnknown when the task is gone
}

// Cancel asks the worker of a running task to stop: the context of its handler ends. A
// task so asked for is not tried again; it is dead when it does not succeed all the same.
// Every topic is searched when topic is empty.
func (c *Tasks) Cancel(ctx context.Context, topic, id string, o CancelOptions) (out Cancellation, err error) {
	ctx, cancel := c.boundedPoll(ctx, o.Wait)
	defer cancel()
	repeat := call.Idempotent
	if o.OrDelete {
		repeat = call.Once // what was deleted would not be found again
	}
	reply, err := call.Answer(ctx, c.do, repeat, c.queue.CancelTask, &ddqv1.CancelTaskRequest{Topic: topic, Id: id, WaitMs: wire.Millis(o.Wait), OrDelete: o.OrDelete})
	return Cancellation{Topic: reply.GetTopic(), Outcome: CancelOutcome(reply.GetOutcome()), State: State(reply.GetState())}, err
}

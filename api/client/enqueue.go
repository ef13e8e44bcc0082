package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/ids"
	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/client/internal/wire"
)

// Result is the outcome of one task of a batch.
type Result struct {
	Receipt
	Err error // nil: stored
}

// Enqueue stores one task and returns once the server has answered. The
// payload may be reused then.
//
// When ctx ends first, the task may or may not be stored: enqueue it again
// with the same id to find out.
func (c *Tasks) Enqueue(ctx context.Context, task Task) (Receipt, error) {
	sent, err := c.encode(ctx, &task)
	if err != nil {
		return Receipt{}, err
	}
	k := c.calls.Get(1)
	defer c.calls.Put(k)
	id, err := c.add(ctx, k, sent)
	if err != nil {
		return Receipt{}, err
	}
	c.enqueue(ctx, k)
	r, err := receipt(k.Answers[0], task.Topic, id)
	if err != nil {
		err = c.unanswered(err, "enqueue to topic "+task.Topic)
	}
	return r, err
}

// EnqueueBatch stores tasks, which fail or succeed alone, and returns a result
// for each, in order. The error is that of the first task that failed; nil
// means that all are stored.
func (c *Tasks) EnqueueBatch(ctx context.Context, tasks []Task) ([]Result, error) {
	k := c.calls.Get(len(tasks))
	defer c.calls.Put(k)
	results := make([]Result, len(tasks))
	sent := make([]int, 0, len(tasks)) // where in results the answers belong
	for i := range tasks {
		task, err := c.encode(ctx, &tasks[i])
		id := task.ID
		if err == nil {
			id, err = c.add(ctx, k, task)
		}
		results[i].Receipt = Receipt{Topic: task.Topic, ID: id}
		if results[i].Err = err; err == nil {
			sent = append(sent, i)
		}
	}
	if len(sent) > 0 {
		c.enqueue(ctx, k)
	}
	for n, i := range sent {
		r, err := receipt(k.Answers[n], tasks[i].Topic, results[i].ID)
		if err != nil {
			err = c.unanswered(err, "enqueue to topic "+r.Topic)
		}
		results[i].Receipt, results[i].Err = r, err
	}
	for i := range results {
		if results[i].Err != nil {
			return results, results[i].Err
		}
	}
	return results, nil
}

// enqueue has k's tasks answered, repeating those that failed in passing.
func (c *Tasks) enqueue(ctx context.Context, k *sender.Call) {
	start := time.Now()
	if _, ok := ctx.Deadline(); !ok {
		k.Limit(start, c.cfg.Timeout) // cheaper than a context, which only repeats need
	}
	c.sender.Send(ctx, k)
	if k.Gone() || firstPassing(k) == nil || c.cfg.MaxElapsed < 0 {
		return
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, start.Add(c.cfg.Timeout))
		defer cancel()
	}
	c.enqueueAgain(ctx, k)
}

// enqueueAgain sends the tasks of k that failed in passing until none is left
// or time is over. The first try was made, so a pause comes first.
func (c *Tasks) enqueueAgain(ctx context.Context, k *sender.Call) {
	tried := true
	err := c.repeat(ctx, call.Idempotent, func() *Error {
		if tried {
			tried = false
			return firstPassing(k)
		}
		part, from := k.Again(passing)
		c.sender.Send(ctx, part)
		k.Merge(part, from)
		return firstPassing(k)
	})
	if err != nil && ctx.Err() != nil {
		giveUp(k, ctx.Err())
	}
}

// add appends the request for t and returns its id. A task that cannot be
// encoded is not added.
func (c *Tasks) add(ctx context.Context, k *sender.Call, t *Task) (id string, err error) {
	task := *t
	if err := task.name(); err != nil {
		return "", err
	}
	r := k.Next()
	if e := fill(r, &task); e != nil {
		k.Drop()
		return task.ID, e
	}
	if c.cfg.Trace != nil {
		r.Wire.Traceparent, r.Wire.Tracestate = c.cfg.Trace(ctx)
	}
	r.Measure()
	if reason, field, why := r.TooLarge(); reason != "" {
		k.Drop()
		return task.ID, &Error{Code: codes.InvalidArgument, Reason: reason, Field: field, Message: why}
	}
	return task.ID, nil
}

// Named returns t with the ID that Enqueue would make for it, for those who want to know
// it before: a request with an ID can be repeated.
func (t Task) Named() (Task, error) {
	err := t.name()
	return t, err
}

// name gives t an id unless it has one.
func (t *Task) name() (err error) {
	switch {
	case t.ID != "":
	case t.OrderingKey != "":
		t.ID, err = ids.Keyed(t.OrderingKey)
	case t.Idempotency != nil:
		t.ID, err = ids.Keyed(t.Idempotency.Key)
	default:
		t.ID, err = ids.New()
	}
	return err
}

// failed returns the error that a has, nil when its task is stored.
func failed(a sender.Answer) *Error {
	if a.Err == nil {
		return fromItem(a.Result.GetError())
	}
	var e *Error
	if errors.As(a.Err, &e) { // of giveUp
		return e
	}
	return fromRPC(a.Err)
}

// passing reports whether the request should be repeated.
func passing(a sender.Answer) bool {
	e := failed(a)
	return e != nil && e.repeatable(true)
}

// firstPassing returns an error after which a request of k should be repeated, nil
// when there is none.
func firstPassing(k *sender.Call) *Error {
	for _, a := range k.Answers {
		if passing(a) {
			return failed(a)
		}
	}
	return nil
}

// giveUp marks what was to be repeated as repeated until end.
func giveUp(k *sender.Call, end error) {
	for i, a := range k.Answers {
		if passing(a) {
			k.Answers[i].Err = failed(a).until(end)
		}
	}
}

// receipt returns the answer in the caller's terms.
func receipt(a sender.Answer, topic, id string) (Receipt, error) {
	r := Receipt{Topic: topic, ID: id}
	if e := failed(a); e != nil {
		return r, e
	}
	if a.Result == nil {
		return r, &Error{Code: codes.Internal, Message: "the server gave no answer"}
	}
	if a.Result.GetId() != "" {
		r.ID = a.Result.GetId()
	}
	r.Due = wire.Time(a.Result.GetExecuteTime())
	r.Deduplicated = a.Result.GetDeduplicated()
	r.Key = KeyOutcome(a.Result.GetIdempotencyOutcome())
	r.Replaced = State(a.Result.GetReplacedState())
	if !r.Deduplicated && r.Key != KeyReturned && r.Key != KeyReplaced {
		r.Version = 1
	}
	return r, nil
}

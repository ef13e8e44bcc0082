package client

import (
	"context"
	"time"

	"github.com/google/uuid"
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
	k := c.calls.get(1)
	defer c.calls.put(k)
	id, err := k.add(&task)
	if err != nil {
		return Receipt{}, err
	}
	c.enqueue(ctx, k)
	r, err := k.answers[0].receipt(task.Topic, id)
	if err != nil {
		err = c.unanswered(err, "enqueue to topic "+task.Topic)
	}
	return r, err
}

// EnqueueBatch stores tasks, which fail or succeed alone, and returns a result
// for each, in order. The error is that of the first task that failed; nil
// means that all are stored.
func (c *Tasks) EnqueueBatch(ctx context.Context, tasks []Task) ([]Result, error) {
	k := c.calls.get(len(tasks))
	defer c.calls.put(k)
	results := make([]Result, len(tasks))
	sent := make([]int, 0, len(tasks)) // where in results the answers belong
	for i := range tasks {
		id, err := k.add(&tasks[i])
		results[i].Receipt = Receipt{Topic: tasks[i].Topic, ID: id}
		if results[i].Err = err; err == nil {
			sent = append(sent, i)
		}
	}
	if len(sent) > 0 {
		c.enqueue(ctx, k)
	}
	for n, i := range sent {
		r, err := k.answers[n].receipt(tasks[i].Topic, results[i].ID)
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
func (c *Tasks) enqueue(ctx context.Context, k *call) {
	start := time.Now()
	if _, ok := ctx.Deadline(); !ok {
		k.limit(start, c.cfg.Timeout) // cheaper than a context, which only repeats need
	}
	c.sender.send(ctx, k)
	if k.gone || k.passing() == nil || c.cfg.MaxElapsed < 0 {
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
func (c *Tasks) enqueueAgain(ctx context.Context, k *call) {
	tried := true
	err := c.repeat(ctx, idempotent, func() *Error {
		if tried {
			tried = false
			return k.passing()
		}
		part, from := k.rest()
		c.sender.send(ctx, part)
		k.merge(part, from)
		return k.passing()
	})
	if err != nil && ctx.Err() != nil {
		k.giveUp(ctx.Err())
	}
}

func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

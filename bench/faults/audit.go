package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// auditor writes down what it finds in the store.
type auditor struct {
	node   *stand.Node
	ledger *ledger.Writer
}

// audit writes down everything that is in the store.
func (a *auditor) audit(ctx context.Context) error {
	return a.node.Ask(func(c *client.Client) error {
		for _, name := range plan.AllTopics() {
			if err := a.topic(ctx, c, name); err != nil {
				return fmt.Errorf("audit of %s: %w", name, err)
			}
		}
		if err := a.schedules(ctx, c); err != nil {
			return fmt.Errorf("audit of schedules: %w", err)
		}
		if err := a.audience(ctx, c); err != nil {
			return fmt.Errorf("audit of the audience: %w", err)
		}
		if err := a.workflows(ctx, c); err != nil {
			return fmt.Errorf("audit of workflows: %w", err)
		}
		a.ledger.Append(ledger.Event{Kind: ledger.Audited})
		return nil
	})
}

// lookers is how many tasks are looked at at a time.
const lookers = 16

func (a *auditor) topic(ctx context.Context, c *client.Client, name string) error {
	var group errgroup.Group
	group.SetLimit(lookers)
	look := func(t client.Snapshot) {
		group.Go(func() error { return a.look(ctx, c, t) })
	}
	err := errors.Join(a.each(ctx, c, name, look), group.Wait())
	if err != nil || name != plan.Kept {
		return err
	}
	topic, err := c.DescribeTopic(ctx, name)
	if err == nil {
		a.ledger.Append(ledger.Event{Kind: ledger.Found, Topic: name, Version: topic.Version, Settings: settings(topic.Policy)})
	}
	return err
}

// each goes through all tasks of a topic.
func (a *auditor) each(ctx context.Context, c *client.Client, name string, look func(client.Snapshot)) error {
	for _, state := range []client.State{client.StateUnknown, client.StateDone} {
		for task, err := range c.List(ctx, name, state) {
			if err != nil {
				return err
			}
			look(task)
		}
	}
	for task, err := range c.ListDeadLetters(ctx, name, client.DeadLetterFilter{}) {
		if err != nil {
			return err
		}
		look(task)
	}
	return nil
}

// look writes down a task, in a topic that keeps what is done with its history.
func (a *auditor) look(ctx context.Context, c *client.Client, t client.Snapshot) error {
	if t.Topic != plan.Plain {
		whole, err := c.Get(ctx, t.Topic, t.ID)
		switch {
		case errors.Is(err, client.ErrNotFound):
			return nil // settled since it was listed
		case err != nil:
			return err
		}
		t = whole
	}
	e := found(t)
	if t.Topic == plan.Flowed || t.Topic == plan.Next {
		wire, err := ddqv1.NewDelayQueueServiceClient(c.Conn()).GetTask(ctx, &ddqv1.GetTaskRequest{Topic: t.Topic, Id: t.ID})
		if err != nil {
			return err
		}
		e.Making = tap.Making(wire.GetTask())
	}
	a.ledger.Append(e)
	return nil
}

func found(t client.Snapshot) ledger.Event {
	e := ledger.Event{
		Kind: ledger.Found, Topic: t.Topic, Task: t.ID, Due: tap.Millis(t.Due), State: t.State.String(),
		Retries: t.RetryCount, MaxRetries: t.MaxRetries, Reason: t.DeadReason.String(),
		Version: t.Version, Sum: tap.Sum(t.Payload),
	}
	if t.IdempotencyKey != "" {
		e.ID, e.Task = t.ID, ledger.KeyTask(t.IdempotencyKey)
	}
	if e.Schedule = t.Schedule; e.Schedule != "" {
		e.Occurrence = tap.Millis(t.Occurrence)
	}
	if e.Recipient = t.Recipient; e.Recipient != "" {
		e.Created = tap.Millis(t.CreatedAt)
	}
	if t.Cause != nil {
		e.Cause = t.Cause.ID
	}
	if !t.HoldDeadline.IsZero() {
		e.HoldMS = time.Until(t.HoldDeadline).Milliseconds()
	}
	if t.State == client.StateDone {
		e.Output = tap.Sum(t.Result)
	}
	for _, a := range t.Attempts {
		e.History = append(e.History, ledger.Attempt{
			Number: a.Number, Worker: a.Worker, Started: tap.Millis(a.Started), Ended: tap.Millis(a.Ended), Outcome: a.Outcome.String(),
		})
	}
	return e
}

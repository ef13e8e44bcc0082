package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// topicFaults are those of whole topics.
func topicFaults() []Fault {
	return []Fault{{
		Name: "topic-delete", What: "a topic is deleted with its tasks, and made again, while it is in use", Stores: everywhere(), strike: dropTopic,
		Cost: "the tasks of that topic, which is asked for; none that it has once it is made again",
		// An enqueue makes no topic: it would have no policy.
		tune: func(s *setting) { s.system.Flags = append(s.system.Flags, "--no-auto-create") },
	}}
}

// dropTopic deletes the topic with caps and makes it again. Workers stay subscribed.
func dropTopic(ctx context.Context, r *round) error {
	return r.broken(ctx, "delete "+plan.Capped, func() error {
		if err := r.deleteTopic(ctx, plan.Capped); err != nil {
			return err
		}
		if err := r.pause(ctx, 0, 500*time.Millisecond); err != nil {
			return err
		}
		return r.anyNode().Ask(func(c *client.Client) error { return r.makeAgain(ctx, c, plan.Capped) })
	})
}

// deleteTopic asks a node once to delete a topic, and writes down what came of it.
func (r *round) deleteTopic(ctx context.Context, name string) error {
	// Without repeats: a second call would be told that there is no such topic.
	c, err := client.Dial(r.anyNode().Addr, client.Config{Timeout: 10 * time.Second, MaxElapsed: -1})
	if err != nil {
		return err
	}
	call := ledger.Event{Kind: ledger.Call, Op: ledger.Drop, Call: r.ledger.NextCall(), Topic: name}
	r.ledger.Append(call)
	err = c.DeleteTopic(ctx, name, true)
	answer := ledger.Event{Kind: ledger.Answer, Op: ledger.Drop, Call: call.Call, Topic: name, Result: ledger.OK}
	if err != nil {
		answer.Result, answer.Reason = tap.Outcome(err)
	}
	r.ledger.Append(answer)
	return errors.Join(err, c.Close())
}

// makeAgain creates a topic that was deleted, with the policy that it had.
func (r *round) makeAgain(ctx context.Context, c *client.Client, name string) error {
	policy, _ := r.policyOf(name)
	_, err := c.CreateTopic(ctx, name, policy)
	if err != nil && !errors.Is(err, client.ErrExists) { // ErrExists: a call that was repeated had made it
		return fmt.Errorf("make %s again: %w", name, err)
	}
	return nil
}

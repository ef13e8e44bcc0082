package faults

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// wireFaults are those of the connections to Redis, which go through a relay.
func wireFaults() []Fault {
	on, tune := []string{stand.RedisEverysec}, func(s *setting) { s.system.Relayed = true }
	return []Fault{
		{
			Name: "lost-replies", What: "for a while Redis does what it is asked, and the connection breaks instead of an answer",
			Stores: on, strike: loseReplies, tune: tune,
			Cost: "calls are repeated; they take longer, or end unknown and may have been done",
		},
		{
			Name: "late-replies", What: "what Redis answers takes up to 100 ms more, so that answers overtake each other, while a node is drained and undrained",
			Stores: on, Nodes: 2, strike: delayReplies, tune: tune,
			Cost: "each step of a task takes as much longer",
		},
	}
}

func loseReplies(ctx context.Context, r *round) error {
	return r.broken(ctx, "lose what redis answers", func() error {
		r.Relay.Lose(true)
		if err := r.pause(ctx, 50*time.Millisecond, 500*time.Millisecond); err != nil {
			return err
		}
		r.Relay.Lose(false)
		return r.AwaitWhole(ctx)
	})
}

func delayReplies(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "delay what redis answers, and drain "+nd.Name, func() error {
		r.Relay.Slow(100 * time.Millisecond)
		defer r.Relay.Slow(0)
		if err := nd.Ask(func(c *client.Client) error { return c.DrainNode(ctx, nd.Name) }); err != nil {
			return err
		}
		if err := r.pause(ctx, time.Second, 2*time.Second); err != nil {
			return err
		}
		if err := nd.Ask(func(c *client.Client) error { return c.UndrainNode(ctx, nd.Name) }); err != nil {
			return err
		}
		if err := r.pause(ctx, time.Second, 2*time.Second); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

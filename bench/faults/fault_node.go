package faults

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// nodeFaults are those of server processes.
func nodeFaults() []Fault {
	return []Fault{
		{
			Name: "kill", What: "kill -9 of a node, and its restart", Stores: everywhere(), strike: killNode,
			Cost: "its shards wait until its lease is over (2 s) or it is back; what it held comes again when the hold is over",
		},
		{
			Name: "pause", What: "SIGSTOP of a node for longer than its lease, then SIGCONT", Stores: everywhere(), strike: pauseNode,
			Cost: "its shards wait until its lease is over; calls to it wait until it wakes, or time out and may have been done",
		},
		{
			Name: "stop", What: "SIGTERM of a node, and its restart", Stores: everywhere(), strike: stopNode,
			Cost: "nothing in a fleet; a node that stands alone is away until it is back",
		},
		{
			Name: "drain", What: "ddq cluster drain and undrain of a node", Stores: onAnyRedis(), Nodes: 2, strike: drainNode,
			Cost: "nothing",
		},
		{
			Name: "rolling", What: "all nodes restarted, one after the other", Stores: everywhere(), strike: rollNodes, once: true,
			Cost: "nothing in a fleet; a node that stands alone is away until it is back",
		},
	}
}

func killNode(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "kill -9 "+nd.Name, func() error {
		if err := nd.Kill(); err != nil {
			return err
		}
		if err := r.pause(ctx, 200*time.Millisecond, 2500*time.Millisecond); err != nil {
			return err
		}
		return r.revive(ctx, nd)
	})
}

// revive starts a node again and waits until all is well.
func (r *round) revive(ctx context.Context, nd *stand.Node) error {
	if err := nd.Revive(); err != nil {
		return err
	}
	return r.AwaitWhole(ctx)
}

func pauseNode(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "pause "+nd.Name, func() error {
		if err := nd.Pause(); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold*5/4, r.hold*2); err != nil {
			return err
		}
		if err := nd.Resume(); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

func stopNode(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "stop "+nd.Name, func() error {
		if err := nd.Terminate(); err != nil {
			return err
		}
		if err := r.pause(ctx, 0, time.Second); err != nil {
			return err
		}
		return r.revive(ctx, nd)
	})
}

func drainNode(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "drain "+nd.Name, func() error {
		if err := nd.Ask(func(c *client.Client) error { return c.DrainNode(ctx, nd.Name) }); err != nil {
			return err
		}
		if err := r.pause(ctx, 500*time.Millisecond, 1500*time.Millisecond); err != nil {
			return err
		}
		if err := nd.Ask(func(c *client.Client) error { return c.UndrainNode(ctx, nd.Name) }); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

func rollNodes(ctx context.Context, r *round) error {
	return r.broken(ctx, "rolling restart", func() error {
		for _, nd := range r.Nodes {
			if err := nd.Terminate(); err != nil {
				return err
			}
			if err := r.revive(ctx, nd); err != nil {
				return err
			}
		}
		return nil
	})
}

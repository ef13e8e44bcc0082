package faults

import (
	"context"
	"fmt"
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
			Name: "kill-each-second", What: "kill -9 of a node each second, and its restart at once", Stores: everywhere(), strike: killEachSecond, once: true, Long: true,
			Cost: "as kill, all the while: few tasks are done meanwhile",
			tune: func(s *setting) { s.span = max(s.span, time.Minute) },
		},
		{
			Name: "kill-all-each-second", What: "kill -9 of a node and of a worker each second, and their restart at once, under many workflows", Stores: everywhere(), strike: killAllEachSecond, once: true,
			Cost: "as kill and worker-crash, all the while",
			tune: func(s *setting) { s.workflows, s.rate = s.workflows*4, s.rate/2 },
		},
		{
			Name: "midnight", What: "many schedules have an occurrence at one second; the owner of some is killed up to 10 s before", Stores: everywhere(), strike: killAtMidnight, once: true,
			Cost: "as kill; nothing that is due at that second is made late",
			tune: func(s *setting) {
				s.span, s.concurrency = max(s.span, 20*time.Second), 256
				s.midnight, s.midnightAt = max(s.crowd, 1), s.span-5*time.Second
			},
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

// killEachSecond kills one node after the other, a second apart, until the producers are
// done. One that was killed is started again at once; the next second does not wait for it.
func killEachSecond(ctx context.Context, r *round) error { return r.eachSecond(ctx, r.killAnyNode) }

// killAllEachSecond does the same to workers, too.
func killAllEachSecond(ctx context.Context, r *round) error {
	return r.eachSecond(ctx, func() error {
		if err := r.killAnyNode(); err != nil {
			return err
		}
		i, w := r.anyWorker()
		if err := w.Kill(); err != nil {
			return err
		}
		return r.replaceWorker(i)
	})
}

// killAnyNode kills one, and starts it again at once.
func (r *round) killAnyNode() error {
	nd := r.anyNode()
	if err := nd.Kill(); err != nil {
		return err
	}
	r.strikes++
	return nd.Revive()
}

// eachSecond does something each second until the producers are done.
func (r *round) eachSecond(ctx context.Context, do func() error) error {
	return r.broken(ctx, r.fault.What, func() error {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for time.Since(r.start) < r.span-calm {
			if err := do(); err != nil {
				return err
			}
			select {
			case <-second.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return r.AwaitWhole(ctx)
	})
}

// killAtMidnight kills a node some time before the second at which most schedules have their
// occurrence, or in it, and starts it again behind that.
func killAtMidnight(ctx context.Context, r *round) error {
	before := time.Duration(r.rand.Int64N(int64(10 * time.Second)))
	if err := r.sleep(ctx, time.Until(r.start.Add(r.midnightAt-before))); err != nil {
		return err
	}
	nd := r.anyNode()
	return r.broken(ctx, fmt.Sprintf("kill -9 %s %v before", nd.Name, before.Round(time.Millisecond)), func() error {
		if err := nd.Kill(); err != nil {
			return err
		}
		if err := r.pause(ctx, 0, 2*time.Second); err != nil {
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

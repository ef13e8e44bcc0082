package faults

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/bench/faults/stand"
)

// netFaults are those of the network. Every node, Redis and the worker whose cable is
// cut live in a network namespace of their own.
func netFaults() []Fault {
	on := onAnyRedis()
	return []Fault{
		{
			Name: "cut-node", What: "a node is cut off from everything", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]stand.Cable, string) {
				nd := r.anyNode()
				return []stand.Cable{{From: nd.Name}}, nd.Name + " from everything"
			}),
			Cost: "its shards wait until its lease is over; its workers and producers go elsewhere once they notice (15 s), what they held comes again",
		},
		{
			Name: "cut-nodes", What: "a node is cut off from the other nodes, not from Redis", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]stand.Cable, string) {
				nd := r.anyNode()
				var cables []stand.Cable
				for _, other := range r.Nodes {
					if other != nd {
						cables = append(cables, stand.Cable{From: nd.Name, To: other.Name}, stand.Cable{From: other.Name, To: nd.Name})
					}
				}
				return cables, nd.Name + " from the other nodes"
			}),
			Cost: "its workers get the tasks of its own shards only; nobody else's are late",
		},
		{
			Name: "cut-one-way", What: "what a node sends to the other nodes is lost, what they send arrives", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]stand.Cable, string) {
				nd := r.anyNode()
				var cables []stand.Cable
				for _, other := range r.Nodes {
					if other != nd {
						cables = append(cables, stand.Cable{From: nd.Name, To: other.Name})
					}
				}
				return cables, nd.Name + " towards the other nodes"
			}),
			Cost: "as for cut-nodes",
		},
		{
			Name: "cut-gossip", What: "a node and the others do not hear each other's gossip, as behind a firewall; all reach Redis and the workers of one side", Stores: on, Nodes: 3, Network: true,
			strike: cutGossip, once: true, Serves: true, tune: func(s *setting) { s.oneSided, s.span = true, max(s.span, gossipCut+10*time.Second) },
			Cost: "what the side without workers owns waits until that is given up, some five seconds",
		},
		{
			Name: "cut-redis", What: "a node is cut off from Redis, not from the other nodes", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]stand.Cable, string) {
				nd := r.anyNode()
				return []stand.Cable{{From: nd.Name, To: stand.RedisPlace}, {From: stand.RedisPlace, To: nd.Name}}, nd.Name + " from Redis"
			}),
			Cost: "its shards wait until its lease is over; what is asked of it is refused, or may have been done",
		},
		{
			Name: "cut-worker", What: "a worker is cut off from all nodes", Stores: on, Nodes: 3, Network: true, strike: cut(func(r *round) ([]stand.Cable, string) {
				_, w := r.anyWorker()
				return []stand.Cable{{From: w.Name}}, w.Name + " from everything"
			}),
			Cost: "what it holds comes again when the hold is over",
		},
		{
			Name: "lossy", What: "a node's link drops everything for 30 ms in every 150 ms", Stores: on, Nodes: 3, Network: true, strike: flicker,
			Cost: "lateness of what goes over that link, as TCP sends again",
		},
		{
			Name: "narrow", What: "a node's link carries 1 Mbit/s", Stores: on, Nodes: 3, Network: true, strike: narrow,
			Cost: "lateness of what goes over that link, when it is more than that",
		},
	}
}

// cut makes a fault of cables that are cut for longer than a lease and a hold.
func cut(choose func(*round) ([]stand.Cable, string)) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		cables, what := choose(r)
		return r.broken(ctx, "cut "+what, func() error {
			if err := r.Net.Set(cables, true); err != nil {
				return err
			}
			if err := r.pause(ctx, r.hold*3/2, max(r.hold*5/2, r.span/3)); err != nil {
				return err
			}
			if err := r.Net.Set(cables, false); err != nil {
				return err
			}
			return r.AwaitWhole(ctx)
		})
	}
}

// gossipCut is how long the nodes do not hear each other: tasks that are due in its first seconds are to be delivered
// before it is over.
const gossipCut = 20 * time.Second

// cutGossip closes the port of gossip between the first node and the others. The workers are at one side of that. What the
// nodes pass on to each other they do by connections that they have, so in two of three rounds the first one is killed
// and comes back: behind the firewall it has none.
func cutGossip(ctx context.Context, r *round) error {
	alone := r.Nodes[0]
	var cables []stand.Cable
	for _, other := range r.Nodes[1:] {
		cables = append(cables, stand.Cable{From: alone.Name, To: other.Name, Port: stand.GossipPort}, stand.Cable{From: other.Name, To: alone.Name, Port: stand.GossipPort})
	}
	what := "cut " + alone.Name + " from the gossip of the others, workers at " + stand.AddrOf(nodesOfWorkers(r))
	restart := r.rand.IntN(3) > 0
	if restart {
		what += ", kill -9 " + alone.Name
	}
	return r.broken(ctx, what, func() error {
		if err := r.Net.Set(cables, true); err != nil {
			return err
		}
		if restart {
			if err := errors.Join(alone.Kill(), alone.Revive()); err != nil {
				return err
			}
		}
		if err := r.sleep(ctx, gossipCut); err != nil {
			return err
		}
		if err := r.Net.Set(cables, false); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

func flicker(ctx context.Context, r *round) error {
	nd := r.anyNode()
	cables := []stand.Cable{{From: nd.Name}}
	return r.broken(ctx, "the link of "+nd.Name+" flickers", func() error {
		for range 20 {
			if err := r.Net.Set(cables, true); err != nil {
				return err
			}
			if err := r.sleep(ctx, 30*time.Millisecond); err != nil {
				return err
			}
			if err := r.Net.Set(cables, false); err != nil {
				return err
			}
			if err := r.sleep(ctx, 120*time.Millisecond); err != nil {
				return err
			}
		}
		return r.AwaitWhole(ctx)
	})
}

func narrow(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "the link of "+nd.Name+" is narrow", func() error {
		if err := r.Net.Narrow(nd.Name); err != nil {
			return err
		}
		if err := r.pause(ctx, r.hold, r.hold*2); err != nil {
			return err
		}
		if err := r.Net.Widen(nd.Name); err != nil {
			return err
		}
		return r.AwaitWhole(ctx)
	})
}

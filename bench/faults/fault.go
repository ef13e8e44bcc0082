package faults

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
)

// Fault is one way to break things.
type Fault struct {
	Name string
	What string // is done, in a few words
	Cost string // what it may cost, for users; no task is ever part of it unless Allow says so
	// Stores are those that it applies to.
	Stores []string
	// Nodes is the least number of nodes that it takes.
	Nodes int
	// Root says that it takes root on Linux.
	Root bool
	// Allow is what the checker is told to excuse.
	Allow []ledger.Allowance

	// tune changes what a round does otherwise, optional.
	tune func(*setting)
	// strike breaks something and heals it. It is called again while time is left.
	strike func(context.Context, *round) error
}

// AppliesTo reports whether a fault can be had on a store.
func (f Fault) AppliesTo(store string) bool { return slices.Contains(f.Stores, store) }

// Faults are all there are, in the order in which they are played.
func Faults() []Fault {
	return slices.Concat(nodeFaults())
}

var (
	onRedis    = []string{redisEverysec, redisAlways}
	everywhere = append([]string{embedded}, onRedis...)
)

// nodeFaults are those of one server process.
func nodeFaults() []Fault {
	return []Fault{
		{
			Name: "kill", What: "kill -9 of a node, and its restart", Stores: everywhere, Nodes: 1,
			Cost:   "time until the lease of the node is over (2 s), or until it is back; what it held comes again when the hold is over",
			strike: killNode,
		},
	}
}

func killNode(ctx context.Context, r *round) error {
	nd := r.anyNode()
	return r.broken(ctx, "kill "+nd.name, func() error {
		if err := nd.kill(); err != nil {
			return err
		}
		if err := r.pause(ctx, 500*time.Millisecond, 2500*time.Millisecond); err != nil {
			return err
		}
		if err := nd.Revive(); err != nil {
			return err
		}
		return r.awaitWhole(ctx)
	})
}

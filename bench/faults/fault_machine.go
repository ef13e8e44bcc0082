package faults

import (
	"context"
	"errors"
	"time"
)

// machineFaults are those of a machine that several processes are on.
func machineFaults() []Fault {
	return []Fault{{
		Name: "machine", What: "kill -9 of a node and a worker at once, as when the machine dies that both are on", Stores: everywhere(), strike: killMachine,
		Cost: "as for kill; what the worker held comes again when the hold is over and the shard has an owner",
	}}
}

func killMachine(ctx context.Context, r *round) error {
	nd := r.anyNode()
	i, w := r.anyWorker()
	return r.broken(ctx, "kill -9 "+nd.Name+" and "+w.Name, func() error {
		if err := errors.Join(w.Kill(), nd.Kill()); err != nil {
			return err
		}
		if err := r.pause(ctx, 200*time.Millisecond, 2500*time.Millisecond); err != nil {
			return err
		}
		if err := r.replaceWorker(i); err != nil {
			return err
		}
		return r.revive(ctx, nd)
	})
}

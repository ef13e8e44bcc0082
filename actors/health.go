package actors

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
)

// health says how a node fares.
type health struct {
	rt      *runtime.Runtime
	failing failingStore // nil: the store cannot fail for good
}

// failingStore is a store that can fail for good, so that only opening it anew helps.
type failingStore interface {
	// Failed says why, or returns nil.
	Failed() error
}

// ready returns nil while the node serves, else why not.
func (h *health) ready() error {
	switch {
	case !h.rt.Running.Load():
		return &problem.Error{Kind: problem.Unavailable, Reason: "STARTING", Message: "the node is not running"}
	case h.rt.Stopping.Load():
		return problem.Draining()
	case h.rt.Keeper.Err() != nil:
		return problem.AsError(h.rt.Keeper.Err())
	}
	if who := h.rt.Restarts.Failing(); who != "" {
		return &problem.Error{Kind: problem.Unavailable, Reason: "ACTOR_FAILING", Message: "an actor fails without end: " + who}
	}
	return nil
}

// failed returns what only another start of the process can help against, see Node.Failed.
func (h *health) failed() error {
	if h.failing != nil {
		if err := h.failing.Failed(); err != nil {
			return err
		}
	}
	if err := h.rt.Keeper.Stolen(lease.RivalPatience); err != nil {
		return err
	}
	if who := h.rt.Restarts.Failing(); who != "" {
		return fmt.Errorf("an actor fails without end: %s", who)
	}
	return nil
}

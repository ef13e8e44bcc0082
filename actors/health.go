package actors

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/lease"
)

// failingStore is a store that can fail for good, so that only opening it anew helps.
type failingStore interface {
	// Failed says why, or returns nil.
	Failed() error
}

// Failed returns what only another start of the process can help against, or nil: a
// store that failed for good, a session under this node's name that another process
// keeps, an actor that panics without end, for as long as it does. A store that is merely
// away is not among them: the node goes on when it is back.
func (s *Node) Failed() error {
	if s.failing != nil {
		if err := s.failing.Failed(); err != nil {
			return err
		}
	}
	if err := s.rt.Keeper.Stolen(lease.RivalPatience); err != nil {
		return err
	}
	if who := s.rt.Nurse.Sick(); who != "" {
		return fmt.Errorf("an actor fails without end: %s", who)
	}
	return nil
}

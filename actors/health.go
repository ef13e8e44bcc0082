package actors

import (
	"fmt"
	"time"
)

// RivalPatience is how long the session may be somebody else's before the process had
// better start anew. A rival that ends, or a failover that is undone, is over by then.
// Two processes that both live under one name take it from each other this often.
const RivalPatience = 5 * time.Minute

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
	if st, ok := s.rt.store.(observedStore).Store.(failingStore); ok {
		if err := st.Failed(); err != nil {
			return err
		}
	}
	if err := s.rt.keeper.stolen(RivalPatience); err != nil {
		return err
	}
	if who := s.rt.nurse.Sick(); who != "" {
		return fmt.Errorf("an actor fails without end: %s", who)
	}
	return nil
}

// stolen returns an error once the session has been somebody else's for that long.
func (k *keeper) stolen(long time.Duration) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fatal == nil || time.Since(k.fatalAt) < long {
		return nil
	}
	return fmt.Errorf("node %q: %w", k.node.Node, k.fatal)
}

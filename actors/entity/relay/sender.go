package relay

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// Entities is the role of a store, under a name that is none of its methods.
type Entities = store.Cells

// Sender is a store whose commits send to the queues of the relay. Its functions are safe for concurrent use.
type Sender struct {
	Entities
	All   func() bool                      // whether all nodes of the fleet read queues
	Clock func(s store.Shard) store.Millis // that of the shard's server, as it is known here
}

// Commit is that of the store. What is sent to another topic goes into a queue, or, while nodes are in the fleet that
// read none, into the out-box.
func (s *Sender) Commit(ctx context.Context, at store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	return s.Entities.Commit(ctx, at, f, s.address(at, commits))
}

func (s *Sender) address(at store.Shard, commits []store.Commit) []store.Commit {
	if !slices.ContainsFunc(commits, func(c store.Commit) bool { return sends(&c) }) {
		return commits
	}
	commits = slices.Clone(commits)
	queues := s.All()
	for i := range commits {
		c := &commits[i]
		if !sends(c) {
			continue
		}
		if queues {
			c.Clock = int64(s.Clock(at)) * 1000
			continue
		}
		c.Send = slices.Clone(c.Send)
		for k := range c.Send {
			c.Send[k].Class = 0
		}
	}
	return commits
}

func sends(c *store.Commit) bool {
	return slices.ContainsFunc(c.Send, func(m store.Message) bool { return m.Class != 0 })
}

package workflows

import (
	"context"
	"sync"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// node is what calls about workflows need of the runtime.
type node struct {
	*actors.Node
	tasks Tasks
}

// NowAt is the time by the clock of a shard's store.
func (n *node) NowAt(s store.Shard) store.Millis { return n.Clocks().NowAt(s) }

// Committed has the owner look at the workflow at once, and at the tasks that came and went. It is
// a hint: nothing is lost with it but time.
func (n *node) Committed(ctx context.Context, s store.Shard, c *store.Commit, stamp store.Stamp) {
	ref, err := n.Topics().Open(ctx, s.Topic, false)
	if err != nil {
		return
	}
	ref.Committed(s.N, c, stamp)
	n.cancel(ctx, ref, c.Cancels)
}

// cancelsAtATime is how many workers are told at the same time.
const cancelsAtATime = 16

// cancel tells the workers of tasks that the store has marked as to be ended. One that it does
// not reach learns it when it extends its hold.
func (n *node) cancel(ctx context.Context, ref *actors.Topic, ids []string) {
	var telling sync.WaitGroup
	places := make(chan struct{}, cancelsAtATime)
	for _, id := range ids {
		places <- struct{}{}
		telling.Go(func() {
			defer func() { <-places }()
			if err := n.tasks.Cancel(ctx, ref, id); err != nil && err.Kind != problem.NotFound {
				n.Log().Warn("worker of a step not told to end", "topic", ref.Config().Name, "task", id, "err", err)
			}
		})
	}
	telling.Wait()
}

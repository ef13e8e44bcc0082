package overview

import (
	"context"
	"sync"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// ask asks all members how they fare, and what they did to tasks of topics, all at once.
func (o *Overviews) ask(ctx context.Context, topics []store.Topic) []Node {
	ctx, cancel := context.WithTimeout(ctx, answerFor)
	defer cancel()
	members, self := o.node.Members(), o.node.Config().Node
	q := fleet.StatusQuery{DueSoon: true}
	for i := range topics {
		q.Pulses = append(q.Pulses, topics[i].Name)
	}
	nodes := make([]Node, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		nodes[i] = Node{Member: m, Self: m.Name == self}
		wg.Go(func() {
			if load, err := o.node.Describe(ctx, m, q); err == nil {
				nodes[i].Load = &load
			}
		})
	}
	wg.Wait()
	return nodes
}

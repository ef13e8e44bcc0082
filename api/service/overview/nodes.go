package overview

import (
	"context"
	"sync"
)

// ask asks all members how they fare, all at once.
func (o *Overviews) ask(ctx context.Context) []Node {
	ctx, cancel := context.WithTimeout(ctx, answerFor)
	defer cancel()
	members, self := o.node.Members(), o.node.Config().Node
	nodes := make([]Node, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		nodes[i] = Node{Member: m, Self: m.Name == self}
		wg.Go(func() {
			if load, err := o.node.Describe(ctx, m, true); err == nil {
				nodes[i].Load = &load
			}
		})
	}
	wg.Wait()
	return nodes
}

package overview

import (
	"context"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// ask asks all members how they fare, and what they did to tasks of topics, all at once.
func (o *Overviews) ask(ctx context.Context, topics []store.Topic) []Node {
	self := o.node.Config().Node
	q := fleet.StatusQuery{DueSoon: true}
	for i := range topics {
		q.Pulses = append(q.Pulses, topics[i].Name)
	}
	return fleet.AskAll(ctx, answerFor, o.node.Members(), func(ctx context.Context, m fleet.Member) Node {
		n := Node{Member: m, Self: m.Name == self}
		if load, err := o.node.Describe(ctx, m, q); err == nil {
			n.Load = &load
		}
		return n
	})
}

package actors

import (
	"context"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
)

// link is a subscription of this node's worker at another node. The topic actor
// owns it; its methods are called by the peer's goroutine.
type link struct {
	topic  *Topic
	pid    *actor.PID // of the topic
	rt     *runtime.Runtime
	sub    *subscription.Subscriber
	node   string
	remote fleet.RemoteSubscription

	// delivered counts tasks that came, those that were dropped too: their room is
	// refunded. granted and returned are the topic's.
	delivered         atomic.Int64
	granted, returned int64
}

// outstanding is the credit that the other node has, when the link is closed.
func (l *link) outstanding() int { return int(l.granted - l.returned - l.delivered.Load()) }

// Opened says that the other node took the subscription.
func (l *link) Opened() { l.rt.Send(l.pid, &linkOpened{l}) }

// Demand passes on what the other node has ready, and credit that comes back.
func (l *link) Demand(ready, returned int) { l.rt.Send(l.pid, &linkDemand{l, ready, returned}) }

// Await returns once the worker's stream has room for more, or with ctx.
func (l *link) Await(ctx context.Context) { l.sub.Budget.Wait(ctx) }

// Closed says that nothing more comes.
func (l *link) Closed(err error) { l.rt.Send(l.pid, &linkClosed{l, err}) }

// Deliver passes tasks to their shards, which register the holds.
func (l *link) Deliver(tasks []subscription.Delivery) {
	bytes := int64(0)
	for _, d := range tasks {
		bytes += subscription.BodyBytes(d.Task)
	}
	l.sub.Budget.Charge(bytes)
	l.topic.shared.Bodies.Learn(int64(len(tasks)), bytes)
	if later := l.deliver(tasks); len(later) > 0 {
		l.rt.Pool.Run(func() { // the other node knows of shards that this one does not
			l.topic.lookAgain()
			dropped := l.deliver(later)
			for _, d := range dropped {
				l.rt.Log.Error("task of an unknown shard dropped", "topic", d.Topic, "task", d.Task.ID, "node", l.node)
			}
			l.drop(dropped)
		})
	}
	l.delivered.Add(int64(len(tasks)))
	l.rt.Metrics.Linked.Add(float64(len(tasks)))
}

// deliver returns the tasks of shards that this node has not.
func (l *link) deliver(tasks []subscription.Delivery) (rest []subscription.Delivery) {
	shards := *l.topic.layout.Load()
	byShard := make([][]subscription.Delivery, len(shards))
	for _, d := range tasks {
		if n, _, ok := subscription.DecodeToken(d.Token); ok && shards.at(n).pid != nil {
			byShard[n] = append(byShard[n], d)
		} else {
			rest = append(rest, d)
		}
	}
	for n, ds := range byShard {
		if len(ds) > 0 {
			l.rt.Send(shards[n].pid, &shard.HeldElsewhere{Sub: l.sub, Tasks: ds, Lost: l.drop})
		}
	}
	return rest
}

// drop gives back the room of tasks that no shard here heard of. Their holds run out, unless they are over
// already, as those of a shard of before a reshard are.
func (l *link) drop(tasks []subscription.Delivery) {
	if len(tasks) == 0 {
		return
	}
	for _, d := range tasks {
		l.sub.Budget.Sent(subscription.BodyBytes(d.Task))
	}
	l.rt.Send(l.pid, &shard.Refunded{Sub: l.sub.ID, N: len(tasks)})
}

// Cancel passes on what the other node says of tasks that it holds for this one.
func (l *link) Cancel(asks []subscription.CancelAsk) {
	for _, a := range asks {
		if n, token, ok := subscription.DecodeToken(a.Token); ok {
			l.topic.tell(n, &shard.CancelHolds{Holds: []fleet.EndedHold{{ID: a.ID, Token: token}}})
		}
	}
}

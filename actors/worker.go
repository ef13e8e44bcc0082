package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// worker is the actor of one subscription: it turns held tasks into deliveries
// for the stream, and the stream's settlements into calls on the shards.
//
// It outlives its stream until every shard has confirmed that nothing more is to
// come, and gives back what comes until then.
type worker struct {
	*runtime.Runtime
	topic   *Topic
	sub     *subscription.Subscriber
	out     subscription.Outbox
	gone    bool
	waitFor map[int]bool // shards that have not confirmed yet
}

func newWorker(rt *runtime.Runtime, topic *Topic, sub *subscription.Subscriber, out subscription.Outbox) *worker {
	return &worker{Runtime: rt, topic: topic, sub: sub, out: out}
}

// Receive handles one message; it never waits.
func (w *worker) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		w.Metrics.Subscriptions.Inc()
	case *actor.Stopped:
		w.Metrics.Subscriptions.Dec()
		w.sub.Budget.End()
	case *actor.Restarting:
		w.Metrics.Subscriptions.Dec()
		w.restart()
	case *shard.Deliver:
		w.deliver(m)
	case *settleFrame:
		w.settle(m)
	case *shard.CancelAsked:
		w.out.Cancel([]subscription.CancelAsk{m.Ask})
	case *drainWorker:
		w.out.Drain(m.grace)
	case *ended:
		w.gone, w.waitFor = true, make(map[int]bool)
		for _, n := range m.shards {
			w.waitFor[n] = true
		}
		w.giveBack(m.undelivered)
	case *shard.Forgotten:
		if delete(w.waitFor, m.Shard); len(w.waitFor) == 0 {
			c.Stop(c.Self())
		}
	}
}

// restart has the stream begin anew: the credit of what got lost in a panic is spent.
func (w *worker) restart() {
	if !w.gone {
		w.out.Drain(0)
	}
}

func (w *worker) deliver(m *shard.Deliver) {
	primary, topic := w.topic.clockOf(m.Shard), w.topic.shared.Current.Load()
	now, latest := primary.Millis(), clock.CeilMillis(primary.Latest())
	deliveries := make([]subscription.Delivery, len(m.Tasks))
	tokens := make([]byte, 0, len(m.Tasks)*subscription.TokenSize)
	if !w.sub.Options.ByNode() { // else the node with the worker sees it
		w.Meter.Deliver(topic.Name, now, m.Tasks)
	}
	for i, h := range m.Tasks {
		from := len(tokens)
		tokens = subscription.AppendToken(tokens, m.Shard, h.Token)
		if !w.sub.Options.ByNode() {
			w.Metrics.ObserveLateness(h.Task, now)
		}
		deliveries[i] = subscription.Delivery{
			Topic:      topic.Name,
			Task:       h.Task,
			MaxRetries: h.Task.RetryLimit(topic),
			Token:      tokens[from:len(tokens):len(tokens)],
			Deadline:   h.Deadline,
			HoldFor:    h.Deadline.Sub(latest), // what is left of it at least
		}
	}
	if w.gone || !w.out.Deliver(deliveries) {
		w.giveBack(deliveries)
		return
	}
	if !w.sub.Options.ByNode() {
		w.Tasks.Sent(store.Shard{Topic: topic.Name, N: m.Shard}, w.sub.Options.Worker, now, m.Tasks)
	}
	if !w.sub.Options.TellsSent {
		for _, h := range m.Tasks {
			w.sub.Budget.Sent(subscription.BodyBytes(h.Task))
		}
	}
}

func (w *worker) settle(m *settleFrame) {
	sequence := m.sequence
	begin := shard.NewSettleCall
	if w.sub.Options.InParts {
		begin = shard.NewSettleCallInParts
	}
	w.topic.dispatch(begin(m.settlements, func(results []subscription.Settled) { w.out.Settled(sequence, results) }))
}

// giveBack releases deliveries that no worker has seen.
func (w *worker) giveBack(deliveries []subscription.Delivery) {
	if len(deliveries) == 0 {
		return
	}
	releases := make([]subscription.Settlement, len(deliveries))
	for i, d := range deliveries {
		releases[i] = subscription.Settlement{Kind: subscription.SettleRelease, ID: d.Task.ID, Token: d.Token, Unseen: true}
		w.sub.Budget.Sent(subscription.BodyBytes(d.Task))
	}
	w.topic.dispatch(shard.NewSettleCall(releases, func([]subscription.Settled) {}))
}

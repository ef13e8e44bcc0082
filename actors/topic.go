package actors

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
)

// topicActor runs one topic on this node. It is the parent of the topic's shards and
// workers, and the front door of its parts: each of them handles the messages of one
// noun, and what the dispatch core decides about them is carried out after every message.
type topicActor struct {
	*topicState
	shards *topicShards
	subs   *topicSubs
	links  *topicLinks
	limits *topicLimits
	life   *topicLife
	gauges metrics.TopicMetrics
	over   bool // it stops
}

func newTopicActor(rt *runtime.Runtime, ref *Topic) *topicActor {
	t := &topicActor{}
	t.topicState = newTopicState(rt, ref, t)
	t.gauges = rt.Metrics.Topic(t.topic.Name)
	t.links = newTopicLinks(t.topicState)
	t.subs = newTopicSubs(t.topicState, t.links)
	t.limits = newTopicLimits(t.topicState)
	t.shards = newTopicShards(t.topicState)
	t.life = &topicLife{topicState: t.topicState, subs: t.subs}
	return t
}

// Receive handles one message; it never waits. Its shards and workers stop before it
// does: what comes meanwhile is refused.
func (t *topicActor) Receive(c actor.Context) {
	if _, waited := c.Message().(runtime.Failer); waited && t.over {
		runtime.FailLate(c.Message())
		return
	}
	switch m := c.Message().(type) {
	case *actor.Started:
		t.start(c)
	case *actor.Restarting:
		t.abandon()
	case *actor.Stopping:
		t.over = true
		t.abandon()
	case *actor.Stopped:
		t.Metrics.Forget(t.topic.Name)
		return
	case *shard.Configured:
		t.configure(m)
	case *reshaped:
		t.reshape(c, m)
	case *viewChanged:
		t.shards.place()
		t.links.openAll()
		t.subs.nodesChanged()
	case *shard.ClockJumped:
		t.shards.broadcast(m)
		t.limits.clockSet()
	case *shard.LeaseLost:
		t.shards.broadcast(m)
		t.links.closeAll()
	case *shard.LeaseBack:
		t.shards.broadcast(m)
		t.links.openAll()
	case *AddBatch, *shard.BecameReady, *shard.SettledHolds, *shard.Refunded, *shard.HoldOutcome, *shard.Owned, *shard.Lost, *shard.ReadyGone:
		t.shards.receive(m)
	case *grant, *roomInBytes, *subscribe, *abandoned, *unsubscribe, *countSubscriptions, *listWorkers, *askIdle, *wantedShards, *placeShards, *tellAgain:
		t.subs.receive(c, m)
	case *runtime.CallDone, *limiterTick, *limitsFreed, *passNotices, *shard.AdmissionsEnded:
		t.limits.receive(m)
	case *linkOpened, *linkDemand, *linkClosed, *reopenLink:
		t.links.receive(m)
	case *rampOn, *drainTopic:
		t.life.receive(m)
	}
	t.carryOut()
	t.subs.demands()
	t.life.finishDrain()
	t.gauges.Set(t.core)
	t.showRoom()
}

// showRoom tells the shards what they hold tasks ahead by.
func (t *topicActor) showRoom() {
	if t.ref.shared.Settings.HoldAhead > 0 {
		t.ref.shared.Busy.Store(t.core.Offer() > 0)
		t.ref.shared.Room.Store(int64(t.core.Room()))
	}
}

// start spawns the shards under their fixed names, also after a restart.
func (t *topicActor) start(c actor.Context) {
	t.shards.show()
	t.core.Pause(t.Clock.Now(), t.topic.DeliveryPaused)
	t.limit()
	t.life.rampUp()
	if t.ref.draining != nil { // before a restart
		t.life.drain(t.ref.draining)
	}
	t.shards.spawnAll(c)
	select {
	case <-t.ref.ready: // after a restart
	default:
		close(t.ref.ready)
	}
}

// abandon tells the streams of a topic that ends or starts anew to reconnect, closes the
// links and waits for the goroutines.
func (t *topicActor) abandon() {
	t.subs.abandonAll()
	t.links.abandonAll()
	t.end()
	t.limits.calls.stop()
}

func (t *topicActor) configure(m *shard.Configured) {
	t.topic = &m.Topic
	t.life.rampUp()
	t.limit()
	t.core.Pause(t.Clock.Now(), m.Topic.DeliveryPaused || t.draining != nil)
	t.carryOut() // before the shards have the configuration
	t.shards.broadcast(m)
}

// limit begins or ends to apply limits to the topic's tasks.
func (t *topicActor) limit() {
	t.core.Configure(t.Clock.Now(), t.topic.Ageing(), t.topic.Limits)
	if t.core.Limited() {
		t.gauges.Limited(t.Metrics, t.topic.Name, &t.topic.Limits)
	}
}

// reshape gives the topic's actor other shards. One that still stops cannot
// come back yet: the topic stays as it is until the configuration is looked at again.
func (t *topicActor) reshape(c spawner, m *reshaped) {
	defer close(m.done)
	if m.topic == *t.ref.shared.Current.Load() {
		return
	}
	last := *t.ref.layout.Load()
	next := layoutOf(t.Runtime, t.ref.pid, &m.topic, last)
	fresh, gone := last.changes(next)
	for _, n := range fresh {
		if slices.ContainsFunc(c.Children(), func(child *actor.PID) bool { return child.Id == next[n].pid.Id }) {
			return
		}
	}
	for _, n := range fresh {
		t.shards.spawn(c, n, next[n].Slot)
	}
	for _, n := range gone {
		t.core.Drop(t.Clock.Now(), n)
		t.carryOut() // while the others are there
		t.shards.owned[n] = false
		c.Poison(last[n].pid)
	}
	t.shards.grow(len(next))
	t.ref.layout.Store(&next)
	t.shards.show()
	for _, n := range fresh {
		t.ref.place(n)
	}
	t.ref.shared.Current.Store(&m.topic)
	t.configure(&shard.Configured{Topic: m.topic})
}

// carryOut carries out what the core decided.
func (t *topicActor) carryOut() {
	fx := t.core.Effects()
	for i := range fx.Hold {
		h := &fx.Hold[i]
		t.ref.tell(h.Shard, &shard.HoldTasks{Sub: t.subscribers[h.Sub], Tasks: h.Tasks, Admissions: h.Admissions, Counted: h.Counted})
	}
	for _, call := range fx.Take {
		t.limits.calls.take(call)
	}
	for _, at := range fx.WakeAt {
		t.after(max(at.Sub(t.Clock.Now()), 100*time.Microsecond), &limiterTick{at})
	}
	t.gauges.Count(&fx.Counts)
	refused := t.links.ask(fx.Ask)
	t.subs.giveVoid(fx.Void)
	if refused {
		t.carryOut()
	}
}

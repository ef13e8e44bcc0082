package dispatch

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Topic is credit, ready tasks, limits and pace of one topic as one thing. It has no
// clock, no goroutine and no I/O: the topic actor tells it what happened, and carries
// out its Effects.
//
// A task that a subscription has credit for is assigned to it. One that is under limits takes
// what it needs of them first, in one call. That goes on until nothing moves, so every method
// leaves the topic settled.
type Topic struct{ assigner }

// NewTopic returns a topic without shards and subscriptions.
func NewTopic(name string) *Topic {
	return &Topic{assigner{core: dispatcher{topic: name}, groups: make(map[Address]int)}}
}

// Subscription is who tasks are assigned to.
type Subscription struct {
	ID          int64
	MaxInFlight int
	OnDemand    bool          // it asks for tasks that it has been told of
	Visibility  time.Duration // of its holds
	Bytes       ByteRoom      // nil: any number
}

// Subscribe adds a subscription without credit. One on demand hears of what is ready and of
// nothing else.
func (t *Topic) Subscribe(now time.Time, s *Subscription) { t.hold(now, t.core.subscribe(s)) }

// Unsubscribe forgets a subscription. What it has in flight stays held, and what it has
// permits asked for is ready again when they come.
func (t *Topic) Unsubscribe(id int64) {
	t.core.unsubscribe(id)
	if g := t.limiter; g != nil && !t.pressing() {
		g.could = time.Time{}
	}
}

// Configure sets the ageing and the limits of the topic.
func (t *Topic) Configure(now time.Time, ageing int, limits store.TopicLimits) {
	t.core.age(ageing)
	if t.limiter != nil || limits != (store.TopicLimits{}) {
		t.limit(ageing, limits)
		t.hold(now, t.bound(limits))
	}
}

// Ready adds tasks of a shard that are due, or may be held ahead.
func (t *Topic) Ready(now time.Time, shard int, es []store.Entry) {
	t.hold(now, t.core.add(shard, es))
}

// TakeRoom takes room for up to n tasks that are due at once and not stored yet, and returns
// the subscription for each. None when others wait already.
func (t *Topic) TakeRoom(n int) []int64 { return t.core.reserve(n) }

// Room is how many tasks subscriptions of this node's workers may be given.
func (t *Topic) Room() int { return t.core.room() }

// Grant adds credit, up to the subscription's max in flight.
func (t *Topic) Grant(now time.Time, sub int64, n int) { t.hold(now, t.core.grant(sub, n)) }

// Settled makes room: n tasks of the subscription are no longer in flight.
func (t *Topic) Settled(now time.Time, sub int64, n int) { t.hold(now, t.core.settled(sub, n)) }

// Refund gives back the credit for n tasks that the subscription does not get: room that
// was taken or asked for, and assignments that are not counted.
func (t *Topic) Refund(now time.Time, sub int64, n int) { t.hold(now, t.core.refund(sub, n)) }

// Unassign ends n counted assignments that came to nothing. The subscription may be gone.
func (t *Topic) Unassign(now time.Time, to Address, n int) { t.hold(now, t.core.unassign(to, n)) }

// Roomy is called when a subscription has room in bytes again.
func (t *Topic) Roomy(now time.Time) { t.hold(now, t.core.match()) }

// Link says that a node can be asked on behalf of a subscription.
func (t *Topic) Link(now time.Time, sub int64, node string) { t.hold(now, t.core.link(sub, node)) }

// Unlink says that it can be no more, and that so many of the tasks that were asked for did not come.
func (t *Topic) Unlink(now time.Time, sub int64, node string, missing int) {
	t.hold(now, t.core.unlink(sub, node, missing))
}

// Demand says how many tasks wait for credit at another node, by what it said over the link of a
// subscription.
func (t *Topic) Demand(now time.Time, sub int64, node string, ready int) {
	t.hold(now, t.core.demand(sub, node, ready))
}

// Pause stops or resumes handing out tasks.
func (t *Topic) Pause(now time.Time, paused bool) { t.hold(now, t.core.pause(paused)) }

// Drop forgets the ready tasks of a shard.
func (t *Topic) Drop(now time.Time, shard int) {
	if t.limiter == nil {
		t.core.Drop(shard)
		return
	}
	t.turnBackComing(func(a *admitted) bool { return a.Shard == shard }, false)
	t.limiter.drop(shard)
	t.hold(now, nil)
}

// ShardEnded forgets the assignments of a shard that ended: nobody reports them.
func (t *Topic) ShardEnded(now time.Time, shard int) { t.hold(now, t.core.shardEnded(shard)) }

// Offer is how many ready tasks subscriptions on demand may be told of.
func (t *Topic) Offer() int {
	if t.core.paused {
		return 0
	}
	return t.core.allowed(t.core.Waiting())
}

// InFlight is the number of assigned and unsettled tasks of this node's workers.
func (t *Topic) InFlight() int { return t.core.inFlight() }

// Limits are those that apply now.
func (t *Topic) Limits() (l store.TopicLimits) {
	if t.limiter != nil {
		l = t.limiter.limits
	}
	return l
}

// Limited reports whether the topic has limits, or had some.
func (t *Topic) Limited() bool { return t.limiter != nil }

// Applies reports whether limits apply to a task with these traits.
func (t *Topic) Applies(traits *store.Traits) bool {
	return t.limiter != nil && t.limiter.under(&store.Entry{Traits: traits})
}

// Gauges are the numbers of a topic that are measured.
type Gauges struct {
	Ready, InFlight, Credit int
	Lack                    [Lacks]int // tasks that wait for a token or permit, by limit
}

// Gauges returns them.
func (t *Topic) Gauges() Gauges {
	g := Gauges{InFlight: t.core.inFlight(), Credit: t.core.credit()}
	if t.limiter != nil {
		g.Ready, g.Lack = t.limiter.gauges()
	} else {
		g.Ready = t.core.Waiting()
	}
	return g
}

package actors

import (
	"cmp"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
)

// topicSubs is the part of a topic's actor that knows its subscriptions: those of workers
// of this node, and those of other nodes for theirs. It tells who subscribes on demand how
// many tasks wait for credit.
type topicSubs struct {
	*topicState
	links *topicLinks

	informed map[string]*subscription.Subscriber // by party: the one subscription that is told
	told     map[string]int                      // by party: how many tasks it knows to be ready here, at least
	asked    map[string]bool                     // by party: it has asked for tasks since the last tellAgain
	telling  bool                                // a tellAgain is to come
	left     time.Time                           // when the last of those went that noteWorkers counts
}

// A shard that another node has workers for is given up once this one has had none for
// yieldAfter, which is longer than a worker takes from one long poll to the next. It is
// claimed anew after yieldFor: who wanted it may be gone.
const (
	yieldAfter = 2 * time.Second
	yieldFor   = 3 * time.Second
)

func newTopicSubs(state *topicState, links *topicLinks) *topicSubs {
	t := &topicSubs{
		topicState: state,
		links:      links,
		informed:   make(map[string]*subscription.Subscriber),
		told:       make(map[string]int),
		asked:      make(map[string]bool),
	}
	t.noteWorkers()
	return t
}

// receive handles a message about a subscription.
func (t *topicSubs) receive(c actor.Context, m any) {
	now := t.Clock.Now()
	switch m := m.(type) {
	case *grant:
		t.granted(m)
		t.core.Grant(now, m.sub, m.n)
	case *roomInBytes:
		t.core.Roomy(now)
	case *subscribe:
		t.subscribe(c, m)
	case *abandoned:
		select {
		case sub := <-m.reply:
			if sub != nil {
				t.unsubscribe(&unsubscribe{sub: sub.ID})
			}
		default:
		}
	case *unsubscribe:
		t.unsubscribe(m)
	case *countSubscriptions:
		m.reply <- t.workers()
	case *listWorkers:
		m.reply <- t.list(m)
	case *wantedShards:
		t.yield(m.numbers)
	case *tellAgain:
		t.forgetTold()
	case *placeShards:
		for _, n := range m.numbers {
			t.ref.place(n)
		}
	case *askIdle:
		m.reply <- len(t.subscribers)+len(t.links.byKey)+t.core.InFlight() == 0
	}
}

func (t *topicSubs) subscribe(c actor.Context, m *subscribe) {
	id := t.LastSub.Add(1)
	sub := &subscription.Subscriber{ID: id, Options: m.options, Node: t.Name, Party: party(id, &m.options), Out: m.out, Since: t.Clock.Millis()}
	w := newWorker(t.Runtime, t.ref, sub, m.out)
	props := t.Props(func() actor.Actor { return w }) // the same after a panic: it counts who has confirmed
	sub.Worker = c.SpawnPrefix(props, "worker")
	t.subscribers[sub.ID] = sub
	sub.Budget = &subscription.Budget{
		Most: int64(m.options.MaxBytes),
		Node: t.Bodies,
		Size: &t.ref.shared.Bodies,
		Wake: func() { t.Send(t.ref.pid, &roomInBytes{}) },
	}
	t.core.Subscribe(t.Clock.Now(), &dispatch.Subscription{
		ID:          sub.ID,
		MaxInFlight: m.options.MaxInFlight,
		OnDemand:    m.options.OnDemand,
		Visibility:  m.options.Visibility,
		Bytes:       sub.Budget,
	})
	if m.options.OnDemand {
		t.inform(sub)
	}
	for _, other := range t.Fleet.Others() {
		t.links.open(sub, other)
	}
	t.ref.subscriptions.Store(int64(t.workers()))
	t.noteWorkers()
	t.log.Debug("subscribed", "topic", t.topic.Name, "worker", m.options.Worker)
	m.reply <- sub
	if t.draining != nil {
		t.Send(sub.Worker, &drainWorker{grace: t.draining.grace})
	}
}

// party names who is told of what is ready: a node once for all its subscriptions,
// a worker for itself.
func party(id int64, o *subscription.Options) string {
	if o.ByNode() {
		return o.Peer
	}
	return fmt.Sprint("subscription ", id) // no node has a blank in its name
}

// unsubscribe ends a subscription in order: nothing new is assigned to it, each
// shard confirms that nothing more is to come, and then its worker stops.
func (t *topicSubs) unsubscribe(m *unsubscribe) {
	sub := t.subscribers[m.sub]
	if sub == nil {
		return
	}
	sub.Gone.Store(true)
	t.core.Unsubscribe(m.sub)
	delete(t.subscribers, m.sub)
	t.links.closeOf(m.sub)
	t.successor(sub)
	t.ref.subscriptions.Store(int64(t.workers()))
	t.noteWorkers()
	t.ref.touch()
	shards := *t.ref.layout.Load()
	t.Send(sub.Worker, &ended{undelivered: m.undelivered, shards: shards.numbers()})
	for _, n := range shards.numbers() {
		t.Send(shards[n].pid, &shard.Forget{Runtime: t.Runtime, Sub: sub, Shard: n})
	}
}

// inform has a party told over a subscription from now on, and once more what is ready: what it was
// told over another one may have got lost, or will. The youngest is the one that certainly goes on.
func (t *topicSubs) inform(sub *subscription.Subscriber) {
	t.informed[sub.Party] = sub
	delete(t.told, sub.Party)
}

// successor picks another subscription of a node to tell what is ready.
func (t *topicSubs) successor(gone *subscription.Subscriber) {
	peer := gone.Party
	if t.informed[peer] != gone {
		return
	}
	delete(t.informed, peer)
	delete(t.told, peer)
	for _, sub := range ordered.All(t.subscribers, cmp.Compare) {
		if sub.Party == peer {
			t.inform(sub)
		}
	}
}

// workers is the number of subscriptions of workers, not of other nodes.
func (t *topicSubs) workers() (n int) {
	for _, sub := range t.subscribers {
		if !sub.Options.ByNode() {
			n++
		}
	}
	return n
}

// noteWorkers records whether somebody takes tasks here: a worker of this node, or a member for
// its own. Of a node that is no member the subscriptions lead nowhere, though they may take a
// while to break.
func (t *topicSubs) noteWorkers() {
	some := false
	for _, sub := range t.subscribers {
		_, member := t.Fleet.Member(sub.Options.Peer)
		if some = !sub.Options.ByNode() || member; some {
			break
		}
	}
	if had := t.ref.shared.Workers.Swap(some); had && !some {
		t.left = time.Now()
	}
}

// yield gives up shards that a node with workers wants, unless there are some here, too: then
// each keeps what it owns.
func (t *topicSubs) yield(shards []int) {
	if t.ref.shared.Workers.Load() || time.Since(t.left) < yieldAfter {
		return
	}
	for _, n := range shards {
		if t.ref.tell(n, &shard.YieldShard{}) {
			t.log.Debug("shard is for another node's workers", "topic", t.topic.Name, "shard", n)
		}
	}
	t.after(yieldFor, &placeShards{shards})
}

// abandonAll tells the streams of a topic that ends or starts anew to reconnect: the actors
// of their workers stop with it, so it tells the streams itself.
func (t *topicSubs) abandonAll() {
	for _, sub := range ordered.All(t.subscribers, cmp.Compare) {
		sub.Gone.Store(true)
		sub.Out.Drain(0)
	}
}

// drainAll tells the streams to settle what they have and go.
func (t *topicSubs) drainAll(grace time.Duration) {
	for _, sub := range ordered.All(t.subscribers, cmp.Compare) {
		t.Send(sub.Worker, &drainWorker{grace: grace})
	}
}

// nodesChanged looks who takes tasks here still, and tells workers on demand that other nodes came or went.
func (t *topicSubs) nodesChanged() {
	t.noteWorkers()
	for _, sub := range ordered.All(t.subscribers, cmp.Compare) {
		if sub.Options.OnDemand && !sub.Options.ByNode() {
			sub.Out.NodesChanged()
		}
	}
}

// granted records that another node, or a worker on demand, asks for tasks: it counts
// them as no longer ready here.
func (t *topicSubs) granted(m *grant) {
	if sub := t.subscribers[m.sub]; sub != nil && sub.Options.OnDemand {
		t.told[sub.Party] = max(0, t.told[sub.Party]-m.n)
		t.asked[sub.Party] = true
	}
}

// giveVoid gives back credit on demand that found no task. What that says of ready tasks ends with the
// subscription, so a party that is told over another one knows of no more tasks by it.
func (t *topicSubs) giveVoid(voids []dispatch.Void) {
	ready := t.core.Offer()
	for _, v := range voids {
		sub := t.subscribers[v.Sub]
		if sub == nil {
			continue
		}
		sub.Out.Demand(ready, v.N)
		if t.informed[sub.Party] == sub || ready < t.told[sub.Party] {
			t.told[sub.Party] = ready
		}
	}
}

// demands tells who subscribes on demand how many tasks wait for credit.
func (t *topicSubs) demands() {
	ready := t.core.Offer()
	for _, sub := range ordered.All(t.informed, cmp.Compare) {
		if told := t.told[sub.Party]; ready > 0 && (told == 0 || ready > 2*told) || ready == 0 && told > 0 {
			sub.Out.Demand(ready, 0)
			t.told[sub.Party] = ready
		}
		if !t.telling && sub.Options.ByNode() && t.told[sub.Party] > 0 {
			t.telling = true
			t.after(t.ref.shared.Settings.Knobs.WithDefaults().TellEvery, &tellAgain{})
		}
	}
}

// forgetTold has nodes told again that have asked for nothing for a while: what they were told is a hint, and may be lost
// to them.
func (t *topicSubs) forgetTold() {
	t.telling = false
	for party, sub := range t.informed {
		if sub.Options.ByNode() && !t.asked[party] {
			delete(t.told, party)
		}
	}
	clear(t.asked)
}

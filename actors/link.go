package actors

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/ordered"
)

// reopenAfter is the pause before a link that broke is opened again.
const reopenAfter = 200 * time.Millisecond

// link is a subscription of this node's worker at another node. The topic actor
// owns it; its methods are called by the peer's goroutine.
type link struct {
	topic  *Topic
	pid    *actor.PID // of the topic
	rt     *runtime
	sub    *subscriber
	node   string
	remote RemoteSubscription

	// delivered counts tasks that came, those that were dropped too: their room is
	// refunded. granted and returned are the topic's.
	delivered         atomic.Int64
	granted, returned int64
}

// outstanding is the credit that the other node has, when the link is closed.
func (l *link) outstanding() int { return int(l.granted - l.returned - l.delivered.Load()) }

// Opened says that the other node took the subscription.
func (l *link) Opened() { l.rt.send(l.pid, &linkOpened{l}) }

// Demand passes on what the other node has ready, and credit that comes back.
func (l *link) Demand(ready, returned int) { l.rt.send(l.pid, &linkDemand{l, ready, returned}) }

// Await returns once the worker's stream has room for more, or with ctx.
func (l *link) Await(ctx context.Context) { l.sub.budget.wait(ctx) }

// Closed says that nothing more comes.
func (l *link) Closed(err error) { l.rt.send(l.pid, &linkClosed{l, err}) }

// Deliver passes tasks to their shards, which register the holds.
func (l *link) Deliver(tasks []Delivery) {
	bytes := int64(0)
	for _, d := range tasks {
		bytes += bodyBytes(d.Task)
	}
	l.sub.budget.charge(bytes)
	l.topic.bodies.learn(int64(len(tasks)), bytes)
	if later := l.deliver(tasks); len(later) > 0 {
		l.rt.pool.Run(func() { // the other node knows of shards that this one does not
			l.rt.lookAgain(l.topic)
			dropped := l.deliver(later)
			for _, d := range dropped {
				l.sub.budget.sent(bodyBytes(d.Task))
				l.rt.log.Error("task of an unknown shard dropped", "topic", d.Topic, "task", d.Task.ID, "node", l.node)
			} // its hold runs out
			if len(dropped) > 0 {
				l.rt.send(l.pid, &refunded{sub: l.sub.id, n: len(dropped)})
			}
		})
	}
	l.delivered.Add(int64(len(tasks)))
	l.rt.metrics.linked.Add(float64(len(tasks)))
}

// deliver returns the tasks of shards that this node has not.
func (l *link) deliver(tasks []Delivery) (rest []Delivery) {
	shards := *l.topic.layout.Load()
	byShard := make([][]Delivery, len(shards))
	for _, d := range tasks {
		if n, _, ok := decodeToken(d.Token); ok && shards.at(n).pid != nil {
			byShard[n] = append(byShard[n], d)
		} else {
			rest = append(rest, d)
		}
	}
	for n, ds := range byShard {
		if len(ds) > 0 {
			l.rt.send(shards[n].pid, &heldElsewhere{sub: l.sub, tasks: ds})
		}
	}
	return rest
}

// openLinks subscribes at every other node on behalf of this node's workers. Which
// of them own shards of the topic they know best themselves.
func (t *topicActor) openLinks() {
	for _, m := range t.fleet.others() {
		for _, sub := range ordered.All(t.subs, cmp.Compare) {
			t.openLink(sub, m)
		}
	}
}

func (t *topicActor) openLink(sub *subscriber, m Member) {
	if sub.options.LocalOnly || t.draining != nil || t.keeper.err() != nil || t.links[linkKey{sub.id, m.Name}] != nil {
		return
	}
	l := &link{topic: t.ref, pid: t.ref.pid, rt: t.runtime, sub: sub, node: m.Name}
	t.links[linkKey{sub.id, m.Name}] = l
	options := sub.options
	options.LocalOnly, options.OnDemand, options.Peer, options.TellsSent = true, true, t.cfg.Node, false // that is for the other end to say
	l.remote = t.fleet.peers.Subscribe(m, options, l)
}

// unlink ends all links: without the store, which the lease is lost to, workers of
// this node could settle nothing of what they get over them.
func (t *topicActor) unlink() {
	for _, l := range ordered.All(t.links, compareLinks) {
		l.remote.Close()
	}
}

// linkKey names a link: one for each subscription and node.
type linkKey struct {
	sub  int64
	node string
}

// closeLinks ends the links of a subscription. What they still bring is given back.
func (t *topicActor) closeLinks(sub int64) {
	for key, l := range ordered.All(t.links, compareLinks) {
		if key.sub == sub {
			l.remote.Close()
		}
	}
}

func (t *topicActor) onDemand(m *linkDemand) {
	m.link.returned += int64(m.returned)
	if m.returned > 0 {
		t.core.Refund(t.clock.Now(), m.link.sub.id, m.returned)
	}
	t.core.Demand(t.clock.Now(), m.link.node, m.ready)
}

// onLinkClosed gives back the credit that the other node had, and tries again
// while it is a member.
func (t *topicActor) onLinkClosed(m *linkClosed) {
	l, now := m.link, t.clock.Now()
	delete(t.links, linkKey{l.sub.id, l.node})
	t.core.Link(now, l.sub.id, l.node, false)
	if !t.linked(l.node) {
		t.core.Demand(now, l.node, 0)
	}
	if n := l.outstanding(); n > 0 {
		t.core.Refund(now, l.sub.id, n)
	}
	if t.subs[l.sub.id] == nil || t.draining != nil {
		return
	}
	if m.err != nil {
		t.log.Debug("link closed", "topic", t.topic.Name, "node", l.node, "err", m.err)
	}
	t.after(reopenAfter, &reopenLink{l.sub.id, l.node})
}

func (t *topicActor) linked(node string) bool {
	for key := range t.links {
		if key.node == node {
			return true
		}
	}
	return false
}

func (t *topicActor) reopen(m *reopenLink) {
	sub, there := t.subs[m.sub], false
	member := Member{}
	if sub != nil {
		member, there = t.fleet.Member(m.node)
	}
	if there {
		t.openLink(sub, member)
	}
}

// ask gives room of subscriptions to tasks of other nodes, and reports whether some
// could not be asked.
func (t *topicActor) ask(asks []dispatch.Ask) (refused bool) {
	for _, a := range asks {
		l := t.links[linkKey{a.Sub, a.Node}]
		if l == nil {
			now := t.clock.Now()
			t.core.Link(now, a.Sub, a.Node, false)
			t.core.Refund(now, a.Sub, a.N)
			refused = true
			continue
		}
		l.granted += int64(a.N)
		l.remote.Grant(a.N)
	}
	return refused
}

// granted records that another node, or a worker on demand, asks for tasks: it counts
// them as no longer ready here.
func (t *topicActor) granted(m *grant) {
	if sub := t.subs[m.sub]; sub != nil && sub.options.OnDemand {
		t.told[sub.party] = max(0, t.told[sub.party]-m.n)
	}
}

// giveVoid gives back credit on demand that found no task.
func (t *topicActor) giveVoid(voids []dispatch.Void) {
	ready := t.core.Offer()
	for _, v := range voids {
		if sub := t.subs[v.Sub]; sub != nil {
			sub.out.Demand(ready, v.N)
			t.told[sub.party] = ready
		}
	}
}

// demands tells who subscribes on demand how many tasks wait for credit.
func (t *topicActor) demands() {
	ready := t.core.Offer()
	for _, sub := range ordered.All(t.peers, cmp.Compare) {
		if told := t.told[sub.party]; ready > 0 && (told == 0 || ready > 2*told) || ready == 0 && told > 0 {
			sub.out.Demand(ready, 0)
			t.told[sub.party] = ready
		}
	}
}

// Cancel passes on what the other node says of tasks that it holds for this one.
func (l *link) Cancel(asks []CancelAsk) {
	for _, a := range asks {
		if n, token, ok := decodeToken(a.Token); ok {
			l.rt.tell(l.topic, n, &cancelHolds{holds: []EndedHold{{a.ID, token}}})
		}
	}
}

func compareLinks(a, b linkKey) int {
	return cmp.Or(cmp.Compare(a.sub, b.sub), strings.Compare(a.node, b.node))
}

package actors

import (
	"cmp"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/subscription"
)

// reopenAfter is the pause before a link that broke is opened again.
const reopenAfter = 200 * time.Millisecond

// topicLinks is the part of a topic's actor that knows its links: the subscriptions of this
// node's workers at other nodes, and what these have ready.
type topicLinks struct {
	*topicState
	byKey map[linkKey]*link
}

// linkKey names a link: one for each subscription and node.
type linkKey struct {
	sub  int64
	node string
}

func newTopicLinks(state *topicState) *topicLinks {
	return &topicLinks{topicState: state, byKey: make(map[linkKey]*link)}
}

// receive handles a message of a link.
func (t *topicLinks) receive(m any) {
	now := t.Clock.Now()
	switch m := m.(type) {
	case *linkOpened:
		t.core.Link(now, m.link.sub.ID, m.link.node)
	case *linkDemand:
		t.onDemand(m)
	case *linkClosed:
		t.onClosed(m)
	case *reopenLink:
		t.reopen(m)
	}
}

// openAll subscribes at every other node on behalf of this node's workers. Which
// of them own shards of the topic they know best themselves.
func (t *topicLinks) openAll() {
	for _, m := range t.Fleet.Others() {
		for _, sub := range ordered.All(t.subscribers, cmp.Compare) {
			t.open(sub, m)
		}
	}
}

func (t *topicLinks) open(sub *subscription.Subscriber, m fleet.Member) {
	if sub.Options.LocalOnly || t.draining != nil || t.Keeper.Err() != nil || t.byKey[linkKey{sub.ID, m.Name}] != nil {
		return
	}
	l := &link{topic: t.ref, pid: t.ref.pid, rt: t.Runtime, sub: sub, node: m.Name}
	t.byKey[linkKey{sub.ID, m.Name}] = l
	options := sub.Options
	options.LocalOnly, options.OnDemand, options.Peer, options.TellsSent = true, true, t.Name, false // that is for the other end to say
	l.remote = t.Fleet.Peers().Subscribe(m, options, l)
}

// closeAll ends all links: without the store, which the lease is lost to, workers of
// this node could settle nothing of what they get over them.
func (t *topicLinks) closeAll() {
	for _, l := range ordered.All(t.byKey, compareLinks) {
		l.remote.Close()
	}
}

// closeOf ends the links of a subscription. What they still bring is given back.
func (t *topicLinks) closeOf(sub int64) {
	for key, l := range ordered.All(t.byKey, compareLinks) {
		if key.sub == sub {
			l.remote.Close()
		}
	}
}

// abandonAll closes the links of a topic that ends or starts anew.
func (t *topicLinks) abandonAll() {
	for _, l := range ordered.All(t.byKey, compareLinks) {
		l.remote.Close()
	}
}

func (t *topicLinks) onDemand(m *linkDemand) {
	m.link.returned += int64(m.returned)
	if m.returned > 0 {
		t.core.Refund(t.Clock.Now(), m.link.sub.ID, m.returned)
	}
	t.core.Demand(t.Clock.Now(), m.link.sub.ID, m.link.node, m.ready)
}

// onClosed gives back the credit that the other node had, and tries again
// while it is a member.
func (t *topicLinks) onClosed(m *linkClosed) {
	l := m.link
	delete(t.byKey, linkKey{l.sub.ID, l.node})
	t.core.Unlink(t.Clock.Now(), l.sub.ID, l.node, max(0, l.outstanding()))
	if t.subscribers[l.sub.ID] == nil || t.draining != nil {
		return
	}
	if m.err != nil {
		t.log.Debug("link closed", "topic", t.topic.Name, "node", l.node, "err", m.err)
	}
	t.after(reopenAfter, &reopenLink{l.sub.ID, l.node})
}

func (t *topicLinks) reopen(m *reopenLink) {
	sub, there := t.subscribers[m.sub], false
	member := fleet.Member{}
	if sub != nil {
		member, there = t.Fleet.Member(m.node)
	}
	if there {
		t.open(sub, member)
	}
}

// ask gives room of subscriptions to tasks of other nodes, and reports whether some
// could not be asked.
func (t *topicLinks) ask(asks []dispatch.Ask) (refused bool) {
	for _, a := range asks {
		l := t.byKey[linkKey{a.Sub, a.Node}]
		if l == nil {
			t.core.Unlink(t.Clock.Now(), a.Sub, a.Node, a.N)
			refused = true
			continue
		}
		l.granted += int64(a.N)
		l.remote.Grant(a.N)
	}
	return refused
}

func compareLinks(a, b linkKey) int {
	return cmp.Or(cmp.Compare(a.sub, b.sub), strings.Compare(a.node, b.node))
}

package servicetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
)

func (n *Node) Subscribe(to fleet.Member, o subscription.Options, l fleet.Link) fleet.RemoteSubscription {
	link := &link{fleet: n.fleet, worker: o.Worker, to: to.Name, Link: l, ready: make(chan struct{})}
	n.fleet.Mu.Lock()
	n.links = append(n.links, link)
	n.fleet.Mu.Unlock()
	go link.open(n.reach(to.Name), o)
	return link
}

// BreakLinks ends the links to a node at once. The caller holds the fleet's mu.
func (n *Node) BreakLinks(to string) {
	for _, l := range n.links {
		if l.to == to {
			go l.end(errors.New("broken"))
		}
	}
}

// link is a subscription at another node, and its Outbox there: what a stream between the two does, without one.
type link struct {
	fleet.Link
	fleet  *Fleet
	worker string
	to     string
	ready  chan struct{} // closed once sub is set, or it is over

	mu      sync.Mutex // guards what follows
	sub     *service.Subscription
	ended   bool
	leaving bool         // it grants nothing more
	last    [2]time.Time // when the last frame leaves, in each direction
	said    int          // how many tasks are ready, as was said last
	demand  *demandFrame // that waits to be sent, and takes what is said meanwhile; nil: none
}

// Directions of frames.
const (
	there = iota // to the node that has the tasks
	back
)

type demandFrame struct{ ready, returned int }

func (l *link) open(at *Node, o subscription.Options) {
	defer close(l.ready)
	if at == nil {
		go l.end(errors.New("unreachable"))
		return
	}
	sub, err := at.Sys.Delivery.Subscribe(context.Background(), o, l)
	if err != nil {
		go l.end(err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sub = sub
	if !l.ended {
		l.Link.Opened()
	}
}

// wait is how long the next frame waits to be sent.
func (l *link) wait() time.Duration {
	l.fleet.Mu.Lock()
	defer l.fleet.Mu.Unlock()
	if l.fleet.Way == nil {
		return 0
	}
	return l.fleet.Way(l.worker)
}

// pass does something once a frame has come to the other end, unless the link has ended by then; waited is how
// long that took. The caller holds mu, and so does whoever is called.
func (l *link) pass(direction int, do func(waited time.Duration)) {
	now := time.Now()
	at := now.Add(l.wait())
	if last := l.last[direction]; !at.After(last) && last.After(now) {
		at = last.Add(1)
	}
	l.last[direction] = at
	if !at.After(now) {
		do(0)
		return
	}
	time.AfterFunc(at.Sub(now), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.ended {
			do(at.Sub(now))
		}
	})
}

func (l *link) Grant(n int) {
	go func() {
		<-l.ready
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pass(there, func(time.Duration) {
			if l.sub != nil && !l.ended && !l.leaving {
				_ = l.sub.Grant(n)
			}
		})
	}()
}

func (l *link) Close() {
	go func() {
		<-l.ready
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leaving = true
		l.pass(there, func(time.Duration) { go l.end(nil) })
	}()
}

// end ends the link. One that breaks is known to be broken at the other end some time later, if frames take time.
func (l *link) end(err error) {
	<-l.ready
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.Link.Closed(err)
	if l.sub == nil {
		return
	}
	if wait := l.wait(); err != nil && wait > 0 {
		time.AfterFunc(wait, func() { l.sub.Unsubscribe(nil) })
		return
	}
	l.sub.Unsubscribe(nil)
}

// Deliver takes tasks for the other end. Those that wait here for more than half of their hold go back.
func (l *link) Deliver(tasks []subscription.Delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.fleet.Mu.Lock()
	lag := l.fleet.Lag
	if l.fleet.Strange {
		for _, d := range tasks {
			d.Token[1], d.Token[2] = 0xff, 0 // where a token has the number of the shard
		}
	}
	l.fleet.Mu.Unlock()
	if lag != 0 {
		time.AfterFunc(lag, func() { l.Link.Deliver(tasks) })
		return true
	}
	l.pass(back, func(waited time.Duration) {
		if waited <= tasks[0].HoldFor/2 {
			l.Link.Deliver(tasks)
			return
		}
		releases := make([]subscription.Settlement, len(tasks))
		for i, d := range tasks {
			releases[i] = subscription.Settlement{Kind: subscription.SettleRelease, ID: d.Task.ID, Token: d.Token, Unseen: true}
		}
		l.sub.Settle(0, releases)
		l.said = max(l.said, len(tasks))
		l.ask(len(tasks))
	})
	return true
}

func (l *link) Cancel(asks []subscription.CancelAsk) { l.Link.Cancel(asks) }

func (l *link) NodesChanged() {}

func (l *link) Demand(ready, returned int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = ready
	l.ask(returned)
}

// ask says what is ready, and what credit came back. The caller holds mu.
func (l *link) ask(returned int) {
	if l.ended {
		return
	}
	if l.demand != nil {
		l.demand.ready = l.said
		l.demand.returned += returned
		return
	}
	d := &demandFrame{l.said, returned}
	l.demand = d
	l.pass(back, func(time.Duration) {
		l.demand = nil
		l.fleet.Mu.Lock()
		unheard := l.fleet.Unheard
		l.fleet.Mu.Unlock()
		if !unheard {
			l.Link.Demand(d.ready, d.returned)
		}
	})
}

func (l *link) Settled(uint64, []subscription.Settled) {}

func (l *link) Drain(time.Duration) { l.Close() }

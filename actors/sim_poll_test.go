package actors_test

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	history "github.com/ddq-io/ddq/bench/ledger"
)

// poll has somebody ask nodes for tasks now and then: each long poll is a subscription that
// ends with its first tasks.
func (s *sim) poll() {
	if s.plan.polls == 0 {
		return
	}
	var next func()
	next = func() {
		if time.Since(s.start) < s.plan.active {
			s.retrieve()
			s.after(s.between(0, 2*s.plan.polls), next)
		}
	}
	s.after(time.Second, next)
}

// simPoll is a long poll as System.Retrieve makes it, but that the loop wakes it.
type simPoll struct {
	s      *sim
	node   *simNode
	c      *simClient
	sub    *service.Subscription
	got    []subscription.Delivery
	closed bool

	drained bool
}

// retrieve is one long poll, and what becomes of its tasks.
func (s *sim) retrieve() {
	n := s.anyNode()
	if n == nil {
		return
	}
	p := &simPoll{s: s, node: n, c: s.client("poller")}
	most, wait := 1+s.rng.IntN(6), s.between(0, s.plan.callTimeout)
	n.whenAwake(func() {
		s.spawn(n, func() (err error) {
			ctx, cancel := n.timeout()
			defer cancel()
			p.sub, err = n.use.Delivery.Subscribe(ctx, subscription.Options{Topic: simTopic, Worker: p.c.name, MaxInFlight: most}, p)
			return err
		}, func(err error) {
			if err == nil {
				_ = p.sub.Grant(most)
				s.after(wait, p.wake)
			}
		})
	})
}

// wake ends the poll, once.
func (p *simPoll) wake() {
	if !p.node.dead.Load() {
		p.node.whenAwake(p.end)
	}
}

func (p *simPoll) end() {
	if p.closed || p.node.dead.Load() {
		return
	}
	p.closed = true
	got, sent := p.got, time.Now()
	if p.s.chance(0.05) { // whoever asked is gone
		p.sub.Unsubscribe(got)
		return
	}
	p.sub.Unsubscribe(nil)
	if p.s.chance(p.s.plan.loseAnswer) {
		return
	}
	p.s.after(p.s.lag(), func() {
		for _, d := range got {
			p.s.polled(p.c, d, sent)
		}
	})
}

func (p *simPoll) Deliver(ds []subscription.Delivery) bool {
	if p.node.dead.Load() || p.closed {
		return false
	}
	p.s.leaves(p.node.key, ds)
	p.got = append(p.got, ds...)
	p.s.arrive(p.wake)
	return true
}

func (p *simPoll) Drain(time.Duration) {
	if !p.node.dead.Load() {
		p.drained = true
		p.s.arrive(p.wake)
	}
}

func (p *simPoll) Settled(uint64, []subscription.Settled) {}

func (p *simPoll) Demand(int, int) {}

func (p *simPoll) Cancel([]subscription.CancelAsk) {}

func (p *simPoll) NodesChanged() {}

// polled is what becomes of a task that a poll returned: most are settled, at any node.
func (s *sim) polled(c *simClient, d subscription.Delivery, sent time.Time) {
	c.delivered(d)
	s.received(d, sent, s.plan.visibility)
	var op history.Op
	var kind subscription.SettleKind
	switch r := s.rng.IntN(10); {
	case r < 7 || time.Since(s.start) > s.plan.active:
		op, kind = history.Ack, subscription.SettleAck
	case r < 8:
		op, kind = history.Nack, subscription.SettleNack
	case r < 9:
		op, kind = history.Release, subscription.SettleRelease
	default:
		return // it runs out
	}
	s.after(s.between(0, 300*time.Millisecond), func() {
		n := s.anyNode()
		if n == nil {
			return
		}
		s.order.settled(d.Task.ID)
		e := history.Event{Op: op, Task: d.Task.ID, Token: hex.EncodeToString(d.Token)}
		c.call(n, e, func(ctx context.Context) (history.Event, error) {
			results, err := n.use.Delivery.Settle(ctx, simTopic, []subscription.Settlement{{Kind: kind, ID: d.Task.ID, Token: d.Token}})
			if err != nil {
				return history.Event{}, err
			}
			return settledAnswer(results)
		})
	})
}

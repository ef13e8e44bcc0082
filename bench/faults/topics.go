package faults

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// headroom is by how much limits are above what is sent, so that a backlog ends.
	headroom = 1.5
	// fewDead is how many dead letters a topic keeps: nodes look every 15 seconds.
	fewDead = 4
	// keyPeriod is that of the rate of a key.
	keyPeriod = 500 * time.Millisecond
	// lanedAgeing is the ageing of the topic of the backlog.
	lanedAgeing = 10
	// stalled is how long nothing may become of what is left before it is taken to
	// be stuck, and for what comes behind something that was.
	stalled      = time.Minute
	stalledAgain = 10 * time.Second
)

// policyOf is what a topic is created with, and what the ledger is told of it.
func (s *setting) policyOf(name string) (client.Policy, ledger.Event) {
	keep, watching, shards := 24*time.Hour, plan.Watched, 2
	p := client.Policy{
		VisibilityTimeout: &s.hold, Shards: &shards, MaxRetries: &s.maxRetries,
		Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: 200 * time.Millisecond},
	}
	e := ledger.Event{Kind: ledger.Topic, Topic: name, HoldMS: s.hold.Milliseconds(), Shared: s.together}
	sent := s.rate * plan.PolicyShare / 1000 // a second
	atLeast := func(n int, x float64) int { return max(n, int(math.Ceil(x))) }
	switch name {
	case plan.Plain:
		p.Shards, p.IndexedAttributes = &s.shards, &[]string{plan.GroupAttribute}
		if s.herd == 0 {
			e.MaxDead = fewDead
			p.WatchRetention, p.MaxDead = &watching, &e.MaxDead
		}
		return p, e
	case plan.Kept:
		p.IndexedAttributes, p.WatchRetention = &[]string{plan.TagAttribute}, &watching
	case plan.Laned:
		one, ageing := 1, lanedAgeing
		p.Shards, p.PriorityAgeing, e.Ageing = &one, &ageing, ageing
	case plan.Capped:
		e.Cap = atLeast(2, sent*plan.CappedWork.Seconds()*headroom)
		e.KeyCap = atLeast(1, float64(e.Cap)/plan.PolicyKeys)
		p.Concurrency, p.KeyConcurrency = &e.Cap, &e.KeyCap
	case plan.Rated:
		e.Rate = &ledger.Rate{Count: atLeast(10, sent*headroom), PeriodMS: 1000, Burst: 5}
		e.KeyRate = &ledger.Rate{Count: atLeast(2, sent*headroom/plan.PolicyKeys*keyPeriod.Seconds()), PeriodMS: keyPeriod.Milliseconds(), Window: true}
		p.Rate, p.KeyRate = rateOf(e.Rate), rateOf(e.KeyRate)
	}
	p.DoneRetention, e.KeepMS = &keep, keep.Milliseconds()
	return p, e
}

func rateOf(r *ledger.Rate) *client.Rate {
	rate := &client.Rate{Count: r.Count, Period: time.Duration(r.PeriodMS) * time.Millisecond, Burst: r.Burst}
	if r.Window {
		rate.Kind = client.SlidingWindow
	}
	return rate
}

// changeTopic writes down a change of a topic and what came of it.
func (r *round) changeTopic(e ledger.Event, do func() (client.Topic, error)) error {
	e.Kind, e.Call = ledger.Call, r.ledger.NextCall()
	r.ledger.Append(e)
	t, err := do()
	answer := ledger.Event{Kind: ledger.Answer, Call: e.Call, Op: e.Op, Topic: e.Topic, Result: ledger.OK, Version: t.Version}
	if err != nil {
		answer.Result, answer.Reason = tap.Outcome(err)
	}
	r.ledger.Append(answer)
	return err
}

// drain waits until nothing is left to deliver, or nothing happens any more.
func (r *round) drain(ctx context.Context) error {
	return r.Nodes[0].Ask(func(c *client.Client) error {
		return r.awaitNone(ctx, "tasks are left", 100*time.Millisecond, func() (left int64, err error) {
			for _, name := range append(plan.Topics(), plan.Spread, plan.Flowed, plan.Next) {
				status, err := c.DescribeTopic(ctx, name)
				if err != nil {
					return 0, fmt.Errorf("count what is left: %w", err)
				}
				if status.DeliveryPaused { // a fault has undone that it goes on
					if err := (operator{r}).resume(ctx, c); err != nil {
						return 0, err
					}
				}
				left += unfinished(&status)
			}
			return left, nil
		})
	})
}

// unfinished is how many tasks of a topic are.
func unfinished(t *client.TopicStatus) int64 {
	return t.Depth.Scheduled + t.Depth.Ready + t.Depth.Running
}

// awaitNone waits until count says 0, or the same number for so long that nothing happens
// any more, which the log tells.
func (r *round) awaitNone(ctx context.Context, what string, pause time.Duration, count func() (int64, error)) error {
	patience := stalled
	if r.stuck {
		patience = stalledAgain
	}
	left, since := int64(-1), time.Now()
	for time.Since(since) < patience {
		now, err := count()
		if now == 0 || err != nil {
			return err
		}
		if now != left {
			left, since = now, time.Now()
		}
		if err := r.sleep(ctx, pause); err != nil {
			return err
		}
	}
	r.logf("%d %s, and nothing happens", left, what)
	r.stuck = true
	return nil
}

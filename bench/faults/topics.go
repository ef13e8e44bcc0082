package faults

import (
	"context"
	"errors"
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
	// be stuck.
	stalled = time.Minute
	// askAgain is the pause before a call is repeated that must succeed.
	askAgain = 150 * time.Millisecond
)

// policyOf is what a topic is created with, and what the ledger is told of it.
func (r *round) policyOf(name string) (client.Policy, ledger.Event) {
	keep, watching, shards := 24*time.Hour, plan.Watched, 2
	p := client.Policy{
		VisibilityTimeout: &r.hold, Shards: &shards, MaxRetries: &r.maxRetries,
		Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: 200 * time.Millisecond},
	}
	e := ledger.Event{Kind: ledger.Topic, Topic: name, HoldMS: r.hold.Milliseconds()}
	sent := r.rate * plan.PolicyShare / 1000 // a second
	atLeast := func(n int, x float64) int { return max(n, int(math.Ceil(x))) }
	switch name {
	case plan.Plain:
		p.Shards, p.IndexedAttributes = &r.shards, &[]string{plan.GroupAttribute}
		if r.herd == 0 {
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

// makeTopics creates all topics.
func (r *round) makeTopics(ctx context.Context) error {
	return r.Nodes[0].Ask(func(c *client.Client) error {
		for _, name := range plan.AllTopics() {
			policy, e := r.policyOf(name)
			if _, err := c.CreateTopic(ctx, name, policy); err != nil {
				return fmt.Errorf("create topic %s: %w", name, err)
			}
			r.ledger.Append(e)
		}
		for _, name := range []string{plan.Kept, plan.Laned} {
			err := r.changeTopic(ledger.Event{Op: ledger.Pause, Topic: name}, func() (client.Topic, error) {
				return c.PauseTopic(ctx, name, client.Pause{Delivery: true})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ramp is how long they rise then.
const ramp = 500 * time.Millisecond

// operate changes topics while the round is played.
func (r *round) operate(ctx context.Context) error {
	c, err := client.Dial(r.Addr(), client.Config{Timeout: 3 * time.Second, MaxElapsed: -1})
	if err != nil {
		return err
	}
	for i := range 4 {
		if err := r.sleep(ctx, time.Until(r.start)+r.span*time.Duration(i+1)/10); err != nil {
			return errors.Join(err, c.Close())
		}
		_ = r.configure(ctx, c, i) // the ledger has it
	}
	if err = r.sleep(ctx, time.Until(r.start)+plan.PausedFor(r.span)); err == nil {
		err = r.resume(ctx, c)
	}
	return errors.Join(err, c.Close())
}

// configure sets something of a topic, each time to another value.
func (r *round) configure(ctx context.Context, c *client.Client, i int) error {
	keep, most, ageing := time.Duration(25+i)*time.Hour, 100_000+i, 5+i
	policy := client.Policy{DoneRetention: &keep, MaxDead: &most, PriorityAgeing: &ageing}
	return r.changeTopic(ledger.Event{Op: ledger.Configure, Topic: plan.Kept, Settings: settings(policy)}, func() (client.Topic, error) {
		return c.ConfigureTopic(ctx, plan.Kept, policy)
	})
}

// settings are what configure sets, in words.
func settings(p client.Policy) string {
	return fmt.Sprintf("keep %v, %d dead, ageing %d", *p.DoneRetention, *p.MaxDead, *p.PriorityAgeing)
}

// resume lets deliveries go on, and asks until it is answered.
func (r *round) resume(ctx context.Context, c *client.Client) error {
	for {
		err := r.changeTopic(ledger.Event{Op: ledger.Resume, Topic: plan.Kept}, func() (client.Topic, error) {
			return c.ResumeTopicSlowly(ctx, plan.Kept, ramp)
		})
		if err == nil {
			return nil
		}
		if r.sleep(ctx, askAgain) != nil {
			return fmt.Errorf("resume %s: %w", plan.Kept, err)
		}
	}
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
			for _, name := range plan.Topics() {
				status, err := c.DescribeTopic(ctx, name)
				if err != nil {
					return 0, fmt.Errorf("count what is left: %w", err)
				}
				if status.DeliveryPaused { // a fault has undone that it goes on
					if err := r.resume(ctx, c); err != nil {
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
	left, since := int64(-1), time.Now()
	for time.Since(since) < stalled {
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
	return nil
}

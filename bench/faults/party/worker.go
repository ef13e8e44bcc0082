package party

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// errPlanned is how handlers fail when the plan says so.
var errPlanned = errors.New("this was planned")

// hands is the handler of a worker process.
type hands struct {
	c      *Config
	client *client.Client
	log    *ledger.Writer
	hung   atomic.Int64 // until when handlers do not return, in Unix nanoseconds
}

// work takes tasks until its orders end, then finishes what it holds.
func work(ctx context.Context, c *Config, log *ledger.Writer, orders io.Reader) (err error) {
	cl, err := client.Dial(c.Addr, client.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h := &hands{c: c, client: cl, log: log}
	go obey(orders, stop, h.hang) // ends with the process at the latest
	var group errgroup.Group
	for _, topic := range plan.AllTopics() {
		config := worker.Config{Topic: topic, Name: c.Name, Concurrency: c.Concurrency, Grace: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		if topic == plan.Laned {
			config.Concurrency, config.MaxInFlight = plan.LanedWorkers, plan.LanedInFlight
		}
		log.Append(ledger.Event{Kind: ledger.Works, Topic: topic, Cap: config.Concurrency})
		group.Go(func() error {
			return worker.New(tap.New(cl.Conn(), topic, log), config, worker.HandlerFunc(h.handle)).Run(ctx)
		})
	}
	return group.Wait()
}

func (h *hands) hang(d time.Duration) { h.hung.Store(time.Now().Add(d).UnixNano()) }

// handle does to a task what the plan says.
func (h *hands) handle(ctx context.Context, t worker.Task) error {
	if t.Topic == plan.Laned {
		return nil
	}
	switch {
	case t.Topic == plan.Scheduled:
		return h.run(ctx, t)
	case t.Topic == plan.Spread:
		return h.reach(ctx, t)
	case t.Step != nil:
		return h.step(ctx, t)
	case t.Topic == plan.Flowed || t.Topic == plan.Next:
		return h.link(ctx, t)
	}
	if plan.Cancelled(h.c.Seed, t.ID) {
		return h.dawdle(ctx, t)
	}
	f := h.c.Mix.FateOf(h.c.Seed, t.ID)
	if t.Topic != plan.Plain {
		if err := t.SetResult(fmt.Appendf(nil, "attempt %d of %s", t.Attempt, t.ID)); err != nil {
			return err
		}
	}
	if dice := plan.Draw(h.c.Seed, t.ID, "tokens"); t.Topic == plan.Rated && dice%tokenShare == 0 {
		takeTokens(ctx, h.client, h.log, dice/tokenShare)
	}
	if err := h.parts(ctx, t, h.takes(t.Topic, t.ID, f)); err != nil {
		return err
	}
	return h.fail(t, f)
}

// takes is how long a task of no schedule and no workflow takes.
func (h *hands) takes(topic, id string, f plan.Fate) time.Duration {
	took := time.Duration(plan.Draw(h.c.Seed, id, "work")) % max(h.c.Work, 1)
	switch {
	case f == plan.Slow:
		took = h.c.Hold * 3 / 2
	case topic == plan.Capped:
		took = time.Duration(plan.Draw(h.c.Seed, id, "work")) % (2 * plan.CappedWork)
	}
	return max(took, time.Until(time.Unix(0, h.hung.Load())))
}

// run works at a run of a schedule.
func (h *hands) run(ctx context.Context, t worker.Task) error {
	name := plan.RunName(t.Run.Schedule, t.Run.Occurrence.Sub(h.c.Start))
	if err := h.spend(ctx, max(plan.Lasts(h.c.Seed, name), time.Until(time.Unix(0, h.hung.Load())))); err != nil {
		return err
	}
	return h.fail(t, h.c.Mix.FateOf(h.c.Seed, name))
}

// reach works at the task of a recipient.
func (h *hands) reach(ctx context.Context, t worker.Task) error {
	if err := h.spend(ctx, time.Until(time.Unix(0, h.hung.Load()))); err != nil {
		return err
	}
	return h.fail(t, h.c.Mix.FateOf(h.c.Seed, fmt.Sprint(t.Run.Recipient, t.Run.Occurrence.Sub(h.c.Start))))
}

// fail ends a task as its fate is.
func (h *hands) fail(t worker.Task, f plan.Fate) error {
	switch h.ends(f, t.Attempt, t.HoldToken) {
	case nacks:
		return errPlanned
	case retries:
		return worker.RetryAfter(retryAfter, errPlanned)
	case releases:
		return worker.Release(releaseFor)
	case failsForGood:
		return worker.Permanent(errPlanned)
	case panics:
		panic(errPlanned)
	}
	return nil
}

// The ways in which attempts end, but for those that go well.
const (
	nacks        = "nack"
	retries      = "retry"
	releases     = "release"
	failsForGood = "permanent"
	panics       = "panic"
)

const (
	retryAfter = 300 * time.Millisecond
	releaseFor = 200 * time.Millisecond
)

// ends is the way in which an attempt ends, by the fate of its task; empty: it goes well.
func (h *hands) ends(f plan.Fate, attempt int, hold []byte) string {
	switch first := attempt == 1; {
	case f == plan.Nacked && first:
		return nacks
	case f == plan.Retried && first:
		return retries
	case f == plan.ReleasedOnce && first && plan.Draw(h.c.Seed, hex.EncodeToString(hold), "release")%2 == 0:
		return releases
	case f == plan.Permanent:
		return failsForGood
	case f == plan.Poisoned:
		return panics
	}
	return ""
}

// dawdle works for longer than a cancel takes. One of three tasks is done all the same.
func (h *hands) dawdle(ctx context.Context, t worker.Task) error {
	err := h.spend(ctx, plan.Stubborn)
	if err != nil && h.stubborn(t.ID) {
		return t.SetResult(fmt.Appendf(nil, "attempt %d of %s, in spite of all", t.Attempt, t.ID))
	}
	return err
}

// stubborn reports whether a task that is to be cancelled is done all the same.
func (h *hands) stubborn(id string) bool { return plan.Draw(h.c.Seed, id, "stubborn")%3 == 0 }

// spend passes time, unless the hold is lost or the worker stops first.
func (h *hands) spend(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

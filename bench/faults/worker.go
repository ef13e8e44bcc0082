package faults

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
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// errPlanned is how handlers fail when the plan says so.
var errPlanned = errors.New("this was planned")

// hands is the handler of a worker process.
type hands struct {
	c      *partyConfig
	client *client.Client
	log    *ledger.Writer
	hung   atomic.Int64 // until when handlers do not return, in Unix nanoseconds
}

// work takes tasks until its orders end, then finishes what it holds.
func work(ctx context.Context, c *partyConfig, log *ledger.Writer, orders io.Reader) (err error) {
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
	for _, topic := range allTopics() {
		config := worker.Config{Topic: topic, Name: c.Name, Concurrency: c.Concurrency, Grace: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)}
		if topic == laned {
			config.Concurrency, config.MaxInFlight = lanedWorkers, lanedInFlight
		}
		group.Go(func() error {
			return worker.New(tap.New(cl.Conn(), topic, log), config, worker.HandlerFunc(h.handle)).Run(ctx)
		})
	}
	return group.Wait()
}

func (h *hands) hang(d time.Duration) { h.hung.Store(time.Now().Add(d).UnixNano()) }

// handle does to a task what the plan says.
func (h *hands) handle(ctx context.Context, t worker.Task) error {
	if t.Topic == laned {
		return nil
	}
	took := time.Duration(draw(h.c.Seed, t.ID, "work")) % max(h.c.Work, 1)
	if t.Topic == capped {
		took = time.Duration(draw(h.c.Seed, t.ID, "work")) % (2 * cappedWork)
	}
	f := h.c.Mix.fateOf(h.c.Seed, t.ID)
	if cancelled(h.c.Seed, t.ID) {
		return h.dawdle(ctx, t)
	}
	if f == slow {
		took = h.c.Hold * 3 / 2
	}
	if t.Topic != plain {
		if err := t.SetResult(fmt.Appendf(nil, "attempt %d of %s", t.Attempt, t.ID)); err != nil {
			return err
		}
	}
	if dice := draw(h.c.Seed, t.ID, "tokens"); t.Topic == rated && dice%tokenShare == 0 {
		takeTokens(ctx, h.client, h.log, dice/tokenShare)
	}
	if err := h.spend(ctx, max(took, time.Until(time.Unix(0, h.hung.Load())))); err != nil {
		return err
	}
	switch first := t.Attempt == 1; {
	case f == nacked && first:
		return errPlanned
	case f == retried && first:
		return worker.RetryAfter(300*time.Millisecond, errPlanned)
	case f == releasedOnce && first && draw(h.c.Seed, hex.EncodeToString(t.HoldToken), "release")%2 == 0:
		return worker.Release(200 * time.Millisecond)
	case f == permanent:
		return worker.Permanent(errPlanned)
	case f == poisoned:
		panic(errPlanned)
	}
	return nil
}

// dawdle works for longer than a cancel takes. One of three tasks is done all the same.
func (h *hands) dawdle(ctx context.Context, t worker.Task) error {
	err := h.spend(ctx, stubborn)
	if err != nil && draw(h.c.Seed, t.ID, "stubborn")%3 == 0 {
		return t.SetResult(fmt.Appendf(nil, "attempt %d of %s, in spite of all", t.Attempt, t.ID))
	}
	return err
}

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

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// Tasks run at one node, are cancelled at another and waited for at a third; their
// shards are owned by any. Holds last for an hour, so that no extend helps; but a worker
// that is about to connect to every node leaves a stream, and hears of a cancellation of
// what came on it with an extend only.
func TestFleetWaitsAndCancelsAcrossNodes(t *testing.T) {
	f := startFleet(t, redistest.Start(t).URL())
	for _, direct := range []bool{false, true} {
		t.Run(fmt.Sprintf("direct=%v", direct), func(t *testing.T) { f.waitAndCancel(t, direct) })
	}
}

func (f *fleetRun) waitAndCancel(t *testing.T, direct bool) {
	ctx, topic := t.Context(), fmt.Sprintf("wait-%v", direct)
	visibility := map[bool]time.Duration{false: time.Hour, true: 3 * time.Second}[direct]
	if _, err := f.clients[0].CreateTopic(ctx, topic, client.Policy{
		Shards: new(fleetShards), VisibilityTimeout: &visibility, DoneRetention: new(time.Hour),
	}); err != nil {
		t.Fatal(err)
	}
	started, causes := make(chan string, 24), make(chan error, 24)
	w := worker.New(f.clients[1].Conn(), worker.Config{Topic: topic, Concurrency: 24, Direct: direct, Grace: time.Second},
		worker.HandlerFunc(func(ctx context.Context, task worker.Task) error {
			if string(task.Payload) == "quick" {
				return task.SetResult([]byte("result of " + task.ID))
			}
			started <- task.ID
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return context.Cause(ctx)
		}))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(running) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	waits := make(chan error, 24)
	for i := range 24 {
		task := client.Task{Topic: topic, ID: fmt.Sprint(i), Payload: []byte("quick")}
		if i%2 == 0 {
			task.Payload = []byte("long")
		}
		if _, err := f.clients[0].Enqueue(ctx, task); err != nil {
			t.Fatal(err)
		}
		go func() { waits <- f.awaitEnd(ctx, topic, task) }()
	}
	for range 12 {
		id := <-started
		out, err := f.clients[0].Cancel(ctx, topic, id, client.CancelOptions{Wait: time.Minute})
		if err != nil || out.Outcome != client.CancelConfirmed {
			t.Errorf("cancel of %s: %+v, %v", id, out, err)
		}
		if t.Failed() {
			return // nobody may tell the worker
		}
		if cause := <-causes; !errors.Is(cause, worker.ErrCanceled) {
			t.Errorf("%s ended because of %v", id, cause)
		}
	}
	for range 24 {
		if err := <-waits; err != nil {
			t.Error(err)
		}
	}
}

// awaitEnd waits at the third node for a task to end as its kind does.
func (f *fleetRun) awaitEnd(ctx context.Context, topic string, task client.Task) error {
	got, err := f.clients[2].Wait(ctx, topic, task.ID, time.Minute)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", task.ID, err)
	}
	last := client.Attempt{}
	if len(got.Attempts) > 0 {
		last = got.Attempts[len(got.Attempts)-1]
	}
	switch quick := string(task.Payload) == "quick"; {
	case quick && got.State == client.StateDone && string(got.Result) == "result of "+task.ID && last.Outcome == client.AttemptAcked:
	case !quick && got.State == client.StateDead && got.DeadReason == client.DeadReasonCancelled && last.Outcome == client.AttemptCancelled:
	default:
		return fmt.Errorf("%s %s is %s with result %q and attempts %+v", task.Payload, task.ID, got.State, got.Result, got.Attempts)
	}
	return nil
}

//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

const (
	trafficTopic  = "traffic"
	trafficShards = 6
	trafficBatch  = 4
	trafficPace   = 60 * time.Millisecond // between the batches of a producer
)

// traffic is three workers of a topic and a producer for each shard, so that one
// which is out of reach holds no other up, and their books. Each has a connection
// of its own.
type traffic struct {
	*testing.T
	*books
	admin  *client.Client
	hold   time.Duration // visibility timeout of the topic
	direct bool          // the workers connect to every node
	at     string        // the node that they connect to; empty: any

	ids     atomic.Int64
	enough  chan struct{} // closed: no more tasks
	sending sync.WaitGroup
	workers context.Context
	leave   context.CancelFunc // ends workers
	working sync.WaitGroup
}

// startTraffic begins, and returns when every shard works.
func startTraffic(t *testing.T, addrs string, options ...grpc.DialOption) *traffic {
	t.Helper()
	x := newTraffic(t)
	x.start(addrs, options...)
	return x
}

func newTraffic(t *testing.T) *traffic {
	return &traffic{T: t, hold: 3 * time.Second, books: newBooks(), enough: make(chan struct{})}
}

func (x *traffic) start(addrs string, options ...grpc.DialOption) {
	x.Helper()
	x.admin = x.dial(addrs, options)
	if _, err := x.admin.CreateTopic(x.Context(), trafficTopic, client.Policy{
		Shards: new(trafficShards), VisibilityTimeout: &x.hold, MaxRetries: new(1000),
		Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: 100 * time.Millisecond},
	}); err != nil {
		x.Fatal(err)
	}
	x.workers, x.leave = context.WithCancel(context.Background())
	for range 3 {
		x.work(cmp.Or(x.at, addrs), options...)
	}
	for n := range trafficShards {
		c := x.dial(addrs, options)
		x.sending.Go(func() { x.produce(c, n) })
	}
	x.Cleanup(x.stop)
	x.awaitService(time.Now())
}

// work runs one more worker.
func (x *traffic) work(addrs string, options ...grpc.DialOption) {
	x.Helper()
	options = append(x.taps(), options...)
	c := x.dial(addrs, options)
	w := worker.New(c.Conn(), worker.Config{
		Topic: trafficTopic, Concurrency: 16, Grace: 5 * time.Second, Direct: x.direct, DialOptions: options,
	}, worker.HandlerFunc(x.handle))
	x.working.Go(func() {
		if err := w.Run(x.workers); err != nil {
			x.Errorf("worker: %v", err)
		}
	})
}

// owners returns the owners of the shards, and whether all are where they belong.
func (x *traffic) owners() (owners []string, settled bool) {
	x.Helper()
	settled = true
	for s, err := range x.admin.Shards(context.Background(), trafficTopic) {
		if err != nil {
			x.Fatalf("shards: %v", err)
		}
		owners = append(owners, s.Owner)
		settled = settled && s.Owner == s.PlacedOn
	}
	return owners, settled
}

// awaitPlaced waits until every shard is where it belongs, and returns the owners.
func (x *traffic) awaitPlaced() (owners []string) {
	x.Helper()
	await(x.T, "shards to be where they belong", func() (settled bool) {
		owners, settled = x.owners()
		return settled
	})
	return owners
}

func (x *traffic) dial(addrs string, options []grpc.DialOption) *client.Client {
	x.Helper()
	c, err := client.Dial(addrs, client.Config{Timeout: 30 * time.Second, DialOptions: options})
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { c.Close() })
	return c
}

// nextID returns an id that nobody had and that lies in a shard.
func (x *traffic) nextID(shard int) string {
	for {
		if id := fmt.Sprint(x.ids.Add(1)); shardOf(id) == shard {
			return id
		}
	}
}

// produce enqueues batches: the first task is due at once, the others within a
// second and a half.
func (x *traffic) produce(c *client.Client, shard int) {
	pace := time.NewTicker(trafficPace)
	defer pace.Stop()
	for {
		select {
		case <-pace.C:
		case <-x.enough:
			return
		}
		tasks := make([]client.Task, trafficBatch)
		for i := range tasks {
			tasks[i] = client.Task{Topic: trafficTopic, ID: x.nextID(shard)}
			if i > 0 {
				tasks[i].Delay = rand.N(1500 * time.Millisecond)
			}
			x.asked(tasks[i].ID)
		}
		begun := time.Now()
		results, _ := c.EnqueueBatch(context.Background(), tasks)
		for i := range results {
			x.answered(tasks[i].ID, begun, results[i].Err)
		}
	}
}

var errNotYet = errors.New("not this time")

// handle takes some tasks at the second attempt only, and works a while on others.
func (x *traffic) handle(ctx context.Context, task worker.Task) error {
	var n int
	if _, err := fmt.Sscan(task.ID, &n); err != nil {
		return err
	}
	switch {
	case n%50 == 7 && task.Attempt == 1:
		return errNotYet
	case n%20 == 3:
		select {
		case <-time.After(150 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}

// awaitService waits until tasks are taken and every shard delivers since a moment.
func (x *traffic) awaitService(since time.Time) {
	x.Helper()
	await(x.T, "service", func() bool { return x.servedSince(since) })
}

// awaitMore waits until so many more tasks are stored.
func (x *traffic) awaitMore(n int) {
	x.Helper()
	n += x.countStored()
	await(x.T, "more tasks", func() bool { return x.countStored() >= n })
}

// finish ends the producers, waits until every task is settled, and closes the books.
func (x *traffic) finish() {
	x.Helper()
	close(x.enough)
	x.sending.Wait()
	var last client.Depth
	await(x.T, "every task to be settled", func() bool {
		s, err := x.admin.DescribeTopic(context.Background(), trafficTopic)
		if err != nil {
			x.Fatalf("topic: %v", err)
		}
		last = s.Depth
		return x.Failed() || last == (client.Depth{})
	})
	x.leave()
	x.working.Wait()
	x.check(x.T)
}

// stop ends what finish did not.
func (x *traffic) stop() {
	closeOnce(x.enough)
	x.leave()
	x.sending.Wait()
	x.working.Wait()
}

// severalServers skips what takes seconds.
func severalServers(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	t.Parallel()
}

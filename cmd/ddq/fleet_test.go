//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

const fleetTasks = 6_000

// fleetRun is three server processes on one Redis, a worker at each, and the books
// of what was enqueued and delivered.
type fleetRun struct {
	*testing.T
	nodes   []*process
	clients []*client.Client // of each node, and the last one of all

	mu       sync.Mutex
	attempts [fleetTasks]int // the highest delivered; guarded by mu
	seen     int             // tasks delivered; guarded by mu
	early    int             // guarded by mu
	doubles  int             // delivered again under the same attempt; guarded by mu
	repeats  int             // delivered again under a higher one; guarded by mu
	worst    time.Duration   // how late a first delivery was; guarded by mu
	all      chan struct{}   // closed when every task was delivered
}

func startFleet(t *testing.T, store string) *fleetRun {
	s := startServers(t, store, 3)
	f := &fleetRun{T: t, nodes: s.nodes, all: make(chan struct{})}
	for _, p := range f.nodes {
		c, err := client.Dial(p.addr, client.Config{Timeout: time.Minute, MaxElapsed: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		f.clients = append(f.clients, c)
	}
	every, err := client.Dial(s.addrs(), client.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { every.Close() })
	f.clients = append(f.clients, every)
	f.awaitNodes(3)
	return f
}

// awaitNodes waits until the first node sees as many active nodes.
func (f *fleetRun) awaitNodes(want int) {
	f.Helper()
	awaitActive(f.T, f.clients[0], want)
}

func (f *fleetRun) deliver(task worker.Task, now time.Time) {
	var i int
	if _, err := fmt.Sscan(task.ID, &i); err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch last := f.attempts[i]; {
	case last == 0:
		f.worst = max(f.worst, now.Sub(task.Due))
		if f.seen++; f.seen == fleetTasks {
			close(f.all)
		}
	case task.Attempt > last:
		f.repeats++
	default:
		f.doubles++
	}
	f.attempts[i] = max(f.attempts[i], task.Attempt)
	if now.Before(task.Due) {
		f.early++
	}
}

// play enqueues tasks that are due over six seconds, works on them at the nodes of
// workers, and meanwhile does what the test is about: after it comes the second half
// of the tasks.
func (f *fleetRun) play(workers []int, fault func()) {
	f.Helper()
	const topic = "fleet"
	if _, err := f.clients[0].CreateTopic(f.Context(), topic, client.Policy{
		Shards: new(12), VisibilityTimeout: new(3 * time.Second), MaxRetries: new(100),
	}); err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.Context())
	var parties sync.WaitGroup
	for _, i := range workers {
		parties.Go(func() {
			w := worker.New(f.clients[i].Conn(), worker.Config{Topic: topic, Concurrency: 16},
				worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
					f.deliver(task, time.Now())
					return nil
				}))
			if err := w.Run(ctx); err != nil && ctx.Err() == nil {
				f.Errorf("worker: %v", err)
			}
		})
	}
	due := time.Now().Add(time.Second)
	f.enqueue(topic, 0, fleetTasks/2, due)
	select {
	case <-time.After(time.Until(due.Add(2 * time.Second))): // in the middle of it
	case <-ctx.Done():
	}
	fault()
	f.enqueue(topic, fleetTasks/2, fleetTasks, due)
	select {
	case <-f.all:
	case <-time.After(time.Minute):
		status, err := f.clients[0].DescribeTopic(ctx, topic)
		f.mu.Lock()
		f.Fatalf("after a minute %d of %d tasks were delivered: %+v, %v", f.seen, fleetTasks, status.Depth, err)
	}
	stop()
	parties.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.early+f.doubles > 0 {
		f.Errorf("early %d, delivered again under the same attempt %d; want none", f.early, f.doubles)
	}
	f.Logf("%d tasks, %d delivered again under a higher attempt, none later than %v", f.seen, f.repeats, f.worst)
}

// enqueue sends some of the tasks to the first two nodes.
func (f *fleetRun) enqueue(topic string, from, to int, due time.Time) {
	f.Helper()
	const batch = 100
	for first := from; first < to; first += batch {
		tasks := make([]client.Task, batch)
		for i := range tasks {
			tasks[i] = client.Task{Topic: topic, ID: fmt.Sprint(first + i), Due: due.Add(time.Duration(first+i) * time.Millisecond)}
		}
		if _, err := f.clients[first/batch%2].EnqueueBatch(f.Context(), tasks); err != nil {
			f.Fatalf("enqueue: %v", err)
		}
	}
}

func fleetStore(t *testing.T) string {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	return redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec").URL()
}

func TestKilledNodeLosesNothing(t *testing.T) {
	f := startFleet(t, fleetStore(t))
	f.play([]int{0, 1, 3}, func() { f.nodes[2].kill() })
}

func TestStoppedNodeWastesNoAttempt(t *testing.T) {
	f := startFleet(t, fleetStore(t))
	f.play([]int{0, 3, 3}, func() {
		if code, rest := f.nodes[2].terminate(t); code != 0 {
			t.Errorf("exit code %d, stderr %s", code, rest)
		}
	})
	if f.repeats > 0 {
		t.Errorf("%d tasks were delivered again", f.repeats)
	}
}

func TestDrainedNodeGivesItsShardsAway(t *testing.T) {
	f := startFleet(t, fleetStore(t))
	f.play([]int{1}, func() {
		if err := f.clients[0].DrainNode(t.Context(), "n2"); err != nil {
			t.Error(err)
		}
		f.awaitNodes(2)
	})
	if f.repeats > 0 {
		t.Errorf("%d tasks were delivered again", f.repeats)
	}
	for shard, err := range f.clients[1].Shards(t.Context(), "fleet") {
		if err != nil {
			t.Fatal(err)
		}
		if shard.Owner == "n2" || shard.Owner != shard.PlacedOn {
			t.Errorf("shard %d is owned by %q and placed on %q", shard.N, shard.Owner, shard.PlacedOn)
		}
	}
}

func TestReshardedTopicWastesNoAttempt(t *testing.T) {
	f := startFleet(t, fleetStore(t))
	f.play([]int{0, 1, 2}, func() {
		topic, err := f.clients[2].ReshardTopic(t.Context(), "fleet", 30)
		if err != nil || topic.FormerShards != 12 || *topic.Policy.Shards != 30 {
			t.Errorf("topic %+v: %v", topic, err)
		}
	})
	if f.repeats > 0 {
		t.Errorf("%d tasks were delivered again", f.repeats)
	}
	owners := map[string]int{}
	for shard, err := range f.clients[1].Shards(t.Context(), "fleet") {
		if err != nil {
			t.Fatal(err)
		}
		if !shard.Former {
			owners[shard.Owner]++
		}
	}
	if len(owners) != 3 {
		t.Errorf("new shards by owner: %v", owners)
	}
}

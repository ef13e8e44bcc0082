//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/cespare/xxhash/v2"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

const (
	fleetTasks  = 12_000
	fleetEvery  = 500 * time.Microsecond // between due times
	fleetShards = 12
)

// fleetRun is three server processes on one Redis, a worker at each, and the books
// of what was enqueued and delivered.
type fleetRun struct {
	*testing.T
	nodes   []*process
	clients []*client.Client // of each node, and the last one of all

	mu       sync.Mutex
	attempts               // guarded by mu
	due      time.Time     // of the first task
	late     []delivered   // first deliveries; guarded by mu
	all      chan struct{} // closed when every task was delivered
}

// delivered is how a task came for the first time.
type delivered struct {
	task, attempt int
	late          time.Duration
}

func startFleet(t *testing.T, store string, settings ...string) *fleetRun {
	s := startServers(t, store, 3, settings...)
	f := &fleetRun{T: t, nodes: s.nodes, attempts: newAttempts(fleetTasks), all: make(chan struct{})}
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
	i := numberOf(&task)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.attempts.deliver(i, &task, now, true) {
		return
	}
	f.late = append(f.late, delivered{i, task.Attempt, now.Sub(f.due.Add(time.Duration(i) * fleetEvery))})
	if f.tasks == fleetTasks {
		close(f.all)
	}
}

// play enqueues tasks that are due over six seconds, works on them at the nodes of
// workers, and meanwhile does what the test is about: after it comes the second half
// of the tasks.
func (f *fleetRun) play(workers []int, fault func()) {
	f.Helper()
	const topic = "fleet"
	if _, err := f.clients[0].CreateTopic(f.Context(), topic, client.Policy{
		Shards: new(fleetShards), VisibilityTimeout: new(3 * time.Second), MaxRetries: new(100),
	}); err != nil {
		f.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.Context())
	var parties sync.WaitGroup
	for _, i := range workers {
		parties.Go(func() {
			w := worker.New(f.clients[i].Conn(), worker.Config{Topic: topic, Concurrency: 64},
				worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
					f.deliver(task, time.Now())
					return nil
				}))
			if err := w.Run(ctx); err != nil && ctx.Err() == nil {
				f.Errorf("worker: %v", err)
			}
		})
	}
	f.due = time.Now().Add(time.Second)
	f.enqueue(topic, 0, fleetTasks/2)
	select {
	case <-time.After(time.Until(f.due.Add(2 * time.Second))): // in the middle of it
	case <-ctx.Done():
	}
	fault()
	f.enqueue(topic, fleetTasks/2, fleetTasks)
	select {
	case <-f.all:
	case <-time.After(time.Minute):
		status, err := f.clients[0].DescribeTopic(ctx, topic)
		f.mu.Lock()
		f.Fatalf("after a minute %d of %d tasks were delivered: %+v, %v", f.tasks, fleetTasks, status.Depth, err)
	}
	stop()
	parties.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.early+len(f.doubles) > 0 {
		f.Errorf("early %d, delivered again under the same attempt %v; want none", f.early, f.doubles)
	}
	f.Logf("%d tasks, %d delivered again under a higher attempt: %s", f.tasks, f.repeats,
		f.lateness(func(delivered) bool { return true }))
}

// lateness tells how late the first deliveries of some tasks were. mu is held, or
// nobody works any more.
func (f *fleetRun) lateness(of func(delivered) bool) string {
	h := hdrhistogram.New(0, time.Minute.Microseconds(), 3)
	for _, d := range f.late {
		if of(d) {
			_ = h.RecordValue(d.late.Microseconds()) // what is over a minute ends the test
		}
	}
	at := func(us int64) time.Duration {
		return (time.Duration(us) * time.Microsecond).Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("lateness of %d p50 %v, p99 %v, worst %v", h.TotalCount(), at(h.ValueAtQuantile(50)), at(h.ValueAtQuantile(99)), at(h.Max()))
}

// owners are the owners of the shards now.
func (f *fleetRun) owners() (owners []string) {
	f.Helper()
	for shard, err := range f.clients[0].Shards(f.Context(), "fleet") {
		if err != nil {
			f.Fatal(err)
		}
		owners = append(owners, shard.Owner)
	}
	return owners
}

// enqueue sends some of the tasks to the first two nodes.
func (f *fleetRun) enqueue(topic string, from, to int) {
	f.Helper()
	const batch = 100
	for first := from; first < to; first += batch {
		tasks := make([]client.Task, batch)
		for i := range tasks {
			tasks[i] = client.Task{Topic: topic, ID: fmt.Sprint(first + i), Due: f.due.Add(time.Duration(first+i) * fleetEvery)}
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

// With the gossip of a fleet on several machines.
func TestKilledNodeLosesNothing(t *testing.T) {
	f := startFleet(t, fleetStore(t), "--gossip-profile", "lan")
	var before []string
	var killed time.Time
	f.play([]int{0, 1, 3}, func() {
		before, killed = f.owners(), time.Now()
		f.nodes[2].kill()
	})
	after := f.owners()
	moved := func(d delivered) bool {
		n := xxhash.Sum64String(fmt.Sprint(d.task)) % fleetShards
		return before[n] != after[n]
	}
	since := func(d delivered) bool { return f.due.Add(time.Duration(d.task) * fleetEvery).After(killed) }
	t.Logf("since the kill, shards whose owner lives: %s", f.lateness(func(d delivered) bool { return since(d) && !moved(d) }))
	t.Logf("since the kill, shards of the dead: %s", f.lateness(func(d delivered) bool { return since(d) && moved(d) && d.attempt == 1 }))
	t.Logf("held by the dead and never delivered: %s", f.lateness(func(d delivered) bool { return d.attempt > 1 }))
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

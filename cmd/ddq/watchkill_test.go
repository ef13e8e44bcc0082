//go:build unix

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// What a watcher was told while its server was killed under it, a worker died, and
// another one went on: the whole life of every task, once.
func TestWatchOverAKilledServer(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Run("embedded", func(t *testing.T) {
		watchKilled(t, "--data", filepath.Join(t.TempDir(), "data"))
	})
	t.Run("redis", func(t *testing.T) {
		watchKilled(t, "--store", redistest.Start(t).URL())
	})
}

const watchedTasks = 400

func watchKilled(t *testing.T, args ...string) {
	args = append(args, "--grpc-addr", claimAddr(t))
	p := startProcess(t, args...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c, err := client.Dial(p.addr, client.Config{Timeout: time.Minute, MaxElapsed: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CreateTopic(ctx, "mail", client.Policy{
		VisibilityTimeout: new(time.Second), MaxRetries: new(1000), WatchRetention: new(time.Hour),
		Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: 10 * time.Millisecond},
	}); err != nil {
		t.Fatal(err)
	}
	w := &watchBook{T: t, half: make(chan struct{}), all: make(chan struct{})}
	var parties sync.WaitGroup
	parties.Go(func() { w.follow(ctx, c) })
	w.enqueue(ctx, c, 0, watchedTasks/2)
	for held := 0; held == 0; { // a worker that dies with what it has
		r, err := ddqv1.NewDelayQueueServiceClient(c.Conn()).Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "mail", MaxTasks: 20, WaitMs: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		held = len(r.Deliveries)
	}
	parties.Go(func() {
		handler := worker.HandlerFunc(func(context.Context, worker.Task) error { return nil })
		if err := worker.New(c.Conn(), worker.Config{Topic: "mail", Concurrency: 8}, handler).Run(ctx); err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	awaitTold(t, "half of the tasks", w.half)
	p.kill()
	p = startProcess(t, args...)
	w.enqueue(ctx, c, watchedTasks/2, watchedTasks)
	awaitTold(t, "all tasks", w.all)
	w.judge()
	w.again(ctx, c)
	stop()
	parties.Wait()
	if code, rest := p.terminate(t); code != 0 {
		t.Errorf("the second server: exit code %d, stderr %s", code, rest)
	}
}

// awaitTold waits for as long as a slow machine may take.
func awaitTold(t *testing.T, what string, done chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("no ", what)
	}
}

// watchBook is what a watcher was told.
type watchBook struct {
	*testing.T
	half, all chan struct{} // closed when so many tasks are done

	mu      sync.Mutex
	changes []client.TaskChange // guarded by mu
}

func (w *watchBook) enqueue(ctx context.Context, c *client.Client, from, to int) {
	w.Helper()
	tasks := make([]client.Task, to-from)
	for i := range tasks {
		tasks[i] = client.Task{Topic: "mail", ID: fmt.Sprint(from + i)}
	}
	if _, err := c.EnqueueBatch(ctx, tasks); err != nil {
		w.Fatal(err)
	}
}

// follow watches from the oldest change on until ctx ends.
func (w *watchBook) follow(ctx context.Context, c *client.Client) {
	done := 0
	for change, err := range c.Watch(ctx, client.WatchOptions{Topic: "mail", FromOldest: true}) {
		if err != nil {
			if ctx.Err() == nil {
				w.Errorf("watch: %v", err)
			}
			return
		}
		w.mu.Lock()
		w.changes = append(w.changes, change)
		w.mu.Unlock()
		if change.Kind == client.ChangeDone {
			switch done++; done {
			case watchedTasks / 4:
				close(w.half)
			case watchedTasks:
				close(w.all)
			}
		}
	}
}

// judge checks that nothing is missing and nothing told twice.
func (w *watchBook) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	positions := make(map[int]int64)
	lives := make(map[string][]client.ChangeKind)
	retries := 0
	for _, c := range w.changes {
		if positions[c.Shard]++; c.Position != positions[c.Shard] {
			w.Fatalf("shard %d: position %d comes where %d was expected", c.Shard, c.Position, positions[c.Shard])
		}
		lives[c.ID] = append(lives[c.ID], c.Kind)
		if c.Kind == client.ChangeRetrying {
			retries++
		}
	}
	if len(lives) != watchedTasks || retries == 0 {
		w.Errorf("%d tasks and %d retries", len(lives), retries)
	}
	for id, life := range lives {
		legal := len(life) >= 3 && life[0] == client.ChangeEnqueued && life[len(life)-1] == client.ChangeDone
		for i := 1; i+1 < len(life); i++ {
			held := i%2 == 1 // then retrying or released, and so on
			legal = legal && (life[i] == client.ChangeHeld) == held && (held || life[i] == client.ChangeRetrying || life[i] == client.ChangeReleased)
		}
		if !legal || len(life)%2 == 0 {
			w.Errorf("the life of %s: %v", id, life)
		}
	}
}

// again watches from the cursor of a change in the middle.
func (w *watchBook) again(ctx context.Context, c *client.Client) {
	w.mu.Lock()
	all := slices.Clone(w.changes)
	w.mu.Unlock()
	from := len(all) / 2
	last := make(map[int]int64)
	for _, change := range all[:from+1] {
		last[change.Shard] = change.Position
	}
	n := 0
	for change, err := range c.Watch(ctx, client.WatchOptions{Topic: "mail", Cursor: all[from].Cursor()}) {
		if err != nil {
			w.Fatal(err)
		}
		if last[change.Shard]++; change.Position != last[change.Shard] {
			w.Fatalf("shard %d: position %d comes where %d was expected", change.Shard, change.Position, last[change.Shard])
		}
		if n++; n == len(all)-1-from {
			return
		}
	}
}

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
)

// Three processes on one Redis, of which one is killed: a cap and a rate hold for all.
func TestLimitsHoldForProcesses(t *testing.T) {
	const most, tasks, perSecond = 3, 300, 100
	f := startFleet(t, fleetStore(t))
	if _, err := f.clients[0].CreateTopic(t.Context(), "fleet", client.Policy{
		Shards: new(fleetShards), VisibilityTimeout: new(3 * time.Second), MaxRetries: new(100),
		Concurrency: new(most), Rate: &client.Rate{Count: perSecond, Period: time.Second, Burst: 5},
	}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	running, highest, done := 0, 0, map[string]bool{}
	all := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var parties sync.WaitGroup
	for _, i := range []int{0, 1, 3} {
		parties.Go(func() {
			w := worker.New(f.clients[i].Conn(), worker.Config{Topic: "fleet", Concurrency: 16},
				worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
					mu.Lock()
					running++
					highest = max(highest, running)
					mu.Unlock()
					time.Sleep(5 * time.Millisecond) // the work
					mu.Lock()
					defer mu.Unlock()
					running--
					if done[task.ID] = true; len(done) == tasks {
						close(all)
					}
					return nil
				}))
			if err := w.Run(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("worker: %v", err)
			}
		})
	}
	began := time.Now()
	batch := make([]client.Task, tasks)
	for i := range batch {
		batch[i] = client.Task{Topic: "fleet", ID: fmt.Sprint(i)}
	}
	if _, err := f.clients[0].EnqueueBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	t.Log("enqueued after", time.Since(began))
	f.nodes[2].kill()
	t.Log("killed after", time.Since(began))
	select {
	case <-all:
	case <-time.After(2 * time.Minute):
		mu.Lock()
		status, _ := f.clients[0].DescribeTopic(t.Context(), "fleet")
		t.Logf("%+v", status.Depth)
		for task, err := range f.clients[0].List(t.Context(), "fleet", client.StateReady) {
			t.Log(task.ID, task.WaitingFor, time.Until(task.NextToken), err)
			break
		}
		t.Fatalf("after two minutes %d of %d tasks are done", len(done), tasks)
	}
	took := time.Since(began)
	t.Log("done after", time.Since(began))
	stop()
	parties.Wait()
	t.Log("stopped after", time.Since(began))
	if highest > most {
		t.Errorf("%d tasks at a time, want %d at most", highest, most)
	}
	if least := (tasks - 5) * time.Second / perSecond * 98 / 100; took < least-500*time.Millisecond {
		t.Errorf("%d tasks took %v, want %v at least", tasks, took, least)
	}
	t.Logf("%d tasks in %v, %d at a time", tasks, took.Round(time.Millisecond), highest)
}

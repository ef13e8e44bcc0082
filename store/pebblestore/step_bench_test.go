package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/store"
)

// BenchmarkStep takes 128 workflows from one step to the next: their owner commits, the tasks are held,
// and they are acked. The ids of the tasks do not follow the time. Each call has a figure of its own.
func BenchmarkStep(b *testing.B) {
	x := newBencher(b, openStore(b, Config{Dir: b.TempDir()}), cellShard)
	const batch = 128
	var committed, held, acked time.Duration
	timed := func(used *time.Duration, call func() error) {
		started := cpuTime(b)
		if err := call(); err != nil {
			b.Fatal(err)
		}
		*used += cpuTime(b) - started
	}
	for round := 0; round*batch < b.N; round++ {
		tasks := x.tasks(batch)
		commits := stepsOf(round, tasks)
		holds := holdsFor(tasks)
		timed(&committed, func() error {
			_, results, err := x.s.Commit(context.Background(), cellShard, &x.fence, commits)
			if err == nil && results[batch-1].Status != store.OK {
				err = fmt.Errorf("commit answered %d", results[batch-1].Status)
			}
			return err
		})
		timed(&held, func() error { return second(x.s.Hold(context.Background(), cellShard, x.fence, holds)) })
		timed(&acked, func() error { return x.ack(holds) })
	}
	each := func(used time.Duration) float64 { return float64(used.Nanoseconds()) / 1e3 / float64(b.N) }
	b.ReportMetric(each(committed), "cpu-us/commit")
	b.ReportMetric(each(held), "cpu-us/hold")
	b.ReportMetric(each(acked), "cpu-us/ack")
}

// stepsOf are commits that take a workflow each to the next step.
func stepsOf(round int, tasks []*store.Task) []store.Commit {
	commits := make([]store.Commit, len(tasks))
	for i, task := range tasks {
		var id uuid.UUID
		for k := range id {
			id[k] = byte(rand.Uint32())
		}
		id[6], id[7] = 0x8d, 0xdc
		task.ID, task.Tells = id.String(), store.CellID(fmt.Sprintf("wflow-%d", i))
		header := store.Cell{ID: task.Tells, List: "open", Listed: 1, Body: task.Payload}
		commits[i] = store.Commit{Puts: []store.Put{{Cell: header, If: int64(round)}}, Adds: []*store.Task{task}, Take: int64(round * len(tasks))}
	}
	return commits
}

package pebblestore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// BenchmarkCommit makes commits of a put and a task that is added, and takes what the tasks
// before left: what the owner of schedules does for their runs. Only the commits are in its
// CPU.
func BenchmarkCommit(b *testing.B) {
	for _, batch := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("batch=", batch), func(b *testing.B) { benchmarkCommit(b, batch) })
	}
}

func benchmarkCommit(b *testing.B, batch int) {
	x := newBencher(b, openStore(b, Config{Dir: b.TempDir()}), cellShard)
	var used time.Duration
	for round := 0; round*batch < b.N; round++ {
		tasks := x.tasks(batch)
		commits := runsOf(round, tasks)
		started := cpuTime(b)
		_, results, err := x.s.Commit(context.Background(), cellShard, &x.fence, commits)
		used += cpuTime(b) - started
		if err != nil || results[batch-1].Status != store.OK {
			b.Fatal(results, err)
		}
		holds := holdsFor(tasks)
		if _, _, err := x.s.Hold(context.Background(), cellShard, x.fence, holds); err != nil {
			b.Fatal(err)
		}
		if err := x.ack(holds); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-us/commit")
}

// runsOf are commits that make a run of a schedule for each task.
func runsOf(round int, tasks []*store.Task) []store.Commit {
	commits := make([]store.Commit, len(tasks))
	for i, task := range tasks {
		task.Tells = store.CellID(fmt.Sprintf("sschedule-%d", i))
		cell := store.Cell{ID: task.Tells, Wake: store.Millis(1000*round + i + 1), Body: task.Payload}
		commits[i] = store.Commit{Puts: []store.Put{{Cell: cell, If: int64(round)}}, Adds: []*store.Task{task}, Take: int64(round * len(tasks))}
	}
	return commits
}

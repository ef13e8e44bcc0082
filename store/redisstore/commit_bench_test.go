package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// BenchmarkCommit compares what a commit of one put, one add and what the task tells takes
// of Redis with a plain add of the same batch, in turns, with a hundred thousand cells and
// as many tasks in the shard. The ends of the tasks are told and taken besides.
func BenchmarkCommit(b *testing.B) {
	server := redistest.Start(b)
	s := claim(b, open(b, server.URL()))
	s.fill(b, 100_000)
	s.shard.Life = 7 // as nodes add
	fillCells(b, s, 100_000)
	ctx := context.Background()
	stamp, _, err := s.Wakes(ctx, s.shard, store.WakeQuery{Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			spent := map[string]float64{}
			run := func(what string, do func()) {
				scripts, cpu := spentBy(b, server)
				do()
				scriptsThen, cpuThen := spentBy(b, server)
				spent[what] += scriptsThen - scripts
				spent[what+"-cpu"] += cpuThen - cpu
			}
			versions := int64(1)
			for b.Loop() {
				plain, made := newTasks(n, 1), newTasks(n, 1)
				run("add", func() {
					if _, _, err := s.Add(ctx, s.shard, plain); err != nil {
						b.Fatal(err)
					}
				})
				commits := make([]store.Commit, n)
				for i, task := range made {
					cell := benchCell(i)
					task.Tells = cell.ID
					cell.Wake += store.Millis(versions)
					commits[i] = store.Commit{Puts: []store.Put{{Cell: cell, If: versions}}, Adds: []*store.Task{task}, From: stamp.Server}
				}
				run("commit", func() {
					_, results, err := s.Commit(ctx, s.shard, &s.fence, commits)
					if err != nil || results[n-1].Status != store.OK {
						b.Fatal(err, results[n-1])
					}
				})
				versions++
				for _, batch := range []struct {
					what  string
					tasks []*store.Task
				}{{"plain", plain}, {"telling", made}} {
					holds, acks := holdsFor(batch.tasks)
					run(batch.what+"-hold", func() {
						if _, results, err := s.Hold(ctx, s.shard, s.fence, holds); err != nil || results[n-1].Status != store.OK {
							b.Fatal(err)
						}
					})
					run(batch.what+"-ack", func() {
						if _, results, err := s.Ack(ctx, s.shard, acks, 0); err != nil || results[n-1] != store.OK {
							b.Fatal(err)
						}
					})
				}
				page, err := s.Parcels(ctx, s.shard, store.InBox, 0, n)
				if err != nil || len(page) != n {
					b.Fatal(err, len(page))
				}
				if _, _, err := s.Commit(ctx, s.shard, nil, []store.Commit{{Take: page[n-1].Number}}); err != nil {
					b.Fatal(err)
				}
			}
			for what, us := range spent {
				b.ReportMetric(us/float64(b.N*n), what+"-us")
			}
			b.StopTimer()
			var reset []store.Commit
			for i := range n {
				reset = append(reset, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: benchCell(i).ID}, If: store.AnyVersion}}}, store.Commit{Puts: []store.Put{{Cell: benchCell(i)}}})
			}
			if _, _, err := s.Commit(ctx, s.shard, nil, reset); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// benchCell is a cell of the size of an idle schedule.
func benchCell(i int) store.Cell {
	return store.Cell{ID: store.CellID(fmt.Sprintf("sschedule-%06d", i)), Wake: store.Millis(time.Now().Add(time.Hour).UnixMilli()), Body: make([]byte, payloadSize)}
}

func fillCells(b testing.TB, s shardOf, n int) {
	b.Helper()
	for from := 0; from < n; from += 1000 {
		commits := make([]store.Commit, 1000)
		for i := range commits {
			commits[i].Puts = []store.Put{{Cell: benchCell(from + i)}}
		}
		if _, _, err := s.Commit(context.Background(), s.shard, nil, commits); err != nil {
			b.Fatal(err)
		}
	}
}

// spentBy is how many microseconds the server has spent in scripts, and how many of processor
// in all, with what it takes to ask.
func spentBy(b *testing.B, server *redistest.Server) (scripts, cpu float64) {
	b.Helper()
	stats := server.Do(b, "INFO", "commandstats", "cpu").(string)
	number := func(behind ...string) (n float64) {
		rest := stats
		for _, text := range behind {
			_, rest, _ = strings.Cut(rest, text)
		}
		n, err := strconv.ParseFloat(rest[:strings.IndexAny(rest, ",\r")], 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	return number("cmdstat_evalsha:", "usec="), 1e6 * (number("used_cpu_user:") + number("used_cpu_sys:"))
}

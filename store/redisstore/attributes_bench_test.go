package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// indexedSets are what the tasks of a benchmark are indexed by.
var indexedSets = []store.IndexSet{"", store.NewIndexSet("tenant"), store.NewIndexSet("tenant", "path")}

// attribute gives tasks two attributes: one of a thousand has the tenant rare, one of ten
// the tenant common, and the paths of a hundred begin alike.
func attribute(tasks []*store.Task, set store.IndexSet, first int) {
	for i, t := range tasks {
		n, tenant := first+i, "others-"+t.ID[:4]
		switch {
		case n%1000 == 0:
			tenant = "rare"
		case n%10 == 1:
			tenant = "common"
		}
		t.Attributes = []store.Attribute{{Key: "tenant", Value: tenant}, {Key: "path", Value: fmt.Sprintf("/invoices/%05d/%02d", n/100, n%100)}}
		t.Indexed = set
	}
}

// fillIndexed adds n tasks that are not due.
func (s shardOf) fillIndexed(t testing.TB, n int, set store.IndexSet) {
	t.Helper()
	later := store.Millis(time.Now().Add(time.Hour).UnixMilli())
	for first := 0; first < n; first += 1000 {
		batch := newTasks(1000, later+store.Millis(first*7919%n))
		attribute(batch, set, first)
		if _, _, err := s.Add(context.Background(), s.shard, batch); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkIndexed is BenchmarkCycle for tasks with two attributes, of which none, one or both
// are indexed. It also reports what a pending one takes in memory.
func BenchmarkIndexed(b *testing.B) {
	const batch, others = 128, 100_000
	ctx := context.Background()
	for _, set := range indexedSets {
		b.Run(fmt.Sprintf("indexed=%d", len(set.Names())), func(b *testing.B) {
			server := redistest.Start(b)
			s := claim(b, open(b, server.URL()))
			before := infoNumber(b, server, "used_memory")
			s.fillIndexed(b, others, set)
			bytes := (infoNumber(b, server, "used_memory") - before) / others
			measure(b, server, batch, func() {
				tasks := newTasks(batch, 1)
				attribute(tasks, set, 0)
				holds, acks := holdsFor(tasks)
				if _, _, err := s.Add(ctx, s.shard, tasks); err != nil {
					b.Fatal(err)
				}
				if _, results, err := s.Hold(ctx, s.shard, s.fence, holds); err != nil || results[batch-1].Status != store.OK {
					b.Fatal(err, results)
				}
				if _, results, err := s.Ack(ctx, s.shard, acks, 0); err != nil || results[batch-1] != store.OK {
					b.Fatal(err, results)
				}
			})
			b.ReportMetric(bytes, "bytes/task")
		})
	}
}

// BenchmarkLookup reads pages of 1,000 of a million pending tasks by an indexed attribute, as a
// filter does. It reports the median and the worst of the pages in milliseconds.
func BenchmarkLookup(b *testing.B) {
	if testing.Short() {
		b.Skip("adds a million tasks")
	}
	server := redistest.Start(b, "--appendonly", "no")
	s := claim(b, openVolatile(b, server))
	s.fillIndexed(b, 1_000_000, indexedSets[2])
	for name, q := range map[string]store.IndexQuery{
		"rare": {Name: "tenant", Value: "rare"}, "common": {Name: "tenant", Value: "common"}, "prefix": {Name: "path", Value: "/invoices/012", Prefix: true},
	} {
		b.Run(name, func(b *testing.B) {
			var took []float64
			for b.Loop() {
				started := time.Now()
				s.page(b, q)
				took = append(took, time.Since(started).Seconds()*1e3)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "median-ms")
			b.ReportMetric(took[len(took)-1], "worst-ms")
		})
	}
}

// page reads 1,000 tasks, 250 at a time.
func (s shardOf) page(b *testing.B, q store.IndexQuery) {
	b.Helper()
	q.Limit = 1000
	entries, err := s.Lookup(context.Background(), s.shard, q)
	if err != nil || len(entries) != q.Limit {
		b.Fatalf("%d entries: %v", len(entries), err)
	}
	for part := range slices.Chunk(entries, 250) {
		var ids []string
		for _, e := range part {
			ids = append(ids, e.ID)
		}
		if _, found, err := s.Get(context.Background(), s.shard, ids); err != nil || found[0].State != store.StateScheduled {
			b.Fatal(err, found[0].State)
		}
	}
}

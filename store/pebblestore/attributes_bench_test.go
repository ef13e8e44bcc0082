package pebblestore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// indexedSets are what the tasks of a benchmark are indexed by.
var indexedSets = []store.IndexSet{"", store.NewIndexSet("tenant"), store.NewIndexSet("tenant", "path")}

// BenchmarkIndexed is BenchmarkLife for tasks with two attributes, of which none, one or
// both are indexed.
func BenchmarkIndexed(b *testing.B) {
	for _, set := range indexedSets {
		b.Run(fmt.Sprintf("indexed=%d", len(set.Names())), func(b *testing.B) {
			benchmarkLife(b, openStore(b, Config{Dir: b.TempDir()}), func(x *bencher, tasks []*store.Task) error {
				attribute(tasks, set, 0)
				return x.addHoldAck(tasks)
			}, 128, 4)
		})
	}
}

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

// BenchmarkLookup reads pages of 1,000 of a million pending tasks by an indexed attribute, and
// by due time, as a filter does. It reports the median and the worst of the pages in
// milliseconds, and the bytes on disk for each task.
func BenchmarkLookup(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a minute")
	}
	for _, set := range indexedSets {
		b.Run(fmt.Sprintf("indexed=%d", len(set.Names())), func(b *testing.B) {
			s := openStore(b, Config{Dir: b.TempDir()})
			x := newBencher(b, s, store.Shard{Topic: "bench", N: 0})
			for n := 0; n < million; n += 1000 {
				tasks := x.tasks(1000)
				attribute(tasks, set, n)
				for i, t := range tasks {
					t.Due += store.Millis(3_600_000 + (n+i)*7919%million)
				}
				x.add(b, tasks)
			}
			b.Run("due", func(b *testing.B) { x.pages(b, x.windowIDs) })
			if set.Has("tenant") {
				b.Run("rare", func(b *testing.B) { x.pages(b, x.lookupIDs(store.IndexQuery{Name: "tenant", Value: "rare"})) })
				b.Run("common", func(b *testing.B) { x.pages(b, x.lookupIDs(store.IndexQuery{Name: "tenant", Value: "common"})) })
			}
			if set.Has("path") {
				b.Run("prefix", func(b *testing.B) {
					x.pages(b, x.lookupIDs(store.IndexQuery{Name: "path", Value: "/invoices/012", Prefix: true}))
				})
			}
			b.Run("disk", func(b *testing.B) {
				for b.Loop() {
					if err := s.dir.DB().Compact(context.Background(), []byte{0}, []byte{0xff}, true); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(s.dir.DB().Metrics().Total().TablesSize)/million, "bytes/task")
			})
		})
	}
}

// pages reads pages of 1,000 tasks, whose ids come 250 at a time.
func (x *bencher) pages(b *testing.B, ids func(n int) ([]string, error)) {
	b.Helper()
	var took []float64
	for b.Loop() {
		started := time.Now()
		for n := range 4 {
			page, err := ids(n)
			if err != nil || len(page) != 250 {
				b.Fatalf("%d tasks: %v", len(page), err)
			}
			if _, _, err := x.s.Get(context.Background(), x.shard, page); err != nil {
				b.Fatal(err)
			}
		}
		took = append(took, time.Since(started).Seconds()*1e3)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "median-ms")
	b.ReportMetric(took[len(took)-1], "worst-ms")
}

func (x *bencher) lookupIDs(q store.IndexQuery) func(int) ([]string, error) {
	q.Limit = 250
	return func(n int) (ids []string, err error) {
		if n == 0 {
			q.After = nil
		}
		page, err := x.s.Lookup(context.Background(), x.shard, q)
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		if len(page) > 0 {
			q.After = &page[len(page)-1]
		}
		return ids, err
	}
}

func (x *bencher) windowIDs(n int) (ids []string, err error) {
	from := store.Entry{Due: store.Millis(time.Now().UnixMilli() + 3_600_000 + 100_000 + int64(n)*250)}
	_, page, err := x.s.Window(context.Background(), x.shard, store.WindowQuery{After: from, To: from.Due + 1_000_000, Limit: 250})
	for _, e := range page {
		ids = append(ids, e.ID)
	}
	return ids, err
}

package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// BenchmarkMillion fills a store with a million tasks of 200 random bytes that are
// due in an hour, and 1,000 that are due now, and opens a copy of its directory as
// a kill would leave it. It reports how long it takes until the first due task is
// held, and the bytes on disk for each task once tables are compacted.
func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a minute")
	}
	shard := store.Shard{Topic: "bench", N: 0}
	s := openStore(b, Config{Dir: b.TempDir()})
	x := newBencher(b, s, shard)
	started := time.Now()
	x.fill(b)
	b.ReportMetric(million/time.Since(started).Seconds(), "adds/s")
	x.add(b, x.tasks(1000))

	var toHold, toOpen time.Duration
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "copy")
		if err := s.dir.DB().Checkpoint(dir); err != nil {
			b.Fatal(err)
		}
		open, hold := firstHold(b, dir, shard)
		toOpen += open
		toHold += hold
	}
	b.ReportMetric(toOpen.Seconds()*1e3/float64(b.N), "open-ms")
	b.ReportMetric(toHold.Seconds()*1e3/float64(b.N), "first-hold-ms")

	if err := s.dir.DB().Compact(context.Background(), []byte{0}, []byte{0xff}, true); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(s.dir.DB().Metrics().Total().TablesSize)/million, "bytes/task")
}

const million = 1_000_000

// fill adds a million tasks that are due in an hour or two, in no order.
func (x *bencher) fill(b *testing.B) {
	b.Helper()
	const batch = 1000
	for range million / batch {
		later := x.tasks(batch)
		for _, t := range later {
			t.Due += store.Millis(3_600_000 + rand.IntN(3_600_000))
		}
		x.add(b, later)
	}
}

// BenchmarkLifeOnBacklog is BenchmarkLife in front of a million pending tasks.
func BenchmarkLifeOnBacklog(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a minute")
	}
	s := openStore(b, Config{Dir: b.TempDir()})
	newBencher(b, s, store.Shard{Topic: "bench", N: 0}).fill(b)
	if err := s.dir.DB().Compact(context.Background(), []byte{0}, []byte{0xff}, true); err != nil {
		b.Fatal(err)
	}
	b.Run("add-hold-ack", func(b *testing.B) { benchmarkLife(b, s, (*bencher).addHoldAck, 128, 4) })
	b.Run("holdnew-ack", func(b *testing.B) { benchmarkLife(b, s, (*bencher).holdNewAck, 128, 4) })
}

func (x *bencher) add(b *testing.B, tasks []*store.Task) {
	b.Helper()
	if _, _, err := x.s.Add(context.Background(), x.shard, tasks); err != nil {
		b.Fatal(err)
	}
}

// firstHold opens a store and holds the first due task.
func firstHold(b *testing.B, dir string, shard store.Shard) (open, hold time.Duration) {
	b.Helper()
	started := time.Now()
	s := openStore(b, Config{Dir: dir})
	open = time.Since(started)
	fence := claim(b, s, shard)
	ctx := context.Background()
	_, due, err := s.Window(ctx, shard, store.WindowQuery{To: store.Millis(time.Now().UnixMilli()), Limit: 128})
	if err != nil || len(due) == 0 {
		b.Fatalf("window has %d tasks: %v", len(due), err)
	}
	_, held, err := s.Hold(ctx, shard, fence, []store.Hold{{ID: due[0].ID, Token: store.NewToken(), Visibility: time.Minute}})
	if err != nil || held[0].Status != store.OK {
		b.Fatalf("hold answered %v: %v", held, err)
	}
	return open, time.Since(started)
}

// BenchmarkHistogram counts a million tasks that are due in an hour or two, in ten buckets
// up to a bound: before all of them, behind a tenth, and behind all.
func BenchmarkHistogram(b *testing.B) {
	if testing.Short() {
		b.Skip("takes a minute")
	}
	s := openStore(b, Config{Dir: b.TempDir()})
	x := newBencher(b, s, store.Shard{Topic: "bench"})
	started := time.Now()
	x.fill(b)
	for name, width := range map[string]time.Duration{"none": time.Minute, "tenth": 396 * time.Second, "all": time.Hour} {
		b.Run(name, func(b *testing.B) {
			bounds := make([]store.Millis, 11)
			for i := range bounds {
				bounds[i] = store.Millis(started.UnixMilli()).Add(time.Duration(i) * width)
			}
			for b.Loop() {
				if _, _, err := s.Histogram(context.Background(), x.shard, bounds); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAddLater adds tasks of 200 random bytes that are due within a span, in an hour or
// more, while somebody asks how many are due when, or nobody does. It reports the CPU of the
// process for each, and what the log got.
func BenchmarkAddLater(b *testing.B) {
	for _, span := range []time.Duration{time.Second, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		for _, batch := range []int{1, 16, 512} {
			for _, asked := range []bool{false, true} {
				b.Run(fmt.Sprintf("span=%v/batch=%d/asked=%v", span, batch, asked), func(b *testing.B) { benchmarkAddLater(b, span, batch, asked) })
			}
		}
	}
}

func benchmarkAddLater(b *testing.B, span time.Duration, batch int, asked bool) {
	s := openStore(b, Config{Dir: b.TempDir()})
	x := newBencher(b, s, store.Shard{Topic: "bench", N: 0})
	if asked {
		if _, _, err := s.Histogram(context.Background(), x.shard, []store.Millis{1}); err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // until nothing is counted
	}
	var used, took time.Duration
	for left := b.N; left > 0; left -= batch {
		later := x.tasks(batch)
		for _, t := range later {
			t.Due += store.Millis(3_600_000 + rand.Int64N(span.Milliseconds()))
		}
		began, started := time.Now(), cpuTime(b)
		x.add(b, later)
		used, took = used+cpuTime(b)-started, took+time.Since(began)
	}
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-us/task")
	b.ReportMetric(float64(b.N)/took.Seconds(), "tasks/s")
	b.ReportMetric(float64(s.dir.DB().Metrics().WAL.BytesIn)/float64(b.N), "log-bytes/task")
}

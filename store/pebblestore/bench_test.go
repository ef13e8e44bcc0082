package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/store"
)

// BenchmarkLife takes tasks of 200 random bytes through their life, one goroutine a
// shard. It reports tasks a second, and the CPU of the process for each, the
// benchmark's own part included.
func BenchmarkLife(b *testing.B) {
	lives := map[string]func(*bencher, []*store.Task) error{"add-hold-ack": (*bencher).addHoldAck, "holdnew-ack": (*bencher).holdNewAck}
	for name, live := range lives {
		for _, batch := range []int{1, 16, 128, 512} {
			for _, shards := range []int{1, 4} {
				b.Run(fmt.Sprintf("%s/batch=%d/shards=%d", name, batch, shards), func(b *testing.B) {
					benchmarkLife(b, openStore(b, Config{Dir: b.TempDir()}), live, batch, shards)
				})
			}
		}
	}
}

func benchmarkLife(b *testing.B, s *Store, live func(*bencher, []*store.Task) error, batch, shards int) {
	benchers := make([]*bencher, shards)
	for i := range benchers {
		benchers[i] = newBencher(b, s, store.Shard{Topic: "bench", N: i})
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	started := cpuTime(b)
	var group sync.WaitGroup
	for _, x := range benchers {
		group.Go(func() {
			for left.Add(-int64(batch)) > -int64(batch) {
				if err := live(x, x.tasks(batch)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	used := cpuTime(b) - started
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-us/task")
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bencher does what a node does with one shard.
type bencher struct {
	s        *Store
	shard    store.Shard
	fence    store.Fence
	payloads [][]byte
}

func newBencher(b testing.TB, s *Store, shard store.Shard) *bencher {
	return &bencher{s: s, shard: shard, fence: claim(b, s, shard), payloads: randomPayloads(1024)}
}

// claim makes a node of its own the owner of the shard.
func claim(t testing.TB, s *Store, shard store.Shard) store.Fence {
	t.Helper()
	session := store.Session{Node: "node", Start: store.NewToken(), TTL: time.Hour, Begin: true}
	if _, err := s.RenewSession(context.Background(), session); err != nil {
		t.Fatal(err)
	}
	_, fence, err := s.Claim(context.Background(), shard, session)
	if err != nil {
		t.Fatal(err)
	}
	return fence
}

func randomPayloads(n int) [][]byte {
	random := rand.NewChaCha8([32]byte{1})
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = make([]byte, 200)
		random.Read(payloads[i])
	}
	return payloads
}

func (x *bencher) tasks(n int) []*store.Task {
	now := store.Millis(time.Now().UnixMilli())
	tasks := make([]*store.Task, n)
	for i := range tasks {
		tasks[i] = &store.Task{
			ID: uuid.Must(uuid.NewV7()).String(), Payload: x.payloads[rand.IntN(len(x.payloads))],
			Due: now, Created: now, MaxRetries: -1, Fingerprint: rand.Uint64(),
		}
	}
	return tasks
}

func holdsFor(tasks []*store.Task) []store.Hold {
	holds := make([]store.Hold, len(tasks))
	for i, t := range tasks {
		holds[i] = store.Hold{ID: t.ID, Token: store.NewToken(), Visibility: time.Minute, Worker: "worker"}
	}
	return holds
}

func (x *bencher) addHoldAck(tasks []*store.Task) error {
	ctx := context.Background()
	if _, _, err := x.s.Add(ctx, x.shard, tasks); err != nil {
		return err
	}
	holds := holdsFor(tasks)
	_, held, err := x.s.Hold(ctx, x.shard, x.fence, holds)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Status != store.OK {
			return fmt.Errorf("hold answered %d", h.Status)
		}
	}
	return x.ack(holds)
}

func (x *bencher) holdNewAck(tasks []*store.Task) error {
	holds := holdsFor(tasks)
	_, held, err := x.s.HoldNew(context.Background(), x.shard, x.fence, tasks, holds)
	if err != nil {
		return err
	}
	for _, h := range held {
		if h.Status != store.Held {
			return fmt.Errorf("hold answered %d", h.Status)
		}
	}
	return x.ack(holds)
}

func (x *bencher) ack(holds []store.Hold) error {
	acks := make([]store.Ack, len(holds))
	for i, h := range holds {
		acks[i] = store.Ack{ID: h.ID, Token: h.Token}
	}
	_, acked, err := x.s.Ack(context.Background(), x.shard, acks, 0)
	if err != nil {
		return err
	}
	for _, status := range acked {
		if status != store.OK {
			return fmt.Errorf("ack answered %d", status)
		}
	}
	return nil
}

// BenchmarkAck acks plain tasks in batches of 128, which were added and held. Only the
// acks are in its CPU.
func BenchmarkAck(b *testing.B) {
	x := newBencher(b, openStore(b, Config{Dir: b.TempDir()}), store.Shard{Topic: "bench"})
	const batch = 128
	var used time.Duration
	for left := b.N; left > 0; left -= batch {
		tasks := x.tasks(batch)
		holds := holdsFor(tasks)
		if _, _, err := x.s.HoldNew(context.Background(), x.shard, x.fence, tasks, holds); err != nil {
			b.Fatal(err)
		}
		started := cpuTime(b)
		if err := x.ack(holds); err != nil {
			b.Fatal(err)
		}
		used += cpuTime(b) - started
	}
	b.ReportMetric(float64(used.Nanoseconds())/1e3/float64(b.N), "cpu-us/ack")
}

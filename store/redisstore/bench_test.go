package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// payloadSize is what the benchmarks and the memory bound are about.
const payloadSize = 200

// shardOf is a shard under test and the right to it.
type shardOf struct {
	*redisstore.Store
	shard   store.Shard
	fence   store.Fence
	session store.Session
}

// claim makes a node the owner of a shard.
func claim(t testing.TB, s *redisstore.Store) shardOf {
	t.Helper()
	ctx := context.Background()
	session := store.Session{Node: "node-1", Start: store.NewToken(), TTL: time.Hour, Begin: true}
	if _, err := s.RenewSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	shard := store.Shard{Topic: "mail", N: 0}
	_, fence, err := s.Claim(ctx, shard, session)
	if err != nil {
		t.Fatal(err)
	}
	return shardOf{s, shard, fence, session}
}

// newTasks returns tasks as the server makes them, all due at the same time.
func newTasks(n int, due store.Millis) []*store.Task {
	payload := []byte(strings.Repeat("p", payloadSize))
	now := store.Millis(time.Now().UnixMilli())
	tasks := make([]*store.Task, n)
	for i := range tasks {
		tasks[i] = &store.Task{
			ID: uuid.Must(uuid.NewV7()).String(), Payload: payload,
			Due: due, Created: now, MaxRetries: -1, Fingerprint: uint64(i) << 40,
		}
	}
	return tasks
}

// fill adds n tasks that are not due.
func (s shardOf) fill(t testing.TB, n int) {
	t.Helper()
	later := store.Millis(time.Now().Add(time.Hour).UnixMilli())
	for n > 0 {
		batch := newTasks(min(n, 1000), later)
		for i, task := range batch {
			task.Due += store.Millis(n + i) // as real ones: not all the same
		}
		if _, _, err := s.Add(context.Background(), s.shard, batch); err != nil {
			t.Fatal(err)
		}
		n -= len(batch)
	}
}

func holdsFor(tasks []*store.Task) ([]store.Hold, []store.Ack) {
	holds, acks := make([]store.Hold, len(tasks)), make([]store.Ack, len(tasks))
	for i, t := range tasks {
		holds[i] = store.Hold{ID: t.ID, Token: store.NewToken(), Visibility: 30 * time.Second, Worker: "worker-1"}
		acks[i] = store.Ack{ID: t.ID, Token: holds[i].Token}
	}
	return holds, acks
}

func TestMemoryPerPendingTask(t *testing.T) {
	if testing.Short() {
		t.Skip("adds 62,500 tasks")
	}
	const tasks, most = 62_500, 430 // which fill the tables of Redis as a million do: 95 % of a power of two
	server := redistest.Start(t, "--appendonly", "no")
	shard := claim(t, openVolatile(t, server))
	before := infoNumber(t, server, "used_memory")
	shard.fill(t, tasks)
	bytes := (infoNumber(t, server, "used_memory") - before) / tasks
	t.Logf("%.1f bytes per pending task with a payload of %d", bytes, payloadSize)
	if bytes > most {
		t.Errorf("a pending task takes %.1f bytes, want at most %d", bytes, most)
	}
}

// openVolatile opens a store on a server that keeps nothing.
func openVolatile(t testing.TB, server *redistest.Server) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL(), AllowVolatile: true}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // the test is over
	return s
}

// infoNumber returns a number from the server's INFO.
func infoNumber(t testing.TB, server *redistest.Server, name string) float64 {
	t.Helper()
	_, after, _ := strings.Cut(server.Do(t, "INFO").(string), "\n"+name+":")
	value, _, _ := strings.Cut(after, "\r")
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		t.Fatalf("info %s: %v", name, err)
	}
	return n
}

// measure runs cycles of one batch each and reports tasks and server CPU.
func measure(b *testing.B, server *redistest.Server, batch int, cycle func()) {
	cpu := func() float64 {
		return infoNumber(b, server, "used_cpu_user") + infoNumber(b, server, "used_cpu_sys")
	}
	before := cpu()
	start := time.Now()
	for b.Loop() {
		cycle()
	}
	tasks := float64(b.N * batch)
	b.ReportMetric(tasks/time.Since(start).Seconds(), "tasks/s")
	b.ReportMetric((cpu()-before)/tasks*1e6, "redis-us/task")
	b.ReportMetric(0, "ns/op")
}

var batchSizes = []int{1, 16, 128, 512}

// BenchmarkCycle takes batches through add, hold and ack, with a hundred
// thousand other tasks in the shard.
func BenchmarkCycle(b *testing.B) {
	server := redistest.Start(b)
	s := claim(b, open(b, server.URL()))
	s.fill(b, 100_000)
	s.shard.Life = 7 // as nodes add
	ctx := context.Background()
	for _, n := range batchSizes {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			measure(b, server, n, func() {
				tasks := newTasks(n, 1)
				holds, acks := holdsFor(tasks)
				if _, _, err := s.Add(ctx, s.shard, tasks); err != nil {
					b.Fatal(err)
				}
				if _, results, err := s.Hold(ctx, s.shard, s.fence, holds); err != nil || results[n-1].Status != store.OK {
					b.Fatal(err, results)
				}
				if _, results, err := s.Ack(ctx, s.shard, acks, 0); err != nil || results[n-1] != store.OK {
					b.Fatal(err, results)
				}
			})
		})
	}
}

// BenchmarkImmediate is BenchmarkCycle for tasks that are held as they are added.
func BenchmarkImmediate(b *testing.B) {
	server := redistest.Start(b)
	s := claim(b, open(b, server.URL()))
	s.fill(b, 100_000)
	s.shard.Life = 7 // as nodes add
	ctx := context.Background()
	for _, n := range batchSizes {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			measure(b, server, n, func() {
				tasks := newTasks(n, 1)
				holds, acks := holdsFor(tasks)
				if _, results, err := s.HoldNew(ctx, s.shard, s.fence, tasks, holds); err != nil || results[n-1].Status != store.Held {
					b.Fatal(err, results)
				}
				if _, results, err := s.Ack(ctx, s.shard, acks, 0); err != nil || results[n-1] != store.OK {
					b.Fatal(err, results)
				}
			})
		})
	}
}

// BenchmarkPlain is what the commands of BenchmarkCycle cost without scripts and
// without what they promise: nothing is compared, fenced or counted.
func BenchmarkPlain(b *testing.B) {
	server := redistest.Start(b)
	s := claim(b, open(b, server.URL()))
	s.fill(b, 100_000)
	ctx := context.Background()
	client := server.Client(b)
	data, tasks, running := "ddq:{mail:0}:data", "ddq:{mail:0}:tasks", "ddq:{mail:0}:running"
	for _, n := range batchSizes {
		b.Run(fmt.Sprintf("batch=%d", n), func(b *testing.B) {
			measure(b, server, n, func() {
				batch := newTasks(n, 1)
				ids, hset, hold := make([]string, n), make([]any, 0, 2*n), make([]any, 0, 2*n)
				members, zset := make([]any, n), make([]redis.Z, n)
				for i, t := range batch {
					ids[i] = t.ID[:24]
					hset = append(hset, ids[i], string(t.Payload)+"and 20 bytes of head")
					hold = append(hold, ids[i], "token and deadline and so on, about 50 bytes of it")
					zset[i], members[i] = redis.Z{Score: 1, Member: ids[i]}, ids[i]
				}
				for _, step := range []func(redis.Pipeliner){
					func(p redis.Pipeliner) { p.HSet(ctx, data, hset...); p.ZAdd(ctx, tasks, zset...) },
					func(p redis.Pipeliner) {
						p.ZRem(ctx, tasks, members...)
						p.HSet(ctx, running, hold...)
						p.HMGet(ctx, data, ids...)
					},
					func(p redis.Pipeliner) { p.HDel(ctx, data, ids...); p.HDel(ctx, running, ids...) },
				} {
					if _, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error { step(p); return nil }); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

//go:build linux

package outbox_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/ddqtest"
	"github.com/ddq-io/ddq/api/outbox/internal/pgtest"
)

// BenchmarkRelay is how long a row takes when there are many.
func BenchmarkRelay(b *testing.B) {
	for name, open := range map[string]func(testing.TB) base{"postgres": postgresBase, "sqlite": sqliteBase} {
		b.Run(name, func(b *testing.B) {
			to := open(b)
			if err := outbox.Install(b.Context(), to); err != nil {
				b.Fatal(err)
			}
			c := ddqtest.Client(b, ddqtest.Start(b, ddq), client.Config{})
			for n := 0; n < b.N; n += 1_000 {
				if _, err := to.transact(b.Context(), nil, numbered("t", 0, min(1_000, b.N-n))...); err != nil {
					b.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			r := outbox.NewRelay(to, c, outbox.RelayConfig{})
			done := make(chan error, 1)
			b.ResetTimer()
			go func() { done <- r.Run(ctx) }()
			for r.Counts().Enqueued < int64(b.N) {
				time.Sleep(time.Millisecond)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

// BenchmarkPromptness is how long after its commit a row is stored in ddq, at promptRate transactions
// a second of one row each.
func BenchmarkPromptness(b *testing.B) {
	for name, open := range map[string]func(testing.TB) base{"postgres": postgresBase, "sqlite": sqliteBase} {
		b.Run(name, func(b *testing.B) {
			from := open(b)
			if err := outbox.Install(b.Context(), from); err != nil {
				b.Fatal(err)
			}
			seen := newStoredAt(ddqtest.Client(b, ddqtest.Start(b, ddq), client.Config{}))
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			done := make(chan error, 1)
			r := outbox.NewRelay(from, seen, outbox.RelayConfig{})
			go func() { done <- r.Run(ctx) }()
			if _, err := from.transact(b.Context(), nil, numbered("t", -1, 0)...); err != nil {
				b.Fatal(err)
			}
			seen.wait(1) // the relay reads
			b.ResetTimer()
			committed := commitAll(b, from, b.N)
			seen.wait(b.N + 1)
			b.StopTimer()
			took := seen.since(committed)
			b.ReportMetric(took[len(took)/2].Seconds()*1e3, "p50-ms")
			b.ReportMetric(took[len(took)*99/100].Seconds()*1e3, "p99-ms")
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

const (
	promptRate      = 1_000
	promptProducers = 8
)

// commitAll commits n rows at an even rate, and returns when each was, by payload.
func commitAll(b *testing.B, to base, n int) map[string]time.Time {
	var mu sync.Mutex // guards at
	at := make(map[string]time.Time, n)
	var all sync.WaitGroup
	begun := time.Now()
	for p := range promptProducers {
		all.Go(func() {
			for i := p; i < n; i += promptProducers {
				time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / promptRate)))
				task := numbered("t", i, i+1)
				if _, err := to.transact(b.Context(), nil, task...); err != nil {
					b.Error(err)
					return
				}
				now := time.Now()
				mu.Lock()
				at[string(task[0].Payload)] = now
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return at
}

// storedAt is a client that knows when tasks were stored, by payload.
type storedAt struct {
	outbox.Enqueuer

	mu   sync.Mutex
	more sync.Cond            // of mu: more tasks are stored
	at   map[string]time.Time // guarded by mu
}

func newStoredAt(to outbox.Enqueuer) *storedAt {
	s := &storedAt{Enqueuer: to, at: make(map[string]time.Time)}
	s.more.L = &s.mu
	return s
}

func (s *storedAt) EnqueueBatch(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
	results, err := s.Enqueuer.EnqueueBatch(ctx, tasks)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range results {
		if results[i].Err == nil {
			s.at[string(tasks[i].Payload)] = now
		}
	}
	s.more.Broadcast()
	return results, err
}

// wait waits until n tasks are stored.
func (s *storedAt) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.at) < n {
		s.more.Wait()
	}
}

// since is how long after its commit was answered each was stored, sorted; 0 of those that were
// stored before the answer came.
func (s *storedAt) since(committed map[string]time.Time) (all []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for payload, at := range committed {
		all = append(all, max(0, s.at[payload].Sub(at)))
	}
	slices.Sort(all)
	return all
}

// BenchmarkTransaction is what an enqueue adds to a transaction that writes.
func BenchmarkTransaction(b *testing.B) {
	pool := pgtest.Pool(b, postgres.Database(b))
	if err := outbox.Install(b.Context(), outbox.Postgres(pool)); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), `create table orders (id bigint generated always as identity primary key, what text)`); err != nil {
		b.Fatal(err)
	}
	task := client.Task{Topic: "mail", Payload: make([]byte, 200)}
	for name, enqueue := range map[string]bool{"plain": false, "enqueue": true} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				err := pgx.BeginFunc(b.Context(), pool, func(tx pgx.Tx) error {
					if _, err := tx.Exec(b.Context(), `insert into orders (what) values ('book')`); err != nil || !enqueue {
						return err
					}
					_, err := outbox.Enqueue(b.Context(), tx, task)
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

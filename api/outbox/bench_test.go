//go:build linux

package outbox_test

import (
	"context"
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

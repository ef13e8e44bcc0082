package node

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// takeOne runs a worker on a connection of its own until its handler was called once and, unless
// that dies, its outcome is settled. A handler that dies takes the connection with it.
func takeOne(t *testing.T, addr string, dies bool, handle func(ctx context.Context, task worker.Task) error) {
	t.Helper()
	c, err := client.Dial(addr, client.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := worker.New(c.Conn(), worker.Config{Topic: "orders", Concurrency: 1, MaxInFlight: 1, Grace: -1, Logger: slog.New(slog.DiscardHandler)},
		worker.HandlerFunc(func(hctx context.Context, task worker.Task) error {
			defer cancel()
			err := handle(hctx, task)
			if dies {
				c.Close()
			}
			return err
		}))
	if err := w.Run(ctx); err != nil && !dies {
		t.Error(err)
	}
	c.Close()
}

// TestANameIsNotRunAgainAfterItsCheckpoint: the worker dies behind a checkpoint, the server goes
// away, and the next attempt has what the name returned.
func TestANameIsNotRunAgainAfterItsCheckpoint(t *testing.T) {
	for _, name := range []string{Memory, Embedded, "redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &Config{Store: name, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, AllowVolatile: true, ShutdownGrace: 10 * time.Second, Data: filepath.Join(t.TempDir(), "data")}
			if name == "redis" {
				cfg.Store = redistest.Start(t).URL()
			}
			n := started(t, cfg)
			c, err := client.Dial(n.GRPCAddr(), client.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Enqueue(t.Context(), client.Task{
				Topic: "orders", ID: "a", VisibilityTimeout: time.Second, MaxRetries: new(3), Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: time.Millisecond},
			})
			if err != nil {
				t.Fatal(err)
			}
			ran, attempts := map[string]int{}, 0
			do := func(ctx context.Context, task worker.Task, part string) (string, error) {
				value, err := task.Once(ctx, part, func(context.Context) ([]byte, error) {
					ran[part]++
					return []byte(part + " done"), nil
				})
				return string(value), err
			}
			takeOne(t, n.GRPCAddr(), true, func(ctx context.Context, task worker.Task) error {
				attempts = task.Attempt
				_, err := do(ctx, task, "charge")
				return err
			})
			got, err := c.Get(t.Context(), "orders", "a")
			if j := got.Journal; err != nil || len(j) != 1 || j[0].Name != "charge" || string(j[0].Value) != "charge done" || j[0].Size != 11 || time.Since(j[0].Kept).Abs() > time.Minute {
				t.Errorf("the task shows the journal %v, %v", j, err)
			}
			if name != Memory {
				stop(t, n)
				n = started(t, cfg)
			}
			takeOne(t, n.GRPCAddr(), false, func(ctx context.Context, task worker.Task) error {
				attempts = task.Attempt
				for _, part := range []string{"charge", "ship"} {
					if got, err := do(ctx, task, part); err != nil || got != part+" done" {
						t.Errorf("%s returned %q, %v", part, got, err)
					}
				}
				return nil
			})
			if ran["charge"] != 1 || ran["ship"] != 1 || attempts != 2 {
				t.Errorf("parts ran %v in %d attempts, want each once in 2", ran, attempts)
			}
			stop(t, n)
		})
	}
}

func started(t testing.TB, cfg *Config) *Node {
	t.Helper()
	n, err := Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stop(t testing.TB, n *Node) {
	t.Helper()
	if err := n.Stop(); err != nil {
		t.Error(err)
	}
}

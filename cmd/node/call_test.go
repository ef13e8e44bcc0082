package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// TestAFunctionGoesOnBehindItsCalls: its worker dies in each part, behind a checkpoint and once behind the
// ack of its call, and the server goes away meanwhile. Each part and each call is made once.
func TestAFunctionGoesOnBehindItsCalls(t *testing.T) {
	for _, name := range []string{Memory, Embedded, "redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := &Config{Store: name, GRPCAddr: "127.0.0.1:0", HTTPAddr: Off, AllowVolatile: true, ShutdownGrace: 10 * time.Second, Data: filepath.Join(t.TempDir(), "data")}
			if name == "redis" {
				cfg.Store = redistest.Start(t).URL()
			}
			n := started(t, cfg)
			defer func() { stop(t, n) }()
			template := client.Task{VisibilityTimeout: time.Second, MaxRetries: new(3), Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: time.Millisecond}}
			submit(t, n.GRPCAddr(), client.Workflow{Topic: "orders", ID: "w", Steps: []client.Step{{Name: "start", Task: template}, {Name: "end", After: client.After("start")}}})

			ran := map[string]int{}
			once := func(ctx context.Context, task worker.Task, part string) error {
				_, err := task.Once(ctx, part, func(context.Context) ([]byte, error) {
					ran[part]++
					return []byte(part), nil
				})
				return err
			}
			function := func(ctx context.Context, task worker.Task) error {
				if err := once(ctx, task, "first"); err != nil {
					return err
				}
				pages, err := task.Call(ctx, "pages", client.Task{Payload: []byte("a")}, client.Task{Payload: []byte("b")})
				if err != nil {
					return err
				}
				if err := once(ctx, task, "second"); err != nil {
					return err
				}
				answer, err := task.Await(ctx, "approve", time.Hour)
				if err != nil {
					return err
				}
				return task.SetResult(fmt.Appendf(nil, "%s %s %s", pages[0].Result, pages[1].Result, answer))
			}
			page := func(_ context.Context, task worker.Task) error {
				ran["page "+string(task.Payload)]++
				return task.SetResult(task.Payload)
			}
			takeOne(t, n.GRPCAddr(), true, func(ctx context.Context, task worker.Task) error { return once(ctx, task, "first") })
			takeOne(t, n.GRPCAddr(), false, function) // suspends
			takeOne(t, n.GRPCAddr(), false, page)
			takeOne(t, n.GRPCAddr(), false, page)
			takeOne(t, n.GRPCAddr(), true, func(ctx context.Context, task worker.Task) error {
				if _, err := task.Call(ctx, "pages"); err != nil {
					t.Errorf("pages: %v", err)
				}
				return once(ctx, task, "second")
			})
			if name != Memory {
				stop(t, n)
				n = started(t, cfg)
			}
			takeOne(t, n.GRPCAddr(), false, func(ctx context.Context, task worker.Task) error {
				err := function(ctx, task)
				if !errors.Is(err, worker.ErrSuspended) {
					t.Errorf("it awaits the approval with %v", err)
				}
				return err
			})
			c, err := client.Dial(n.GRPCAddr(), client.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SignalWorkflow(t.Context(), "orders", "w", client.Signal{Name: "approve", Payload: []byte("yes")}); err != nil {
				t.Fatal(err)
			}
			takeOne(t, n.GRPCAddr(), false, function)
			takeOne(t, n.GRPCAddr(), false, func(_ context.Context, task worker.Task) error {
				if got := string(task.ResultOf("start")); got != "a b yes" {
					t.Errorf("the step behind it gets %q", got)
				}
				return nil
			})
			s, err := c.WaitWorkflow(t.Context(), "orders", "w", time.Minute)
			if err != nil || s.State != client.WorkflowDone {
				t.Errorf("it is %v, %v", s.State, err)
			}
			for _, part := range []string{"first", "second", "page a", "page b"} {
				if ran[part] != 1 {
					t.Errorf("%s ran %d times, want once: %v", part, ran[part], ran)
				}
			}
		})
	}
}

func submit(t *testing.T, addr string, w client.Workflow) {
	t.Helper()
	c, err := client.Dial(addr, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Submit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
}

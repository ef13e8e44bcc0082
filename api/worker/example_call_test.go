package worker_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/node"
)

// A step of a workflow is a function that waits for others: for tasks that it hands on, and for a signal.
// Meanwhile no worker has it.
func ExampleTask_Call() {
	// A server of this example's own; a program has the address of one that runs.
	server, err := node.Start(context.Background(), &node.Config{
		Store: "memory", GRPCAddr: "127.0.0.1:0", HTTPAddr: node.Off, ShutdownGrace: time.Second,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop()

	c, err := client.Dial(server.GRPCAddr(), client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	order := func(ctx context.Context, t worker.Task) error {
		packed, err := t.Call(ctx, "pack", client.Task{Payload: []byte("book")}, client.Task{Payload: []byte("anvil")})
		if err != nil {
			return err // until both parcels are packed, or cannot be
		}
		for _, p := range packed {
			fmt.Printf("%s %v %s%s\n", p.Step, p.State, p.Result, p.Error)
		}
		by, err := t.Await(ctx, "approve", 24*time.Hour)
		if err != nil {
			return err
		}
		return t.SetResult(append([]byte("shipped, approved by "), by...))
	}
	pack := func(_ context.Context, t worker.Task) error {
		if string(t.Payload) == "anvil" {
			return worker.Permanent(fmt.Errorf("too heavy"))
		}
		return t.SetResult([]byte("in a box"))
	}

	if _, err := c.Submit(ctx, client.Workflow{Topic: "orders", ID: "order-17", Steps: []client.Step{{Name: "order"}}}); err != nil {
		log.Fatal(err)
	}
	if err := c.SignalWorkflow(ctx, "orders", "order-17", client.Signal{Name: "approve", Payload: []byte("ada")}); err != nil {
		log.Fatal(err)
	}
	working, done := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		steps := worker.Steps{"order": order, "pack": pack}
		ended <- worker.New(c.Conn(), worker.Config{Topic: "orders"}, steps).Run(working)
	}()
	if _, err := c.WaitWorkflow(ctx, "orders", "order-17", time.Minute); err != nil {
		log.Fatal(err)
	}
	s, _, err := c.GetWorkflow(ctx, "orders", "order-17")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v: %s\n", s.State, s.Result)
	done()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}

	// The parcels are told of each time that the function runs behind them: here, when the signal has
	// been taken, too.

	// Output:
	// order.pack-1 done in a box
	// order.pack-2 failed too heavy
	// order.pack-1 done in a box
	// order.pack-2 failed too heavy
	// done: shipped, approved by ada
}

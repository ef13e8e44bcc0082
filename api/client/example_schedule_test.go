package client_test

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

// Schedules are put by every replica of a program when it starts: the same again changes
// nothing. Their runs are tasks like any other.
func ExampleClient_PutSchedule() {
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

	nightly := client.Schedule{
		Topic: "report", Name: "nightly", Cron: []string{"30 2 * * *"}, Zone: "Europe/Berlin",
		Overlap: client.OverlapSkip, CatchUp: client.CatchUpLast,
		Task: client.Task{Payload: []byte("sales")},
	}
	for range 2 {
		put, err := c.PutSchedule(ctx, nightly)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(put.Outcome, put.Version)
	}

	// When it runs in the night in which the clocks are changed.
	preview, err := c.PreviewExisting(ctx, "report", "nightly", client.PreviewRange{From: time.Date(2035, 3, 25, 0, 0, 0, 0, time.UTC), Count: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(preview.Occurrences[0].Local)

	// A run now, and the worker that does it.
	if _, err := c.TriggerSchedule(ctx, client.Trigger{Topic: "report", Name: "nightly", RequestID: "ticket-4711"}); err != nil {
		log.Fatal(err)
	}
	ctx, done := context.WithCancel(ctx)
	w := worker.New(c.Conn(), worker.Config{Topic: "report"}, worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
		fmt.Printf("%s: %s\n", t.Run.Schedule, t.Payload)
		done()
		return nil
	}))
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}

	// Output:
	// created 1
	// unchanged 1
	// 2035-03-25T03:00:00+02:00
	// nightly: sales
}

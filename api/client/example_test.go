package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/ddq-io/ddq/api/client"
)

func Example() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	receipt, err := c.Enqueue(context.Background(), client.Task{
		Topic:   "mail",
		Payload: []byte("hello"),
		Delay:   5 * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(receipt.ID, "is due", receipt.Due)
}

func ExampleDial_tls() {
	c, err := client.Dial("ddq.example.com:9090", client.Config{
		Credentials: credentials.NewTLS(&tls.Config{}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
}

// An ID of the caller's makes the enqueue safe to repeat, for as long as the
// task lives: after a crash, from another machine, by an impatient user.
func ExampleClient_Enqueue_id() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	receipt, err := c.Enqueue(context.Background(), client.Task{
		Topic:      "invoices",
		ID:         "invoice-4711-reminder",
		Payload:    []byte(`{"invoice":4711}`),
		Due:        time.Now().AddDate(0, 0, 14),
		MaxRetries: new(5),
		Backoff:    &client.Backoff{Kind: client.BackoffExponential, Base: time.Second, Max: time.Hour},
	})
	switch {
	case errors.Is(err, client.ErrExists):
		fmt.Println("another reminder of this id is waiting")
	case err != nil:
		log.Fatal(err)
	case receipt.Deduplicated:
		fmt.Println("stored before")
	}
}

func ExampleClient_EnqueueBatch() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	results, err := c.EnqueueBatch(context.Background(), []client.Task{
		{Topic: "mail", Payload: []byte("one"), Delay: time.Minute},
		{Topic: "mail", Payload: []byte("two"), Delay: time.Hour},
	})
	if err == nil {
		return // all are stored
	}
	for _, r := range results {
		if r.Err != nil {
			fmt.Println(r.ID, r.Err)
		}
	}
}

func ExampleClient_Delete() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	_, err = c.Delete(context.Background(), "invoices", "invoice-4711-reminder")
	switch {
	case errors.Is(err, client.ErrNotFound):
		fmt.Println("no such task")
	case errors.Is(err, client.ErrPrecondition):
		fmt.Println("a worker has it already")
	}
}

func ExampleClient_List() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for task, err := range c.List(context.Background(), "mail", client.StateScheduled) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(task.ID, task.Due)
	}
}

func ExampleClient_ListDeadLetters() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	ctx := context.Background()
	lost := client.DeadLetterFilter{ErrorContains: "connection refused"}
	for task, err := range c.ListDeadLetters(ctx, "mail", lost) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(task.ID, task.DeadReason, task.LastError)
	}
	if _, _, err := c.RequeueMatching(ctx, "mail", lost); err != nil {
		log.Fatal(err)
	}
}

func ExampleClient_CreateTopic() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	topic, err := c.CreateTopic(context.Background(), "video", client.Policy{
		Shards:            new(8),
		VisibilityTimeout: new(10 * time.Minute),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(topic.Name, *topic.Policy.MaxRetries)
}

func ExampleClient_EnqueueAndWait() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	// The topic has to keep done tasks, or there is no result: ddq topic create sums --done-retention 1h
	task, err := c.EnqueueAndWait(context.Background(), client.Task{Topic: "sums", Payload: []byte("6 7")}, time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	if task.State == client.StateDone {
		fmt.Printf("%s, at attempt %d\n", task.Result, len(task.Attempts))
	}
}

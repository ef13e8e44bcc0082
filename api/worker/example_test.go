package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

func Example() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	w := worker.New(c.Conn(), worker.Config{Topic: "mail", Concurrency: 16},
		worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
			fmt.Printf("%s: %s\n", t.ID, t.Payload)
			return nil // nil acks, an error nacks with backoff
		}))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := w.Run(ctx); err != nil { // after a signal, lets handlers finish
		log.Fatal(err)
	}
}

// What a handler returns decides what becomes of the task.
func ExampleHandlerFunc() {
	fetch := worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(t.Payload), nil)
		if err != nil {
			return worker.Permanent(err) // no attempt can mend a bad address
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err // again after the topic's backoff
		}
		defer response.Body.Close()
		switch response.StatusCode {
		case http.StatusTooManyRequests:
			return worker.RetryAfter(time.Minute, errors.New(response.Status))
		case http.StatusServiceUnavailable:
			return worker.Release(10 * time.Second) // without spending the attempt
		}
		return nil
	})
	_ = fetch
}

// A Mux runs one worker for several topics.
func ExampleMux() {
	c, err := client.Dial("127.0.0.1:9090", client.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	mux := worker.NewMux()
	mux.AddFunc("mail", func(ctx context.Context, t worker.Task) error { return nil })
	mux.AddFunc("video", func(ctx context.Context, t worker.Task) error { return nil })

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := worker.New(c.Conn(), worker.Config{Logger: slog.Default()}, mux).Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func ExampleMiddleware() {
	timed := func(next worker.Handler) worker.Handler {
		return worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
			began := time.Now()
			err := next.Handle(ctx, t)
			slog.Info("task handled", "task", t.ID, "attempt", t.Attempt, "took", time.Since(began), "err", err)
			return err
		})
	}
	_ = worker.Config{Topic: "mail", Middleware: []worker.Middleware{timed}}
}

// A handler that runs long needs to do nothing for its hold, but should stop
// when its context does.
func ExampleHandler_longRunning() {
	convert := worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
		for range 1000 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // ErrHoldLost, ErrCanceled or ErrStopped
			}
			// ... the next frame
		}
		return nil
	})
	_ = convert
}

// Delivery is at least once. An effect happens once when it is recorded under
// the task's id, in the transaction that makes it; the hold token says which
// attempt did.
func ExampleTask_once() {
	insert := "INSERT INTO sent (task, hold) VALUES ($1, $2) ON CONFLICT (task) DO NOTHING"
	send := worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
		fmt.Println(insert, t.ID, t.HoldToken)
		return nil
	})
	_ = send
}

// A handler of several parts does each of them once, whatever becomes of its attempts, as far as the
// server heard of it. It may sleep for weeks: nobody holds the task meanwhile.
func ExampleTask_Once() {
	pay := func(context.Context) ([]byte, error) {
		fmt.Println("paid")
		return []byte("receipt 7"), nil
	}
	order := worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
		receipt, err := t.Once(ctx, "charge", pay)
		if err != nil {
			return err // tried again, and so is the charge
		}
		if err := t.Sleep(ctx, "cool down", 24*time.Hour); err != nil {
			return err // given back until then
		}
		return t.SetResult(receipt)
	})

	first := worker.NewTask(worker.Task{Topic: "orders"})
	fmt.Println(order.Handle(context.Background(), first))

	awake := time.Now().UTC().Format(time.RFC3339)
	again := worker.NewTask(worker.Task{Topic: "orders"}).Resumed(map[string][]byte{"charge": []byte("receipt 7"), "cool down": []byte(awake)})
	fmt.Println(order.Handle(context.Background(), again))
	fmt.Printf("%s\n", again.Result())
	// Output:
	// paid
	// released by the handler
	// <nil>
	// receipt 7
}

// The producer reads a result with client.Wait, while the topic keeps done tasks.
func ExampleTask_SetResult() {
	add := worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
		var x, y int
		if _, err := fmt.Sscan(string(t.Payload), &x, &y); err != nil {
			return worker.Permanent(err)
		}
		return t.SetResult(fmt.Append(nil, x*y))
	})
	_ = add
}

// A topic may have tasks of several kinds, told apart by an attribute that the producer
// sets. They share the topic's limits, retries and order.
func ExampleByAttribute() {
	kinds := worker.ByAttribute("kind", map[string]worker.Handler{
		"welcome": worker.HandlerFunc(func(context.Context, worker.Task) error { return nil }),
		"invoice": worker.HandlerFunc(func(context.Context, worker.Task) error { return errors.New("no printer") }),
	})
	fmt.Println(kinds.Handle(context.Background(), worker.Task{Attributes: map[string]string{"kind": "invoice"}}))
	fmt.Println(kinds.Handle(context.Background(), worker.Task{Attributes: map[string]string{"kind": "parcel"}}))
	// Output:
	// no printer
	// no handler for tasks with kind "parcel"
}

// Mail is the payload of a topic, which producers and workers share.
type Mail struct{ To string }

var mail = client.TopicOf[Mail]("mail")

// The handlers of a Mux get values instead of bytes. What is no Mail is a dead letter at once.
func ExampleHandle() {
	mux := worker.NewMux()
	worker.Handle(mux, mail, func(_ context.Context, m Mail, t worker.Task) error {
		fmt.Println("attempt", t.Attempt, "for", m.To)
		return nil
	})

	task, err := mail.Task(Mail{To: "ann@example.com"})
	if err != nil {
		log.Fatal(err)
	}
	for _, payload := range [][]byte{task.Payload, []byte("ann")} {
		fmt.Println(mux.Handle(context.Background(), worker.NewTask(worker.Task{Topic: task.Topic, Payload: payload})))
	}
	// Output:
	// attempt 1 for ann@example.com
	// <nil>
	// payload is no worker_test.Mail: invalid character 'a' looking for beginning of value
}

// A handler is tested without a server.
func ExampleNewTask() {
	upper := worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
		return t.SetResult(bytes.ToUpper(t.Payload))
	})
	task := worker.NewTask(worker.Task{Topic: "mail", Payload: []byte("hello")})
	err := upper.Handle(context.Background(), task)
	fmt.Printf("%s, %v\n", task.Result(), err)
	// Output: HELLO, <nil>
}

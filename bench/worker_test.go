package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// belt is a driver that delivers what it was given, each task once.
type belt struct {
	sink
	tasks chan Task
}

func (b *belt) Work(ctx context.Context, s Session) error {
	s.Ready()
	for {
		select {
		case t := <-b.tasks:
			s.Handle(ctx, Delivery{Payload: t.Payload, Attempt: 1})
			s.Acked(1)
		case <-ctx.Done():
			return nil
		}
	}
}

func TestWorkerObeysItsOrders(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := &belt{tasks: make(chan Task)}
	orders, in := io.Pipe()
	out, events := io.Pipe()
	served := make(chan error)
	go func() {
		err := serveWorker(t.Context(), &worker{driver: b, concurrency: 1}, orders, events)
		events.Close()
		served <- err
	}()
	lines := bufio.NewScanner(out)
	await := func(want string) event {
		t.Helper()
		for lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			if e.Event == want {
				return e
			}
		}
		t.Fatalf("worker ended without %q", want)
		return event{}
	}
	give := func(o order) {
		if err := json.NewEncoder(in).Encode(o); err != nil {
			t.Fatal(err)
		}
	}

	give(order{Order: orderExpect, Run: 3, Tasks: 2})
	await(eventExpecting)
	give(order{Order: orderWork})
	await(eventWorking)
	m := newMaker(1, 3, 200)
	b.tasks <- m.task(0, time.Time{})
	b.tasks <- m.task(1, time.Time{})
	if e := await(eventDone); e.Run != 3 || e.Seen != 2 {
		t.Errorf("done: got run %d with %d tasks, want 3 with 2", e.Run, e.Seen)
	}
	give(order{Order: orderReport})
	if r := await(eventReport).Report; r == nil || r.Tasks != 2 || r.Acked != 2 || r.LastAck == 0 {
		t.Errorf("report: got %+v, want 2 tasks and 2 acks", r)
	}
	give(order{Order: orderPause})
	await(eventPaused)
	give(order{Order: orderWork}) // and again, without end
	await(eventWorking)
	in.Close()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if err := <-served; err != nil {
		t.Errorf("worker ended with %v", err)
	}
}

func TestWorkerRefusesAnOrderItDoesNotKnow(t *testing.T) {
	orders, in := io.Pipe()
	go func() {
		_, _ = io.WriteString(in, `{"order":"dance"}`+"\n")
		in.Close()
	}()
	if err := serveWorker(t.Context(), &worker{driver: newSink()}, orders, io.Discard); err == nil {
		t.Error("got no error")
	}
}

package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
)

// Nobody is refused, and what would be is counted, and logged once a minute.
func TestObservingRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guardedWith(t, Config{Observe: true}, func(r *guardedRig) {
			var log strings.Builder
			observed := make(map[string]int)
			r.server.who.Observe(newTestObserver(&log, observed))
			producer, _ := r.token(0, "producer:mail")
			enqueue := func(token, topic string) {
				t.Helper()
				if _, err := r.queue.Enqueue(r.as(token), &ddqv1.EnqueueRequest{Topic: topic}); err != nil {
					t.Errorf("%s: %v", topic, err)
				}
			}
			expect := func(what string, reason string, n int) {
				t.Helper()
				if observed[reason] != n || len(observed) > 1 {
					t.Errorf("%s: observed %v, want %d %s", what, observed, n, reason)
				}
				clear(observed)
			}
			enqueue(producer, "mail")
			enqueue(r.root, "sms")
			expect("what is allowed", "", 0)
			enqueue("", "mail")
			expect("nobody", "NO_CREDENTIALS", 1)
			enqueue("ddq_x", "mail")
			expect("no token", "BAD_CREDENTIALS", 1)
			enqueue(producer, "sms")
			enqueue(producer, "sms")
			expect("another topic", "NOT_ALLOWED", 2)
			lines := strings.Count(log.String(), "call would be refused")
			if lines != 3 || !strings.Contains(log.String(), "token:producer:mail") {
				t.Errorf("%d lines: %s", lines, log.String())
			}

			batch, err := r.queue.EnqueueBatch(r.as(producer), &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "mail"}, {Topic: "sms"}}})
			if err != nil || itemsDenied(batch) {
				t.Errorf("%v, %v", batch, err)
			}
			expect("an item", "NOT_ALLOWED", 1)
			stream, err := r.queue.EnqueueStream(r.as(producer))
			if err != nil {
				t.Fatal(err)
			}
			for _, topic := range []string{"mail", "sms"} {
				if err := stream.Send(&ddqv1.EnqueueStreamRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: topic}}}); err != nil {
					t.Fatal(err)
				}
				if answer, err := stream.Recv(); err != nil || itemsDenied(answer) {
					t.Errorf("%v, %v", answer, err)
				}
			}
			expect("an item of a stream", "NOT_ALLOWED", 1)
			work, err := r.queue.Subscribe(r.as(producer))
			if err != nil {
				t.Fatal(err)
			}
			if err := work.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", Worker: "w", MaxInFlight: 1}}); err != nil {
				t.Fatal(err)
			}
			if _, err := work.Recv(); err != nil {
				t.Errorf("a worker: %v", err)
			}
			expect("a worker", "NOT_ALLOWED", 1)
			if p, err := ddqv1.NewAccessServiceClient(r.conn).WhoAmI(r.as(producer), &ddqv1.WhoAmIRequest{}); err != nil || p.Kind != "token" {
				t.Errorf("%v, %v", p, err)
			}
			time.Sleep(2 * time.Minute)
			enqueue(producer, "sms")
			if again := strings.Count(log.String(), "call would be refused") - lines; again < 1 {
				t.Error("what goes on is not logged again")
			}
		})
	})
}

func newTestObserver(log *strings.Builder, observed map[string]int) *guard.Observer {
	return guard.NewObserver(slog.New(slog.NewTextHandler(log, nil)), func(reason string) { observed[reason]++ })
}

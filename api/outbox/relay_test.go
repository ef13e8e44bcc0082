//go:build linux

package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
)

func numbered(topic string, from, to int) []client.Task {
	var tasks []client.Task
	for n := from; n < to; n++ {
		tasks = append(tasks, client.Task{Topic: topic, Payload: []byte(strconv.Itoa(n))})
	}
	return tasks
}

func TestRowsAreHandedOnInOrder(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		for n := 0; n < 3_000; n += 600 {
			if _, err := b.transact(t.Context(), nil, numbered("t", n, n+600)...); err != nil {
				t.Fatal(err)
			}
		}
		to := newSink()
		r := relay(t, b, to, outbox.RelayConfig{})
		for n := range 3_000 {
			if got := string(to.next(t).Payload); got != strconv.Itoa(n) {
				t.Fatalf("task %d has the payload %s", n, got)
			}
		}
		empty(t, b)
		if c := r.Counts(); c.Refused != 0 || c.Enqueued > 3_000 { // it counts after the database knows
			t.Errorf("%+v", c)
		}
	})
}

// TestLargeRowsTravelInSmallBatches: of payloads of a megabyte two are too many.
func TestLargeRowsTravelInSmallBatches(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		large := client.Task{Topic: "t", Payload: make([]byte, outbox.MaxPayload)}
		if _, err := b.transact(t.Context(), nil, large, large, large); err != nil {
			t.Fatal(err)
		}
		to := newSink()
		relay(t, b, enqueuerFunc(func(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
			if len(tasks) > 1 {
				t.Errorf("%d tasks in one batch", len(tasks))
			}
			return to.EnqueueBatch(ctx, tasks)
		}), outbox.RelayConfig{})
		for range 3 {
			to.next(t)
		}
	})
}

type enqueuerFunc func(context.Context, []client.Task) ([]client.Result, error)

func (f enqueuerFunc) EnqueueBatch(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
	return f(ctx, tasks)
}

// TestACommitWakesTheRelay: it looks once an hour by itself.
func TestACommitWakesTheRelay(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		to := newSink()
		relay(t, b, to, outbox.RelayConfig{Poll: time.Hour})
		for n := range 20 {
			if _, err := b.transact(t.Context(), nil, numbered("t", n, n+1)...); err != nil {
				t.Fatal(err)
			}
			to.next(t)
		}
	})
}

func TestWhatIsRefusedForGoodIsKeptWithTheReason(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		tasks := numbered("t", 0, 5)
		tasks[2].Topic = "small"
		ids, err := b.transact(t.Context(), nil, tasks...)
		if err != nil {
			t.Fatal(err)
		}
		to := newSink()
		taken := make(chan struct{})
		to.judge = func(task client.Task) error {
			select {
			case <-taken:
				return nil
			default:
			}
			if task.Topic != "small" {
				return nil
			}
			return &client.Error{Code: codes.InvalidArgument, Reason: "PAYLOAD_TOO_LARGE", Field: "payload", Message: "too much"}
		}
		r := relay(t, b, to, outbox.RelayConfig{})
		for range 4 {
			to.next(t)
		}
		for empty(t, b).Bad != 1 {
			time.Sleep(time.Millisecond)
		}
		bad, err := outbox.Bad(t.Context(), b, 10)
		if err != nil || len(bad) != 1 {
			t.Fatalf("%+v, %v", bad, err)
		}
		got := bad[0]
		if got.ID != ids[2] || got.Topic != "small" || got.Reason != "PAYLOAD_TOO_LARGE" || got.Message != "too much" || got.Refused.Before(got.Written) {
			t.Errorf("%+v", got)
		}
		for r.Counts() != (outbox.Counts{Enqueued: 4, Refused: 1}) { // it counts after the database knows
			time.Sleep(time.Millisecond)
		}

		close(taken)
		if n, err := outbox.Retry(t.Context(), b, got.Seq, got.Seq+100); err != nil || n != 1 {
			t.Fatalf("%d, %v", n, err)
		}
		if back := to.next(t); back.ID != ids[2] || string(back.Payload) != "2" {
			t.Errorf("%+v", back)
		}
		if s := empty(t, b); s.Bad != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestATopicThatRestsHoldsUpNoOther: there are more of its rows than a batch has.
func TestATopicThatRestsHoldsUpNoOther(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		if _, err := b.transact(t.Context(), nil, append(numbered("paused", 0, 600), numbered("t", 0, 10)...)...); err != nil {
			t.Fatal(err)
		}
		to := newSink()
		var resumed atomic.Bool
		relay(t, b, enqueuerFunc(func(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
			taken := resumed.Load() // of the whole batch: a part of it would come out of order
			to.judge = func(task client.Task) error {
				if taken || task.Topic != "paused" {
					return nil
				}
				return &client.Error{Code: codes.ResourceExhausted, Reason: "ENQUEUE_PAUSED", RetryAfter: 5 * time.Millisecond}
			}
			return to.EnqueueBatch(ctx, tasks)
		}), outbox.RelayConfig{})
		for n := range 10 {
			if got := to.next(t); got.Topic != "t" || string(got.Payload) != strconv.Itoa(n) {
				t.Fatalf("%s of %s", got.Payload, got.Topic)
			}
		}
		resumed.Store(true)
		for n := range 600 {
			if got := to.next(t); got.Topic != "paused" || string(got.Payload) != strconv.Itoa(n) {
				t.Fatalf("%s of %s", got.Payload, got.Topic)
			}
		}
		if s := empty(t, b); s.Bad != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestOneRelayReadsAndTheOtherTakesOver(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		first, second := newSink(), newSink()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- outbox.NewRelay(b, first, outbox.RelayConfig{}).Run(ctx) }()
		if _, err := b.transact(t.Context(), nil, numbered("t", 0, 1)...); err != nil {
			t.Fatal(err)
		}
		first.next(t)
		relay(t, b, second, outbox.RelayConfig{})
		if _, err := b.transact(t.Context(), nil, numbered("t", 1, 20)...); err != nil {
			t.Fatal(err)
		}
		for range 19 {
			first.next(t)
		}
		if s := empty(t, b); s.Reader == "" {
			t.Error("nobody is said to read")
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if _, err := b.transact(t.Context(), nil, numbered("t", 20, 21)...); err != nil {
			t.Fatal(err)
		}
		second.next(t)
	})
}

// TestALateCommitIsNotPassedOver: its row was written before others that are gone.
func TestALateCommitIsNotPassedOver(t *testing.T) {
	pool, b := postgresParts(t)
	to := newSink()
	relay(t, b, to, outbox.RelayConfig{Poll: time.Hour})
	late, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Enqueue(t.Context(), late, client.Task{Topic: "late"}); err != nil {
		t.Fatal(err)
	}
	soon, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Enqueue(t.Context(), soon, client.Task{Topic: "soon"}); err != nil {
		t.Fatal(err)
	}
	if err := soon.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := to.next(t); got.Topic != "soon" {
		t.Errorf("%s came first", got.Topic)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := to.next(t); got.Topic != "late" {
		t.Errorf("%s came late", got.Topic)
	}
}

// TestALostAnswerMakesNoSecondTask: what was stored is asked for again, with the same id and key.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		if _, err := b.transact(t.Context(), nil, numbered("t", 0, 3)...); err != nil {
			t.Fatal(err)
		}
		to := newSink()
		tries := 0
		relay(t, b, enqueuerFunc(func(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
			results, err := to.EnqueueBatch(ctx, tasks)
			if tries++; tries == 1 {
				for i := range results {
					results[i].Err = &client.Error{Code: codes.Unknown, RetryAfter: time.Millisecond}
				}
			}
			return results, err
		}), outbox.RelayConfig{})
		var first []client.Task
		for range 3 {
			first = append(first, to.next(t))
		}
		for _, want := range first {
			if got := to.next(t); got.ID != want.ID || *got.Idempotency != *want.Idempotency {
				t.Errorf("got %s %+v, want %s %+v", got.ID, got.Idempotency, want.ID, want.Idempotency)
			}
		}
		empty(t, b)
	})
}

// TestARelayOutlivesItsDatabaseConnection, which the server ends.
func TestARelayOutlivesItsDatabaseConnection(t *testing.T) {
	pool, b := postgresParts(t)
	to := newSink()
	relay(t, b, to, outbox.RelayConfig{})
	for n := range 3 {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := outbox.Enqueue(t.Context(), tx, client.Task{Topic: "t", Payload: []byte(strconv.Itoa(n))}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for got := ""; got != strconv.Itoa(n); { // what was enqueued as the connection broke comes again
			got = string(to.next(t).Payload)
		}
		if _, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatSQLEnqueuesIsHandedOn(t *testing.T) {
	pool, b := postgresParts(t)
	to := newSink()
	relay(t, b, to, outbox.RelayConfig{})
	for _, c := range []struct{ sql, task string }{
		{`select ddq_outbox.enqueue('mail', 'hello')`, `mail "hello" due 0 key "" retries -1 window 10m0s`},
		{`select ddq_outbox.enqueue('mail', convert_to('ü', 'UTF8'), due => '2040-01-01T00:00:00Z')`, `mail "ü" due 2208988800 key "" retries -1 window 10m0s`},
		{`select ddq_outbox.enqueue('mail', '', options => '{"ordering_key": "k", "max_retries": 3}')`, `mail "" due 0 key "k" retries 3 window 10m0s`},
		{`select ddq_outbox.enqueue('mail', '', key => 'order 7', options => '{"window_ms": 3600000}')`, `mail "" due 0 key "" retries -1 window 1h0m0s`},
	} {
		var id string
		if err := pool.QueryRow(t.Context(), c.sql).Scan(&id); err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		got := to.next(t)
		due, retries := int64(0), -1
		if !got.Due.IsZero() {
			due = got.Due.Unix()
		}
		if got.MaxRetries != nil {
			retries = *got.MaxRetries
		}
		text := fmt.Sprintf("%s %q due %d key %q retries %d window %v", got.Topic, got.Payload, due, got.OrderingKey, retries, got.Idempotency.Window)
		if text != c.task || got.ID != id {
			t.Errorf("got %s with %s, want %s with %s", text, got.ID, c.task, id)
		}
	}
	for _, sql := range []string{
		`select ddq_outbox.enqueue('no topic', '')`,
		`select ddq_outbox.enqueue(null, '')`,
		`select ddq_outbox.enqueue('t', null)`,
		`select ddq_outbox.enqueue('t', '', options => '{"prioritty": 3}')`,
		`select ddq_outbox.enqueue('t', '', key => 'k')`,
		`select ddq_outbox.enqueue('t', '', options => '{"window_ms": 1}')`,
		`select ddq_outbox.enqueue('t', convert_to(repeat('x', 1048577), 'UTF8'))`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: taken", sql)
		}
	}
	// An option of the wrong type is found by the relay.
	if _, err := pool.Exec(t.Context(), `select ddq_outbox.enqueue('t', '', options => '{"priority": "high"}')`); err != nil {
		t.Fatal(err)
	}
	for empty(t, b).Bad != 1 {
		time.Sleep(time.Millisecond)
	}
	if bad, err := outbox.Bad(t.Context(), b, 1); err != nil || bad[0].Reason != "BAD_OPTIONS" || bad[0].Message != "option priority must not be a string" {
		t.Errorf("%+v, %v", bad, err)
	}
}

func TestRunEndsWhileTheServerDoesNotAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		if _, err := b.transact(t.Context(), nil, numbered("t", 0, 3)...); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		called := make(chan struct{})
		r := outbox.NewRelay(b, enqueuerFunc(func(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
			close(called)
			<-ctx.Done()
			results := make([]client.Result, len(tasks))
			for i := range results {
				results[i].Err = &client.Error{Code: codes.Canceled}
			}
			return results, ctx.Err()
		}), outbox.RelayConfig{})
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		<-called
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if s, err := outbox.Inspect(t.Context(), b); err != nil || s.Rows != 3 || s.Reader != "" {
			t.Errorf("%+v, %v", s, errors.Join(err))
		}
	})
}

// TestRightsThatAProducerNeeds are those that docs/outbox.md names.
func TestRightsThatAProducerNeeds(t *testing.T) {
	pool, b := postgresParts(t)
	role := fmt.Sprint("producer", time.Now().UnixNano()) // roles are the server's
	for _, sql := range []string{
		`create role ` + role, `grant usage on schema ddq_outbox to ` + role, `grant insert on ddq_outbox.task to ` + role,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local role `+role); err != nil {
			return err
		}
		if _, err := outbox.Enqueue(t.Context(), tx, client.Task{Topic: "t"}); err != nil {
			return err
		}
		if _, err := outbox.EnqueueMany(t.Context(), tx, numbered("t", 0, 2)); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `select ddq_outbox.enqueue('t', '')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := outbox.Inspect(t.Context(), b); err != nil || s.Rows != 4 {
		t.Errorf("%+v, %v", s, err)
	}
}

//go:build linux

package outbox_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/ddqtest"
)

// sink is an Enqueuer that keeps what it gets. judge may refuse.
type sink struct {
	judge func(client.Task) error
	got   chan client.Task
}

func newSink() *sink { return &sink{got: make(chan client.Task, 100_000)} }

func (s *sink) EnqueueBatch(_ context.Context, tasks []client.Task) ([]client.Result, error) {
	results := make([]client.Result, len(tasks))
	for i, t := range tasks {
		if s.judge != nil {
			results[i].Err = s.judge(t)
		}
		if results[i].Err == nil {
			s.got <- t
		}
	}
	return results, nil
}

// next returns the next task that came in.
func (s *sink) next(t *testing.T) client.Task {
	t.Helper()
	select {
	case task := <-s.got:
		return task
	case <-time.After(time.Minute):
		t.Fatal("no task came in")
		return client.Task{}
	}
}

// relay runs until the test ends.
func relay(t *testing.T, b outbox.Database, to outbox.Enqueuer, cfg outbox.RelayConfig) *outbox.Relay {
	t.Helper()
	r := outbox.NewRelay(b, to, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the relay ended with %v", err)
		}
	})
	return r
}

// empty waits until the outbox has no row.
func empty(t *testing.T, b outbox.Database) outbox.Status {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s, err := outbox.Inspect(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if s.Rows == 0 {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the outbox still has %d rows", s.Rows)
		}
	}
}

var errUndo = errors.New("undo")

func TestWhatCommitsIsHandedOnAndWhatIsUndoneIsNot(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		to := newSink()
		relay(t, b, to, outbox.RelayConfig{})
		if _, err := b.transact(t.Context(), errUndo, client.Task{Topic: "mail", Payload: []byte("undone")}); !errors.Is(err, errUndo) {
			t.Fatal(err)
		}
		ids, err := b.transact(t.Context(), nil, client.Task{Topic: "mail", Payload: []byte("one")})
		if err != nil {
			t.Fatal(err)
		}
		more, err := b.transact(t.Context(), nil, client.Task{Topic: "mail", Payload: []byte("two")}, client.Task{Topic: "mail"})
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range append(ids, more...) {
			got := to.next(t)
			if got.ID != id || string(got.Payload) != []string{"one", "two", ""}[i] {
				t.Errorf("task %d is %s with %q, want %s", i, got.ID, got.Payload, id)
			}
		}
		empty(t, b)
	})
}

func full() client.Task {
	due := time.Date(2040, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	return client.Task{
		Topic: "mail", Payload: []byte("a\x00b\xff"), Due: due, Latest: due.Add(time.Hour), Attributes: map[string]string{"k": "ü"},
		MaxRetries: new(int), VisibilityTimeout: time.Minute, HandlerTimeout: time.Second,
		Backoff:  &client.Backoff{Kind: client.BackoffLinear, Base: time.Second, Max: time.Minute, JitterPercent: 10},
		Priority: 3, FairnessKey: "f", FairnessWeight: 2, RateKey: "r", ConcurrencyKey: "c", OrderingKey: "o", Expires: due.Add(2 * time.Hour),
	}
}

func TestAllOfATaskIsHandedOn(t *testing.T) {
	fields := 0
	for f := range reflect.TypeFor[client.Task]().Fields() {
		if f.IsExported() {
			fields++
		}
	}
	if fields != 21 {
		t.Fatalf("a task has %d fields now: have options keep the new one, and enqueue it in SQL", fields)
	}
	keyed := client.Task{Topic: "t", Slack: time.Second, ExpireAfter: time.Hour,
		Idempotency: &client.Idempotency{Key: "order 7", Window: time.Hour, OnConflict: client.ConflictReject}}
	onEach(t, func(t *testing.T, b base) {
		to := newSink()
		relay(t, b, to, outbox.RelayConfig{Window: 20 * time.Minute})
		for _, want := range []client.Task{full(), keyed} {
			if _, err := b.transact(t.Context(), nil, want); err != nil {
				t.Fatal(err)
			}
			got := to.next(t)
			if len(got.Payload) == 0 {
				got.Payload = nil
			}
			want.ID = got.ID
			if want.Idempotency == nil {
				want.Idempotency = &client.Idempotency{Key: got.Idempotency.Key, Window: 20 * time.Minute}
			}
			for _, at := range []*time.Time{&got.Due, &got.Latest, &got.Expires} {
				*at = at.UTC()
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}
	})
}

func TestADelayCountsFromTheCall(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		before := time.Now()
		if _, err := b.transact(t.Context(), nil, client.Task{Topic: "t", Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		after := time.Now()
		to := newSink()
		relay(t, b, to, outbox.RelayConfig{})
		if due := to.next(t).Due; due.Before(before.Add(time.Hour)) || due.After(after.Add(time.Hour+time.Millisecond)) {
			t.Errorf("due %v, want an hour after %v", due, before)
		}
	})
}

// refusals are tasks that the server refuses, and so does the outbox.
var refusals = map[string]client.Task{
	"no topic":        {},
	"topic":           {Topic: "no topic"},
	"long topic":      {Topic: strings.Repeat("t", 129)},
	"payload":         {Topic: "t", Payload: make([]byte, outbox.MaxPayload+1)},
	"attributes":      {Topic: "t", Attributes: map[string]string{"": "v"}},
	"attribute":       {Topic: "t", Attributes: map[string]string{"k": strings.Repeat("v", 1025)}},
	"delay":           {Topic: "t", Delay: -1},
	"delay and due":   {Topic: "t", Delay: 1, Due: time.Unix(1, 0)},
	"due":             {Topic: "t", Due: time.Unix(-1, 0)},
	"retries":         {Topic: "t", MaxRetries: new(1_001)},
	"visibility":      {Topic: "t", VisibilityTimeout: time.Millisecond},
	"handler":         {Topic: "t", HandlerTimeout: 400 * 24 * time.Hour},
	"backoff":         {Topic: "t", Backoff: &client.Backoff{Base: time.Second}},
	"priority":        {Topic: "t", Priority: 10},
	"weight":          {Topic: "t", FairnessWeight: 2},
	"heavy":           {Topic: "t", FairnessKey: "k", FairnessWeight: 1_001},
	"fairness key":    {Topic: "t", FairnessKey: strings.Repeat("k", 129)},
	"ordering key":    {Topic: "t", OrderingKey: strings.Repeat("k", 129)},
	"idempotency key": {Topic: "t", Idempotency: &client.Idempotency{Window: time.Hour}},
	"control":         {Topic: "t", Idempotency: &client.Idempotency{Key: "\n", Window: time.Hour}},
	"window":          {Topic: "t", Idempotency: &client.Idempotency{Key: "k", Window: 400 * 24 * time.Hour}},
	"expiry":          {Topic: "t", Due: time.Unix(9_999_999, 0), Expires: time.Unix(9_999_998, 0)},
}

// repeats are tasks that the server would take, and could not know again.
var repeats = map[string]client.Task{
	"id":           {Topic: "t", ID: "mine"},
	"while live":   {Topic: "t", Idempotency: &client.Idempotency{Key: "k"}},
	"short window": {Topic: "t", Idempotency: &client.Idempotency{Key: "k", Window: time.Minute}},
	"replace":      {Topic: "t", Idempotency: &client.Idempotency{Key: "k", Window: time.Hour, OnConflict: client.ConflictReplace}},
	"character 0":  {Topic: "t", OrderingKey: "\x00"},
}

func TestWhatTheServerRefusesIsRefusedInTheSameWords(t *testing.T) {
	server := ddqtest.Client(t, ddqtest.Start(t, ddq), client.Config{})
	onEach(t, func(t *testing.T, b base) {
		for name, task := range refusals {
			_, err := b.transact(t.Context(), nil, task)
			_, theirs := server.Enqueue(t.Context(), task)
			ours, want := (*client.Error)(nil), (*client.Error)(nil)
			if !errors.As(err, &ours) || !errors.As(theirs, &want) || !errors.Is(err, client.ErrInvalid) {
				t.Errorf("%s: %v, and the server says %v", name, err, theirs)
				continue
			}
			if ours.Reason != want.Reason || ours.Field != want.Field {
				t.Errorf("%s: %s of %s, and the server says %s of %s", name, ours.Reason, ours.Field, want.Reason, want.Field)
			}
		}
		for name, task := range repeats {
			if _, err := b.transact(t.Context(), nil, task); !errors.Is(err, client.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := b.transact(t.Context(), nil, client.Task{Topic: "t"}, client.Task{Topic: "t", Priority: 10})
		if e := (*client.Error)(nil); !errors.As(err, &e) || e.Field != "tasks[1].priority" {
			t.Errorf("of many: %v", err)
		}
		if s := empty(t, b); s.Bad != 0 {
			t.Errorf("got %+v", s)
		}
	})
}

// TestARefusedTaskLeavesTheTransactionAlone: the caller may go on and commit.
func TestARefusedTaskLeavesTheTransactionAlone(t *testing.T) {
	pool, b := postgresParts(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Enqueue(t.Context(), tx, client.Task{}); !errors.Is(err, client.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err := outbox.Enqueue(t.Context(), tx, client.Task{Topic: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := outbox.Inspect(t.Context(), b); err != nil || s.Rows != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestMissingTablesSayWhatToDo(t *testing.T) {
	for name, open := range map[string]func(testing.TB) base{"postgres": postgresBase, "sqlite": sqliteBase} {
		b := open(t)
		_, err := b.transact(t.Context(), nil, client.Task{Topic: "t"})
		if err == nil || !strings.Contains(err.Error(), "outbox.Install") {
			t.Errorf("%s: %v", name, err)
		}
		if s, err := outbox.Inspect(t.Context(), b); err != nil || s != (outbox.Status{}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

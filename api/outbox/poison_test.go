//go:build linux

package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/outbox"
	"github.com/ddq-io/ddq/api/outbox/internal/ddqtest"
)

// landing enqueues at a server, and keeps which tasks it took.
type landing struct {
	outbox.Enqueuer
	mu    sync.Mutex
	taken map[string]bool // payloads
}

func (l *landing) EnqueueBatch(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
	results, err := l.Enqueuer.EnqueueBatch(ctx, tasks)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range results {
		if r.Err == nil {
			l.taken[string(tasks[i].Payload)] = true
		}
	}
	return results, err
}

// poison are rows that somebody wrote by hand: the value of a column in place of a good one, in SQL, and
// why it is refused. Those of one kind of database have its name before the colon.
var poison = []struct{ name, column, value, reason string }{
	{"postgres: never due", "due", `'infinity'`, "BAD_TIME"},
	{"postgres: always due", "due", `'-infinity'`, "BAD_TIME"},
	{"postgres: due at the end", "due", `'294276-12-31 23:59:59Z'`, "BAD_TIME"},
	{"postgres: due before Christ", "due", `'4713-01-01 00:00:00Z BC'`, "BAD_TIME"},
	{"sqlite: due as text", "due", `'infinity'`, "BAD_TIME"},
	{"sqlite: due as a fraction", "due", `1e300`, "BAD_TIME"},
	{"sqlite: due at the end", "due", `9223372036854775807`, "BAD_TIME"},
	{"sqlite: due as bytes", "due", `x'00ff'`, "BAD_TIME"},
	{"sqlite: half a character", "options", `'{"attributes": {"k": "\ud800"}}'`, "BAD_OPTIONS"},
	{"sqlite: options of no JSON", "options", `x'7b22ff'`, "BAD_OPTIONS"},
	{"sqlite: options and more", "options", `'{} {"priority": 3}'`, "BAD_OPTIONS"},
	{"sqlite: attribute with a zero", "options", `'{"attributes": {"k": "\u0000"}}'`, "BAD_ATTRIBUTES"},
	{"sqlite: topic of no text", "topic", `cast(x'ff' as text)`, "BAD_NAME"},
	{"sqlite: id of no text", "id", `cast(x'ff' as text)`, "BAD_ID"},
	{"sqlite: key of no text", "key", `cast(x'ff' as text)`, "BAD_KEY"},
	{"sqlite: ordering key of no text", "options", `cast(x'7b226f72646572696e675f6b6579223a22ff227d' as text)`, "BAD_OPTIONS"},
	{"large options", "options", `{large}{json}`, "ROW_TOO_LARGE"},
	{"long topic", "topic", `{long}`, "ROW_TOO_LARGE"},
	{"topic with a space", "topic", `'no topic'`, "BAD_NAME"},
	{"no topic", "topic", `''`, "BAD_NAME"},
	{"key that cannot be printed", "key", `'a' || {newline}`, "BAD_KEY"},
	{"array", "options", `'[]'`, "BAD_OPTIONS"},
	{"text", "options", `'"high"'`, "BAD_OPTIONS"},
	{"unknown option", "options", `'{"prioritty": 3}'`, "BAD_OPTIONS"},
	{"option of another type", "options", `'{"priority": "high"}'`, "BAD_OPTIONS"},
	{"huge number", "options", `'{"priority": 1e400}'`, "BAD_OPTIONS"},
	{"fraction", "options", `'{"max_retries": 1.5}'`, "BAD_OPTIONS"},
	{"below all numbers", "options", `'{"handler_timeout_ms": -9223372036854775808}'`, "OUT_OF_RANGE_FIELD"},
	{"beyond all numbers", "options", `'{"visibility_timeout_ms": 9223372036854775807}'`, "OUT_OF_RANGE_FIELD"},
	{"no time", "options", `'{"expire_time": "tomorrow \\ '' \" \n"}'`, "BAD_OPTIONS"},
	{"long attribute", "options", `'{"attributes": {"k": "{1025}"}}'`, "BAD_ATTRIBUTES"},
	{"attribute of no name", "options", `'{"attributes": {"": "v"}}'`, "BAD_ATTRIBUTES"},
}

// TestAPoisonedRowIsPutAsideAlone: of each kind one among ten thousand good ones of the same topic.
func TestAPoisonedRowIsPutAsideAlone(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		kind, table := "postgres", "ddq_outbox.task"
		if strings.HasPrefix(b.dsn, "file:") {
			kind, table = "sqlite", "ddq_outbox_task"
		}
		const good = 10_000
		written := 0
		write := func(upTo int) {
			if upTo > written {
				if _, err := b.transact(t.Context(), nil, numbered("t", written, upTo)...); err != nil {
					t.Fatal(err)
				}
				written = upTo
			}
		}
		var used []int
		for i, p := range poison {
			if of, _, only := strings.Cut(p.name, ": "); !only || of == kind {
				used = append(used, i)
			}
		}
		for n, i := range used {
			write(good / len(used) * n)
			p := poison[i]
			id := fmt.Sprintf("00000000-0000-8ddc-8000-%012d", i)
			values := map[string]string{
				"id": "'" + id + "'", "key": fmt.Sprintf("'key %d'", i), "topic": "'t'", "payload": b.bytes("poison"), "due": "null", "options": `'{}'`,
			}
			if kind == "sqlite" {
				values["at"] = "0"
			}
			values[p.column] = strings.NewReplacer("{large}", b.repeat(`{"attributes": {"k": "`, 7<<20, `"}}`), "{long}", b.repeat("t", 3<<20, ""), "{json}", b.json,
				"{newline}", b.newline, "{1025}", strings.Repeat("v", 1025)).Replace(p.value)
			columns := slices.Sorted(maps.Keys(values))
			var row []string
			for _, c := range columns {
				row = append(row, values[c])
			}
			if err := b.exec(t.Context(), fmt.Sprintf("insert into %s (%s) values (%s)", table, strings.Join(columns, ", "), strings.Join(row, ", "))); err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
		}
		write(good)

		to := &landing{Enqueuer: ddqtest.Client(t, ddqtest.Start(t, ddq), client.Config{}), taken: make(map[string]bool)}
		relay(t, b, to, outbox.RelayConfig{})
		empty(t, b)
		bad, err := outbox.Bad(t.Context(), b, 1_000)
		if err != nil || len(bad) != len(used) {
			t.Fatalf("%d rows are bad, want %d: %v", len(bad), len(used), err)
		}
		for n, got := range bad {
			if p := poison[used[n]]; got.Reason != p.reason {
				t.Errorf("%s: %s (%s), want %s", p.name, got.Reason, got.Message, p.reason)
			}
		}
		to.mu.Lock()
		defer to.mu.Unlock()
		for n := range good {
			if !to.taken[fmt.Sprint(n)] {
				t.Fatalf("good row %d has not become a task", n)
			}
		}
		if len(to.taken) != good {
			t.Errorf("%d tasks, want %d", len(to.taken), good)
		}
	})
}

// TestTextArrivesAsItWasWritten: each character that JSON or a database escapes, in an attribute's value and
// name, by the functions of Go and by SQL.
func TestTextArrivesAsItWasWritten(t *testing.T) {
	texts := []string{`C:\temp\new`, `\x41`, `\\`, `\u0041`, `"`, `'`, `''`, `\'`, `$1`, `%s`, "\u2028\u2029", "\U0001F600", "e\u0301", "\ufeff", "\ufffd", "\ud7ff\ue000", "\U0010FFFF", `</script>`, `&amp;`}
	for c := range rune(256) {
		if c > 0 {
			texts = append(texts, string(c), "a"+string(c)+"b")
		}
	}
	onEach(t, func(t *testing.T, b base) {
		to := newSink()
		relay(t, b, to, outbox.RelayConfig{})
		for _, text := range texts {
			want := client.Task{Topic: "t", Attributes: map[string]string{"value": text, "n" + text: "name"}, OrderingKey: "k" + text}
			if _, err := b.transact(t.Context(), nil, want); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if got := to.next(t); !maps.Equal(got.Attributes, want.Attributes) || got.OrderingKey != want.OrderingKey {
				t.Errorf("got %q with %q, want %q with %q", got.Attributes, got.OrderingKey, want.Attributes, want.OrderingKey)
			}
			if b.inSQL == "" {
				continue
			}
			options, err := json.Marshal(map[string]any{"attributes": want.Attributes})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.exec(t.Context(), b.inSQL, string(options)); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if got := to.next(t); !maps.Equal(got.Attributes, want.Attributes) {
				t.Errorf("in SQL: got %q, want %q", got.Attributes, want.Attributes)
			}
		}
	})
}

// TestABatchThatFailsAsAWholeIsSplit until the row is found: it rests, and the others go on.
func TestABatchThatFailsAsAWholeIsSplit(t *testing.T) {
	onEach(t, func(t *testing.T, b base) {
		tasks := numbered("t", 0, 300)
		tasks[217].Topic = "poison"
		if _, err := b.transact(t.Context(), nil, tasks...); err != nil {
			t.Fatal(err)
		}
		to := newSink()
		relay(t, b, enqueuerFunc(func(ctx context.Context, tasks []client.Task) ([]client.Result, error) {
			if slices.ContainsFunc(tasks, func(t client.Task) bool { return t.Topic == "poison" }) {
				results := make([]client.Result, len(tasks))
				for i := range results {
					results[i].Err = &client.Error{Code: codes.Internal, Message: "the frame cannot be read", RetryAfter: time.Hour}
				}
				return results, nil
			}
			return to.EnqueueBatch(ctx, tasks)
		}), outbox.RelayConfig{})
		for n := range 300 {
			if n == 217 {
				continue
			}
			if got := string(to.next(t).Payload); got != fmt.Sprint(n) {
				t.Fatalf("got %s, want %d", got, n)
			}
		}
		for {
			s, err := outbox.Inspect(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if s.Rows == 1 {
				break
			}
			time.Sleep(time.Millisecond)
		}
	})
}

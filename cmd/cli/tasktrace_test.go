//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

func TestTaskTrace(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "topic", "create", "mail", "--shards", "1", "--max-retries", "1", "--backoff", "exponential,base=1ms,max=1ms", "--watch-retention", "1h")
	ddq(exitOK, "topic", "create", "plain", "--shards", "1", "--done-retention", "1h")

	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a")
	ddq(exitOK, "work", "--topic", "mail", "--count", "2", "--exec", "echo refused >&2; exit 3")
	var v storyView
	got := ddq(exitOK, "task", "trace", "a", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range v.Events {
		if e.Event != "due" {
			names = append(names, e.Event)
		}
	}
	if story := strings.Join(names, " "); story != "enqueued held failed held dead" || v.State != "dead" || v.Attempts != 2 || len(v.Gaps) != 0 {
		t.Errorf("told %q of %+v", story, v)
	}
	if last := v.Events[len(v.Events)-1]; !strings.Contains(last.Detail, "max_retries") || !strings.Contains(last.Detail, "refused") || last.TookMs == nil {
		t.Errorf("its end is %+v", last)
	}
	if got := ddq(exitOK, "task", "trace", "a"); !strings.HasPrefix(got.out, "mail/a  dead after 2 attempts\n") {
		t.Errorf("shown as %s", got.out)
	}
	followed := ddq(exitOK, "task", "trace", "a", "--topic", "mail", "-f")
	if lines := strings.Split(strings.TrimSpace(followed.out), "\n"); len(lines) != len(v.Events) || !strings.Contains(lines[len(lines)-1], "dead") {
		t.Errorf("followed as %s", followed.out)
	}

	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "gone", "--delay", "1h")
	ddq(exitOK, "task", "delete", "gone")
	if got := ddq(exitOK, "task", "trace", "gone", "--topic", "mail"); !strings.HasPrefix(got.out, "mail/gone  gone after 0 attempts\n") || !strings.Contains(got.out, "deleted") {
		t.Errorf("one that is gone: %s", got.out)
	}

	ddq(exitOK, "enqueue", "--topic", "plain", "--id", "b")
	ddq(exitOK, "work", "--topic", "plain", "--count", "1", "--exec", "true")
	if got := ddq(exitOK, "task", "trace", "b"); !strings.Contains(got.out, "acked") || !strings.Contains(got.out, "\nnot known: the topic keeps no log of changes") {
		t.Errorf("without a log: %s", got.out)
	}
	if got := ddq(exitFailed, "task", "trace", "b", "--topic", "plain", "-f"); !strings.Contains(got.err, "NOT_WATCHED") {
		t.Errorf("followed without a log: %s", got.err)
	}
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c, err := client.Dial(n.GRPCAddr(), client.Config{Trace: func(context.Context) (traceparent, tracestate string) { return parent, "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail", ID: "traced", Delay: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"  trace 4bf92f3577b34da6a3ce929d0e0e4736\n":                            nil,
		"  trace https://traces.example.com/4bf92f3577b34da6a3ce929d0e0e4736\n": {"--trace-url", "https://traces.example.com/{trace_id}"},
		`"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`:                         {"-o", "json"},
	} {
		if got := ddq(exitOK, append([]string{"task", "trace", "traced"}, args...)...); !strings.Contains(strings.ReplaceAll(got.out, `": "`, `":"`), want) {
			t.Errorf("%v: %s lacks %s", args, got.out, want)
		}
	}
	ddq(exitUsage, "task", "trace", "traced", "--trace-url", "https://traces.example.com/")

	for _, args := range [][]string{{"nobody"}, {"nobody", "--topic", "plain"}, {"b", "--topic", "none"}} {
		ddq(exitFailed, append([]string{"task", "trace"}, args...)...)
	}
	for _, args := range [][]string{nil, {"a", "b"}, {"a", "-f"}} {
		ddq(exitUsage, append([]string{"task", "trace"}, args...)...)
	}
}

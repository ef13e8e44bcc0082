package cli

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

func TestIdempotencyCommands(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	enqueue := func(code int, args ...string) outcome {
		t.Helper()
		return ddq(code, append([]string{"enqueue", "--topic", "mail", "--delay", "1h", "-o", "json"}, args...)...)
	}
	first := enqueue(exitOK, "--idempotency-key", "order 7", "--payload", "one")
	if !strings.Contains(first.out, `"idempotency_outcome":"enqueued"`) {
		t.Errorf("first: %s", first.out)
	}
	id := strings.Split(strings.SplitAfter(first.out, `"id":"`)[1], `"`)[0]
	for rule, want := range map[string]string{"return": `"idempotency_outcome":"returned"`, "replace": `"idempotency_outcome":"replaced"`} {
		got := enqueue(exitOK, "--idempotency-key", "order 7", "--payload", rule, "--on-conflict", rule)
		if !strings.Contains(got.out, want) || !strings.Contains(got.out, id) {
			t.Errorf("%s: %s", rule, got.out)
		}
	}
	if got := enqueue(exitFailed, "--idempotency-key", "order 7", "--on-conflict", "reject"); !strings.Contains(got.err, "KEY_TAKEN") || !strings.Contains(got.err, id) {
		t.Errorf("reject: %s", got.err)
	}
	if got := ddq(exitOK, "task", "get", id); !strings.Contains(got.out, "order 7") || !strings.Contains(got.out, "replace") {
		t.Errorf("task get: %s", got.out)
	}
	enqueue(exitOK, "--idempotency-key", "daily", "--idempotency-window", "24h")
	enqueue(exitUsage, "--idempotency-key", "k", "--on-conflict", "explode")
	enqueue(exitUsage, "--on-conflict", "reject")
	enqueue(exitUsage, "--idempotency-key", "k", "--id", "a")
}

// TestKeyedTasksOfTheSDK goes the way of a program, over the pipelined stream.
func TestKeyedTasksOfTheSDK(t *testing.T) {
	n := startTestNode(t, nil)
	c, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	task := client.Task{Topic: "mail", Delay: time.Hour, Idempotency: &client.Idempotency{Key: "k", OnConflict: client.ConflictReject}}
	first, err := c.Enqueue(context.Background(), task)
	if err != nil || first.Key != client.KeyEnqueued {
		t.Fatalf("first: %+v, %v", first, err)
	}
	_, err = c.Enqueue(context.Background(), task)
	var taken *client.Error
	if !errors.Is(err, client.ErrExists) || !errors.As(err, &taken) || taken.ID != first.ID {
		t.Errorf("the key is taken: %v", err)
	}
	task.ID = first.ID // the same request again, as after an answer that was lost
	if again, err := c.Enqueue(context.Background(), task); err != nil || again.ID != first.ID || !again.Deduplicated {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestSlackCommand(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	got := ddq(exitOK, "enqueue", "--topic", "mail", "--at", "2030-01-01T00:00:00Z", "--slack", "60s", "--count", "100", "-o", "json")
	minutes := make(map[string]int)
	for line := range strings.Lines(got.out) {
		due := strings.Split(strings.SplitAfter(line, `"execute_time":"`)[1], `"`)[0]
		minutes[due[:len("2030-01-01T00:00:0")]]++
	}
	for tens := range 6 { // tens of seconds of the first minute of the year
		if n := minutes["2030-01-01T00:00:"+string(rune('0'+tens))]; n < 12 || n > 21 {
			t.Errorf("%d of 100 tasks in ten of sixty seconds: %v", n, minutes)
		}
	}
}

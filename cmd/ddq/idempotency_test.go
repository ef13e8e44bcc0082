package main

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
	c, err := client.Dial(n.grpcAddr, client.Config{})
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

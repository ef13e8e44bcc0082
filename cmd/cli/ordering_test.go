package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

func TestOrderingCommands(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	enqueue := func(args ...string) string {
		t.Helper()
		got := ddq(exitOK, append([]string{"enqueue", "--topic", "mail", "--ordering-key", "account 7", "-o", "json"}, args...)...)
		return strings.Split(strings.SplitAfter(got.out, `"id":"`)[1], `"`)[0]
	}
	first, second := enqueue("--payload", "one"), enqueue("--payload", "two")
	if got := ddq(exitOK, "task", "get", second); !strings.Contains(got.out, "account 7") || !strings.Contains(got.out, "order") {
		t.Errorf("task get: %s", got.out)
	}
	if got := ddq(exitOK, "task", "list", "--topic", "mail", "-o", "json"); !strings.Contains(got.out, `"ordering_key":"account 7","waiting_for":"order"`) {
		t.Errorf("task list: %s", got.out)
	}
	if first >= second {
		t.Errorf("ids %s and %s do not rise", first, second)
	}
	ddq(exitOK, "work", "--topic", "mail", "--count", "2", "--concurrency", "2", "--exec", "true")
	if got := ddq(exitFailed, "enqueue", "--topic", "mail", "--ordering-key", "k", "--id", "mine"); !strings.Contains(got.err, "ordering_key") {
		t.Errorf("an id of its own: %s", got.err)
	}
}

// TestOrderedTasksOfTheSDK goes the way of a program: many tasks of a few keys, and a
// worker with room for all of them, some of which fail at first.
func TestOrderedTasksOfTheSDK(t *testing.T) {
	n := startTestNode(t, nil)
	c, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const keys, each = 4, 10
	due := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for i := range keys * each {
		task := client.Task{
			Topic: "mail", OrderingKey: fmt.Sprint("k", i%keys), Due: due.Add(time.Duration(i) * time.Millisecond), Payload: fmt.Append(nil, i),
			MaxRetries: new(1), Backoff: &client.Backoff{Kind: client.BackoffFixed, Base: time.Millisecond},
		}
		if _, err := c.Enqueue(context.Background(), task); err != nil {
			t.Fatal(err)
		}
	}
	books := &orderBooks{t: t, done: make(map[string][]string), running: make(map[string]int), left: keys * each}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	w := worker.New(c.Conn(), worker.Config{Topic: "mail", Concurrency: 50}, worker.HandlerFunc(func(_ context.Context, task worker.Task) error {
		defer books.leave(task.OrderingKey)
		if books.enter(task.OrderingKey); task.Attempt == 1 && task.Payload[len(task.Payload)-1] == '3' {
			return fmt.Errorf("once more")
		}
		if books.finish(task) {
			stop()
		}
		return nil
	}))
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	for k := range keys {
		of := books.done[fmt.Sprint("k", k)]
		if len(of) != each {
			t.Fatalf("%d tasks of key %d are done, want %d", len(of), k, each)
		}
		for i, payload := range of {
			if want := fmt.Sprint(i*keys + k); payload != want {
				t.Errorf("key %d: task %d is %s, want %s", k, i, payload, want)
			}
		}
	}
}

// orderBooks are what handlers saw of tasks of ordering keys.
type orderBooks struct {
	t       *testing.T
	mu      sync.Mutex
	running map[string]int
	done    map[string][]string
	left    int
}

func (b *orderBooks) enter(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[key]++; b.running[key] > 1 {
		b.t.Errorf("two tasks of %s at a time", key)
	}
}

func (b *orderBooks) leave(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[key]--
}

// finish reports whether that was the last one.
func (b *orderBooks) finish(task worker.Task) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done[task.OrderingKey] = append(b.done[task.OrderingKey], string(task.Payload))
	b.left--
	return b.left == 0
}

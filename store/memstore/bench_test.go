package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// BenchmarkLife takes batches of 128 tasks from Add over Window and Hold to Ack,
// in front of a hundred thousand tasks that are due later.
func BenchmarkLife(b *testing.B) {
	s, shard := memstore.New(), store.Shard{Topic: "bench"}
	session := store.Session{Node: "n", Start: store.NewToken(), TTL: time.Hour, Begin: true}
	if _, err := s.RenewSession(b.Context(), session); err != nil {
		b.Fatal(err)
	}
	_, fence, err := s.Claim(b.Context(), shard, session)
	if err != nil {
		b.Fatal(err)
	}
	now := store.Millis(time.Now().UnixMilli())
	if _, _, err := s.Add(b.Context(), shard, batch("backlog", 100_000, now.Add(time.Hour))); err != nil {
		b.Fatal(err)
	}
	tasks := batch("task", 128, now)
	for b.Loop() {
		live(b, s, shard, fence, tasks)
	}
	b.ReportMetric(float64(b.N*len(tasks))/b.Elapsed().Seconds(), "tasks/s")
}

func batch(prefix string, n int, due store.Millis) []*store.Task {
	tasks := make([]*store.Task, n)
	for i := range tasks {
		tasks[i] = &store.Task{ID: fmt.Sprintf("%s-%06d", prefix, i), Payload: make([]byte, 200), Due: due}
	}
	return tasks
}

func live(b *testing.B, s store.Store, shard store.Shard, fence store.Fence, tasks []*store.Task) {
	if _, _, err := s.Add(b.Context(), shard, tasks); err != nil {
		b.Fatal(err)
	}
	_, due, err := s.Window(b.Context(), shard, store.WindowQuery{To: tasks[0].Due, Limit: len(tasks)})
	if err != nil || len(due) != len(tasks) {
		b.Fatalf("window: %d tasks, %v", len(due), err)
	}
	holds, acks := make([]store.Hold, len(due)), make([]store.Ack, len(due))
	for i, e := range due {
		token := store.NewToken()
		holds[i] = store.Hold{ID: e.ID, Token: token, Visibility: time.Minute}
		acks[i] = store.Ack{ID: e.ID, Token: token}
	}
	if _, _, err := s.Hold(b.Context(), shard, fence, holds); err != nil {
		b.Fatal(err)
	}
	_, acked, err := s.Ack(b.Context(), shard, acks, 0)
	if err != nil || acked[0] != store.OK {
		b.Fatalf("ack: %v, %v", acked, err)
	}
}

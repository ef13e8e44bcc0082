package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// TestIDsThatComeAgainAreFound adds ids of version 7 and others in random order, in
// one call and in several, with the store closed and opened in between: each is new
// exactly once.
func TestIDsThatComeAgainAreFound(t *testing.T) {
	fs := vfs.NewMem()
	random := rand.New(rand.NewPCG(1, 2))
	had := map[string]bool{}
	for range 20 {
		s := openMem(t, fs)
		for range 20 {
			tasks := make([]*store.Task, 1+random.IntN(40))
			for i := range tasks {
				tasks[i] = &store.Task{ID: someID(random), Due: 1 << 50, Fingerprint: 1}
			}
			_, results, err := s.Add(t.Context(), store.Shard{Topic: "t"}, tasks)
			if err != nil {
				t.Fatal(err)
			}
			for i, task := range tasks {
				want := store.Added
				if had[task.ID] {
					want = store.Duplicate
				}
				if results[i].Status != want {
					t.Fatalf("adding %s answered %v, want %v", task.ID, results[i].Status, want)
				}
				had[task.ID] = true
			}
		}
		stats, err := s.Stats(t.Context(), []store.Shard{{Topic: "t"}})
		if err != nil || stats[0].Pending != int64(len(had)) {
			t.Fatalf("%d tasks are pending of %d: %v", stats[0].Pending, len(had), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// someID makes ids that often meet, and mostly rise.
func someID(random *rand.Rand) string {
	n := random.IntN(3000)
	switch random.IntN(10) {
	case 0:
		return fmt.Sprintf("text-%d", n)
	case 1:
		return fmt.Sprintf("%08x-0000-4000-8000-000000000000", n)
	}
	return fmt.Sprintf("019f0000-%04x-7000-8000-0000000000%02x", n/10, n%10)
}

func TestShardOfBeforeNewestWasKeptLooks(t *testing.T) {
	m := meta{batches: 1, seq: 2, pending: 3, done: 4, dead: 5, newest: uuid7{6, 7}, sealed: true}
	whole := m.append(nil)
	if got, err := decodeMeta(whole); err != nil || got != m {
		t.Errorf("decoded %+v: %v", got, err)
	}
	m.newest, m.sealed = unknown, false
	if got, err := decodeMeta(whole[:40]); err != nil || got != m {
		t.Errorf("decoded %+v: %v", got, err)
	}
	if _, err := decodeMeta(whole[:44]); err == nil {
		t.Error("half a newest id was taken")
	}
}

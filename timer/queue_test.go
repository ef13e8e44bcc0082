package timer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/timer"
)

// model is a Queue in plain maps.
type model struct {
	due   map[string]int64
	slots map[int64][]string
}

func (m *model) insert(id string, due int64) bool {
	old, known := m.due[id]
	if known && old == due {
		return false
	}
	m.remove(id)
	m.due[id] = due
	m.slots[due] = append(m.slots[due], id)
	return !known
}

func (m *model) remove(id string) bool {
	due, known := m.due[id]
	if !known {
		return false
	}
	delete(m.due, id)
	m.slots[due] = slices.DeleteFunc(m.slots[due], func(other string) bool { return other == id })
	return true
}

func (m *model) take(ms int64) []string {
	ids := m.slots[ms]
	delete(m.slots, ms)
	for _, id := range ids {
		delete(m.due, id)
	}
	return ids
}

// anyID draws from few ids, so that they meet again: UUIDs, what nearly is one,
// and names.
func anyID() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := rapid.IntRange(0, 2000).Draw(t, "n")
		id := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, n/5)).String()
		switch n % 5 {
		case 0:
			return strings.ToUpper(id)
		case 1:
			return strings.Replace(id, "-", "_", 1)
		case 2:
			return fmt.Sprintf("task-%d", n)
		}
		return id
	})
}

func TestQueueDoesAsItsModel(t *testing.T) {
	w := timer.New(timer.Config{})
	defer w.Close()
	base := time.Now().UnixMilli()
	rapid.Check(t, func(t *rapid.T) {
		q := w.NewQueue(func(int64) {})
		defer q.Close()
		m := &model{due: map[string]int64{}, slots: map[int64][]string{}}
		anyDue := rapid.Map(rapid.Int64Range(0, 9), func(n int64) int64 { return base + (n-5)*20_000 })
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "times") {
					id, due := anyID().Draw(t, "id"), anyDue.Draw(t, "due")
					if got, want := q.Insert(id, due), m.insert(id, due); got != want {
						t.Fatalf("insert %q: new %v, want %v", id, got, want)
					}
				}
			},
			"insert all": func(t *rapid.T) {
				batch, want := make([]timer.Entry, rapid.IntRange(0, 200).Draw(t, "entries")), 0
				for i := range batch {
					batch[i] = timer.Entry{ID: anyID().Draw(t, "id"), Due: anyDue.Draw(t, "due")}
					if m.insert(batch[i].ID, batch[i].Due) {
						want++
					}
				}
				if got := q.InsertAll(batch); got != want {
					t.Fatalf("insert %v: %d new, want %d", batch, got, want)
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "times") {
					id := anyID().Draw(t, "id")
					if got, want := q.Remove(id), m.remove(id); got != want {
						t.Fatalf("remove %q: %v, want %v", id, got, want)
					}
				}
			},
			"take": func(t *rapid.T) {
				ms := anyDue.Draw(t, "ms")
				var got []string
				for _, e := range q.Take(ms) {
					if e.Due != ms {
						t.Fatalf("take %d: %q is due %d", ms, e.ID, e.Due)
					}
					got = append(got, e.ID)
				}
				if want := m.take(ms); !slices.Equal(got, want) {
					t.Fatalf("take %d: got %v, want %v", ms, got, want)
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != len(m.due) {
					t.Fatalf("len %d, want %d", q.Len(), len(m.due))
				}
				id := anyID().Draw(t, "looked up")
				got, ok := q.Due(id)
				want, known := m.due[id]
				if ok != known || got != want {
					t.Fatalf("due of %q: %d, %v, want %d, %v", id, got, ok, want, known)
				}
				from, period := anyDue.Draw(t, "from")-7, rapid.Int64Range(1, 50_000).Draw(t, "period")
				counts, wants := make([]int64, 3), make([]int64, 3)
				q.Count(from, period, counts)
				for _, due := range m.due {
					if at := (due - from) / period; due >= from && at < 3 {
						wants[at]++
					}
				}
				if !slices.Equal(counts, wants) {
					t.Fatalf("from %d on, by %d: %v, want %v", from, period, counts, wants)
				}
			},
		})
	})
}

// Large enough for every segment of the index to grow and every chunk to be
// used again.
func TestLargeQueueLosesNothing(t *testing.T) {
	const tasks, slots = 200_000, 1000
	w := timer.New(timer.Config{})
	defer w.Close()
	q := w.NewQueue(func(int64) {})
	base := time.Now().Add(time.Hour).UnixMilli()
	ids := make([]string, tasks)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	for round := range 2 {
		for i, id := range ids {
			if !q.Insert(id, base+int64(i%slots)) {
				t.Fatalf("round %d: %q is known, want new", round, id)
			}
		}
		for i, id := range ids[:tasks/2] {
			if q.Insert(id, base+int64((i+1)%slots)) {
				t.Fatalf("round %d: moved %q is new, want known", round, id)
			}
		}
		removed := 0
		for _, id := range ids[tasks/4 : tasks/2] {
			if q.Remove(id) {
				removed++
			}
		}
		left := map[string]bool{}
		for ms := range int64(slots) {
			for _, e := range q.Take(base + ms) {
				left[e.ID] = true
			}
		}
		if removed != tasks/4 || len(left) != tasks*3/4 || q.Len() != 0 {
			t.Fatalf("round %d: removed %d, took %d, %d left", round, removed, len(left), q.Len())
		}
		for _, id := range append(ids[:tasks/4:tasks/4], ids[tasks/2:]...) {
			if !left[id] {
				t.Fatalf("round %d: %q was not taken", round, id)
			}
		}
	}
}

func TestClosedQueueIsEmpty(t *testing.T) {
	w := timer.New(timer.Config{})
	defer w.Close()
	q := w.NewQueue(func(int64) {})
	due := time.Now().Add(time.Hour).UnixMilli()
	q.Insert("a", due)
	q.Close()
	q.Close()
	if q.Insert("b", due) || q.Remove("a") || q.Len() != 0 || len(q.Take(due)) != 0 {
		t.Error("a closed queue holds something")
	}
	if _, ok := q.Due("a"); ok {
		t.Error("a closed queue knows a due time")
	}
}

package pebblestore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// progress is how far the life of a task was acknowledged. It only rises.
type progress int

const (
	added progress = iota + 1
	held
	acked
)

// mark is what was acknowledged of one task.
type mark struct {
	shard store.Shard
	id    string
	progress
	fate  progress    // how far it goes, if nothing comes between
	token store.Token // held
}

// ledger has what was acknowledged, by id. It must be there after any crash.
type ledger struct {
	mu    sync.Mutex
	marks map[string]mark
}

func newLedger() *ledger { return &ledger{marks: make(map[string]mark)} }

func (l *ledger) note(marks ...mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range marks {
		l.marks[m.id] = m
	}
}

// copy returns what is acknowledged by now.
func (l *ledger) copy() map[string]mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	marks := make(map[string]mark, len(l.marks))
	for id, m := range l.marks {
		marks[id] = m
	}
	return marks
}

// churn takes tasks of a shard through their life until a call fails, and notes
// what was acknowledged. Every third round goes as far as being added, or held.
func churn(s *Store, shard store.Shard, fence store.Fence, batch int, note func(...mark)) error {
	ctx := context.Background()
	for round := 0; ; round++ {
		fate := progress(1 + round%3)
		var marks []mark
		tasks := make([]*store.Task, batch)
		holds := make([]store.Hold, batch)
		for i := range tasks {
			id := fmt.Sprintf("%s-%d-%d", shard, round, i)
			tasks[i] = &store.Task{ID: id, Payload: make([]byte, 100), Due: 1, MaxRetries: -1, Fingerprint: 7}
			if i%2 == 1 {
				tasks[i].Indexed, tasks[i].Attributes = byTenant, []store.Attribute{{Key: "tenant", Value: "acme"}}
			}
			if tells(id) {
				tasks[i].Tells = "srun"
			}
			holds[i] = store.Hold{ID: id, Token: store.NewToken(), Visibility: time.Hour, Worker: "w"}
			marks = append(marks, mark{shard: shard, id: id, progress: added, fate: fate})
		}
		if _, _, err := s.Add(ctx, shard, tasks); err != nil {
			return err
		}
		note(marks...)
		if fate == added {
			continue
		}
		if _, results, err := s.Hold(ctx, shard, fence, holds); err != nil {
			return err
		} else if results[0].Status != store.OK {
			return fmt.Errorf("hold answered %d", results[0].Status)
		}
		for i := range marks {
			marks[i].progress, marks[i].token = held, holds[i].Token
		}
		note(marks...)
		if fate == held {
			continue
		}
		if err := ackAll(s, shard, holds); err != nil {
			return err
		}
		for i := range marks {
			marks[i].progress = acked
		}
		note(marks...)
	}
}

// tells reports whether the task of churn of that id tells a cell: every third.
func tells(id string) bool { return len(id) > 0 && (id[len(id)-1]-'0')%3 == 2 }

func ackAll(s *Store, shard store.Shard, holds []store.Hold) error {
	acks := make([]store.Ack, len(holds))
	for i, h := range holds {
		acks[i] = store.Ack{ID: h.ID, Token: h.Token}
	}
	_, results, err := s.Ack(context.Background(), shard, acks, 0)
	if err == nil && results[0] != store.OK {
		return fmt.Errorf("ack answered %d", results[0])
	}
	return err
}

// verify fails the test when the store lacks what was acknowledged, or has a task
// halfway between two states.
func verify(t testing.TB, s *Store, shards []store.Shard, marks map[string]mark) {
	t.Helper()
	told := toldOf(t, s, shards)
	for _, m := range marks {
		_, got, err := s.Get(context.Background(), m.shard, []string{m.id})
		if err != nil {
			t.Fatal(err)
		}
		if !m.kept(got[0]) {
			t.Fatalf("task %s was acknowledged as %d, and is %v under token %x, which was %x", m.id, m.progress, got[0].State, got[0].Token, m.token)
		}
		if ended := got[0].State == store.StateUnknown; told[m.id] != (ended && tells(m.id)) {
			t.Fatalf("task %s is %v, and that its end was told is %v", m.id, got[0].State, told[m.id])
		}
	}
	for _, shard := range shards {
		verifyWhole(t, s, shard)
	}
}

// toldOf returns the ids of the tasks whose end lies in an in-box, each once.
func toldOf(t testing.TB, s *Store, shards []store.Shard) map[string]bool {
	t.Helper()
	told := make(map[string]bool)
	for _, shard := range shards {
		for after := int64(0); ; {
			page, err := s.Parcels(context.Background(), shard, store.InBox, after, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page {
				if told[p.Ended.ID] {
					t.Fatalf("the end of %s was told twice", p.Ended.ID)
				}
				told[p.Ended.ID], after = true, p.Number
			}
			if len(page) == 0 {
				break
			}
		}
	}
	return told
}

// kept reports whether a task is where it was acknowledged to be, or further: what
// was under way may have been done.
func (m mark) kept(got store.Snapshot) bool {
	var reached progress
	switch got.State {
	case store.StateReady:
		reached = added
	case store.StateRunning:
		reached = held
		if m.progress == held && m.token != got.Token {
			return false
		}
	case store.StateUnknown:
		reached = acked
	default:
		return false
	}
	return m.progress <= reached && reached <= m.fate
}

// verifyWhole fails the test when a sweep finds something to repair, or the numbers
// of the shard are not what its lists have.
func verifyWhole(t testing.TB, s *Store, shard store.Shard) {
	t.Helper()
	if n := sweepAll(t, s, shard, claim(t, s, shard)); n != 0 {
		t.Fatalf("sweep of %v repaired %d", shard, n)
	}
	stats, err := s.Stats(context.Background(), []store.Shard{shard})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[store.Kind]int64{
		store.KindPending: stats[0].Pending, store.KindRunning: stats[0].Running,
		store.KindDone: stats[0].Done, store.KindDead: stats[0].Dead,
	} {
		if got := len(listAll(t, s, shard, kind)); int64(got) != want {
			t.Fatalf("list %d of %v has %d tasks, and its stats say %d", kind, shard, got, want)
		}
	}
}

func sweepAll(t testing.TB, s *Store, shard store.Shard, fence store.Fence) (repaired int) {
	t.Helper()
	for cursor := ""; ; {
		n, next, err := s.Sweep(context.Background(), shard, fence, cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		repaired += n
		if cursor = next; next == "" {
			return repaired
		}
	}
}

func listAll(t testing.TB, s *Store, shard store.Shard, kind store.Kind) (all []store.Snapshot) {
	t.Helper()
	for cursor := ""; ; {
		page, next, err := s.List(context.Background(), shard, kind, cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page...)
		if cursor = next; next == "" {
			return all
		}
	}
}

package redisstore_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

const tellsKey = "ddq:{mail:0}:tells"

// begun holds a task, which is added unless it is there, and gives it a journal.
func begun(t *testing.T, s shardOf, id string) store.Token {
	t.Helper()
	if _, _, err := s.Add(t.Context(), s.shard, []*store.Task{{ID: id, Due: 1, MaxRetries: -1}}); err != nil {
		t.Fatal(err)
	}
	h := store.Hold{ID: id, Token: store.NewToken(), Visibility: time.Hour, Worker: "w"}
	if _, results, err := s.Hold(t.Context(), s.shard, s.fence, []store.Hold{h}); err != nil || results[0].Status != store.OK {
		t.Fatalf("hold of %s: %+v, %v", id, results, err)
	}
	for _, name := range []string{"one", "two"} {
		c := store.Checkpoint{ID: id, Token: h.Token, JournalEntry: store.JournalEntry{Name: name, Value: []byte("of " + name)}}
		if _, got, err := s.Checkpoint(t.Context(), s.shard, []store.Checkpoint{c}); err != nil || got[0] != store.OK {
			t.Fatalf("checkpoint of %s: %v, %v", id, got, err)
		}
	}
	return h.Token
}

// TestNothingIsLeftOfAJournal looks into the server after each way in which a task can go.
func TestNothingIsLeftOfAJournal(t *testing.T) {
	server := redistest.Start(t)
	nacked := func(reason store.Reason) func(*testing.T, shardOf) error {
		return func(t *testing.T, s shardOf) error {
			_, _, err := s.Nack(t.Context(), s.shard, []store.Nack{{ID: "a", Token: begun(t, s, "a"), Reason: reason, Error: "no"}})
			return err
		}
	}
	acked := func(retention time.Duration) func(*testing.T, shardOf) error {
		return func(t *testing.T, s shardOf) error {
			_, _, err := s.Ack(t.Context(), s.shard, []store.Ack{{ID: "a", Token: begun(t, s, "a")}}, retention)
			return err
		}
	}
	dead := nacked(store.ReasonPermanent)
	for name, do := range map[string][]func(*testing.T, shardOf) error{
		"acked":           {acked(0)},
		"acked, and kept": {acked(time.Hour)},
		"removed": {nacked(store.ReasonNone), func(t *testing.T, s shardOf) error {
			_, _, err := s.Remove(t.Context(), s.shard, []string{"a"})
			return err
		}},
		"removed when dead": {dead, func(t *testing.T, s shardOf) error {
			_, _, err := s.RemoveDead(t.Context(), s.shard, []string{"a"})
			return err
		}},
		"trimmed when dead": {dead, func(t *testing.T, s shardOf) error {
			_, err := s.TrimDead(t.Context(), s.shard, store.Entry{Due: store.MaxDue, ID: "z"}, 10)
			return err
		}},
		"replaced when dead": {dead, func(t *testing.T, s shardOf) error {
			_, _, err := s.Add(t.Context(), s.shard, []*store.Task{{ID: "a", Due: 1, MaxRetries: -1, Fingerprint: 1}})
			return err
		}},
		"gone, and swept": {nacked(store.ReasonNone), func(t *testing.T, s shardOf) error {
			for _, key := range []string{"data", "notes", "history"} {
				server.Do(t, "DEL", "ddq:{mail:0}:"+key)
			}
			server.Do(t, "ZREM", "ddq:{mail:0}:tasks", server.Do(t, "ZRANGE", "ddq:{mail:0}:tasks", 0, 0).([]any)[0])
			sweepWhole(t, s)
			return nil
		}},
		"dropped": {dead, func(t *testing.T, s shardOf) error { return s.DropShard(t.Context(), s.shard) }},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do(t, "FLUSHALL")
			s := claim(t, open(t, server.URL()))
			for _, step := range do {
				if err := step(t, s); err != nil {
					t.Fatal(err)
				}
			}
			if left := server.Do(t, "HKEYS", tellsKey).([]any); len(left) > 0 {
				t.Errorf("left are %.300q", left)
			}
		})
	}
}

// TestAWholeJournalSurvivesASweep: a sweep takes what belongs to a journal for no task.
func TestAWholeJournalSurvivesASweep(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	begun(t, s, "held")
	if _, _, err := s.Nack(t.Context(), s.shard, []store.Nack{{ID: "dead", Token: begun(t, s, "dead"), Reason: store.ReasonPermanent}}); err != nil {
		t.Fatal(err)
	}
	if repaired := sweepWhole(t, s); repaired != 0 {
		t.Errorf("%d repaired", repaired)
	}
	if n := server.Do(t, "HLEN", tellsKey); n != int64(8) { // the mark, the names and two values each
		t.Errorf("%v fields are left, want 8", n)
	}
}

// TestTasksWithoutAJournalPayNothing: their shard does not get the field and the key by which scripts
// know that there is something to look up, also when an attempt fails.
func TestTasksWithoutAJournalPayNothing(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	tasks := newTasks(1, 10)
	if _, _, err := s.Add(t.Context(), s.shard, tasks); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		holds, acks := holdsFor(tasks)
		if _, results, err := s.Hold(t.Context(), s.shard, s.fence, holds); err != nil || results[0].Status != store.OK || results[0].Task.Journal != nil {
			t.Fatalf("held %+v, %v", results, err)
		}
		nack := store.Nack{ID: holds[0].ID, Token: holds[0].Token, Error: "no", Outcome: store.OutcomeFailed}
		if _, _, err := s.Nack(t.Context(), s.shard, []store.Nack{nack}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Ack(t.Context(), s.shard, acks, 0); err != nil {
			t.Fatal(err)
		}
	}
	if in := server.Do(t, "HEXISTS", "ddq:{mail:0}:owner", "in"); in != int64(0) {
		t.Error("the owner record has the field in")
	}
	if tells := server.Do(t, "EXISTS", tellsKey); tells != int64(0) {
		t.Error("there is a hash of what tasks tell")
	}
}

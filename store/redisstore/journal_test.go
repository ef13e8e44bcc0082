package redisstore_test

import (
	"fmt"
	"strconv"
	"strings"
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
			_, _, err := s.Remove(t.Context(), s.shard, store.Removals("a"))
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

// TestLongJournalsAreForgottenInParts: a thousand names of a thousand tasks took a script seconds.
func TestLongJournalsAreForgottenInParts(t *testing.T) {
	server := redistest.Start(t)
	const tasks, names = 40, 500 // of 4,500 bytes each
	dead := func(t *testing.T, s shardOf, held []store.Nack) []string {
		for i := range held {
			held[i].Reason = store.ReasonPermanent
		}
		if _, got, err := s.Nack(t.Context(), s.shard, held); err != nil || got[0].Status != store.OK {
			t.Fatalf("nack: %+v, %v", got, err)
		}
		var ids []string
		for _, h := range held {
			ids = append(ids, h.ID)
		}
		return ids
	}
	for name, forget := range map[string]func(t *testing.T, s shardOf, held []store.Nack) func() (int, error){
		"trim": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			dead(t, s, held)
			return func() (int, error) {
				return s.TrimDead(t.Context(), s.shard, store.Entry{Due: store.MaxDue, ID: "z"}, tasks)
			}
		},
		"remove dead": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			ids := dead(t, s, held)
			return func() (int, error) {
				_, got, err := s.RemoveDead(t.Context(), s.shard, ids)
				return okOf(got), err
			}
		},
		"remove": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			if _, got, err := s.Nack(t.Context(), s.shard, held); err != nil || got[0].Status != store.OK {
				t.Fatalf("nack: %+v, %v", got, err)
			}
			return func() (n int, err error) {
				var all []store.Removal
				for _, h := range held {
					all = append(all, store.Removal{ID: h.ID})
				}
				_, got, err := s.Remove(t.Context(), s.shard, all)
				for _, r := range got {
					n += okOf([]store.Status{r.Status})
				}
				return n, err
			}
		},
		"ack": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			return func() (int, error) {
				var acks []store.Ack
				for _, h := range held {
					acks = append(acks, store.Ack{ID: h.ID, Token: h.Token})
				}
				_, got, err := s.Ack(t.Context(), s.shard, acks, 0)
				return okOf(got), err
			}
		},
		"add": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			ids := dead(t, s, held)
			return func() (int, error) { return added(s.Add(t.Context(), s.shard, tasksOf(ids))) }
		},
		"add keyed": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			all := tasksOf(dead(t, s, held))
			for i, task := range all {
				task.Key = &store.Key{Text: fmt.Sprint("key", i)}
			}
			return func() (int, error) { return added(s.AddKeyed(t.Context(), s.shard, all)) }
		},
		"hold new": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			all, holds := tasksOf(dead(t, s, held)), make([]store.Hold, len(held))
			for i := range holds {
				holds[i] = store.Hold{ID: all[i].ID, Token: store.NewToken(), Visibility: time.Hour, Worker: "w"}
			}
			return func() (int, error) { return added(s.HoldNew(t.Context(), s.shard, s.fence, all, holds)) }
		},
		"commits that ack": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			return committed(t, s, len(held), func(i int) store.Commit {
				return store.Commit{Acks: []store.Ack{{ID: held[i].ID, Token: held[i].Token}}}
			})
		},
		"commits that remove": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			ids := dead(t, s, held)
			return committed(t, s, len(ids), func(i int) store.Commit { return store.Commit{Removes: []store.Remove{{ID: ids[i], Dead: true}}} })
		},
		"commits that add": func(t *testing.T, s shardOf, held []store.Nack) func() (int, error) {
			all := tasksOf(dead(t, s, held))
			return committed(t, s, len(all), func(i int) store.Commit { return store.Commit{Adds: all[i : i+1]} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do(t, "FLUSHALL")
			s := claim(t, open(t, server.URL()))
			var held []store.Nack
			for i := range tasks {
				id := fmt.Sprint("t", i)
				held = append(held, store.Nack{ID: id, Token: begun(t, s, id), Delay: time.Hour})
			}
			for n := range names {
				var all []store.Checkpoint
				for _, h := range held {
					all = append(all, store.Checkpoint{ID: h.ID, Token: h.Token, JournalEntry: store.JournalEntry{Name: fmt.Sprintf("name-%03d", n), Value: []byte("v")}})
				}
				if _, got, err := s.Checkpoint(t.Context(), s.shard, all); err != nil || got[0] != store.OK {
					t.Fatalf("checkpoint: %v, %v", got, err)
				}
			}
			do := forget(t, s, held)
			was, before := seqOf(t, s), scripts(t, server)
			n, err := do()
			if err != nil || n != tasks {
				t.Errorf("%d are forgotten, want %d (%v)", n, tasks, err)
			}
			if got := scripts(t, server) - before; got < 3 || got > 5 {
				t.Errorf("%g scripts forgot %d names", got, tasks*names)
			}
			if left := server.Do(t, "HLEN", tellsKey); left != int64(0) {
				t.Errorf("%v fields are left", left)
			}
			if seq := seqOf(t, s); seq > was+1 {
				t.Errorf("a call raised seq by %d", seq-was)
			}
		})
	}
}

func tasksOf(ids []string) (tasks []*store.Task) {
	for _, id := range ids {
		tasks = append(tasks, &store.Task{ID: id, Due: 1, MaxRetries: -1, Fingerprint: 1})
	}
	return tasks
}

// added is how many tasks an answer says are there in the place of dead ones.
func added(_ store.Stamp, results []store.AddResult, err error) (n int, _ error) {
	for _, r := range results {
		if (r.Status == store.Added || r.Status == store.Held) && r.Replaced == store.StateDead {
			n++
		}
	}
	return n, err
}

// committed makes commits at once, and says how many were made.
func committed(t *testing.T, s shardOf, n int, of func(i int) store.Commit) func() (int, error) {
	commits := make([]store.Commit, n)
	for i := range commits {
		commits[i] = of(i)
	}
	return func() (int, error) {
		_, results, err := s.Commit(t.Context(), s.shard, nil, commits)
		var got []store.Status
		for _, r := range results {
			got = append(got, r.Status)
		}
		return okOf(got), err
	}
}

func seqOf(t *testing.T, s shardOf) int64 {
	t.Helper()
	stats, err := s.Stats(t.Context(), []store.Shard{s.shard})
	if err != nil {
		t.Fatal(err)
	}
	return stats[0].Seq
}

func okOf(statuses []store.Status) (n int) {
	for _, s := range statuses {
		if s == store.OK {
			n++
		}
	}
	return n
}

// scripts is how many a server has run.
func scripts(t *testing.T, server *redistest.Server) float64 {
	t.Helper()
	stats := server.Do(t, "INFO", "commandstats").(string)
	_, after, _ := strings.Cut(stats, "cmdstat_evalsha:calls=")
	count, _, _ := strings.Cut(after, ",")
	n, err := strconv.ParseFloat(count, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

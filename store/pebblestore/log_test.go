package pebblestore

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestLogOutlivesTheProcess(t *testing.T) {
	dir, shard := t.TempDir(), store.Shard{Topic: "mail"}
	add := func(s *Store, from, n int) {
		t.Helper()
		var tasks []*store.Task
		for i := range n {
			tasks = append(tasks, &store.Task{ID: fmt.Sprintf("task-%04d", from+i), Due: 1, MaxRetries: -1})
		}
		if _, _, err := s.Add(t.Context(), shard, tasks); err != nil {
			t.Fatal(err)
		}
	}
	read := func(s *Store, after int64) store.LogPage {
		t.Helper()
		pages, err := s.Changes(t.Context(), []store.LogRead{{Shard: shard, After: after, Limit: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		return pages[0]
	}
	for round := range 4 {
		s := openStore(t, Config{Dir: dir})
		if round == 0 {
			if err := s.Watch(t.Context(), shard, store.Watching{Retention: time.Hour, Max: 20}); err != nil {
				t.Fatal(err)
			}
		}
		add(s, 10*round, 7)
		add(s, 10*round+7, 3)
		page := read(s, int64(10*round))
		if !page.Watched || page.Gap || len(page.Changes) != 10 || page.Changes[0].ID != fmt.Sprintf("task-%04d", 10*round) || page.Last != int64(10*round+10) {
			t.Errorf("round %d: %+v", round, page)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, Config{Dir: dir})
	if page := read(s, 0); !page.Gap || page.Next != 40 {
		t.Errorf("behind what is forgotten: %+v", page)
	}
	if page := read(s, 20); page.Gap || len(page.Changes) != 20 {
		t.Errorf("the last twenty: %+v", page)
	}
}

// Shards of before there was a log, and those that were never watched, say nothing of it.
func TestNumbersWithoutALog(t *testing.T) {
	plain := meta{batches: 3, pending: 2, sealed: true}.append(nil)
	watched := meta{batches: 3, log: logMeta{watching: store.Watching{Retention: time.Hour, Max: 7}, last: 9, forgotten: 4}}
	if got, err := decodeMeta(plain); err != nil || got.log != (logMeta{}) || !got.sealed {
		t.Errorf("read %+v, %v", got, err)
	}
	if got, err := decodeMeta(watched.append(nil)); err != nil || got != watched {
		t.Errorf("read %+v, %v", got, err)
	}
	if over := len(watched.append(nil)) - len(plain); over != 32 {
		t.Errorf("a log takes %d bytes in the numbers of its shard", over)
	}
}

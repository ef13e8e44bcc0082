package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// shown is a store.Rewrite that changes nothing and notes which tasks it was shown.
type shown map[string]bool

func (s shown) Task(t *store.Task) bool {
	s[string(t.Payload[:min(8, len(t.Payload))])] = true
	return false
}
func (s shown) Value([]byte) ([]byte, bool)    { return nil, false }
func (s shown) Entry(*store.JournalEntry) bool { return false }
func (s shown) missing(tasks []*store.Task) (n int) {
	for _, t := range tasks {
		if !s[string(t.Payload[:8])] {
			n++
		}
	}
	return n
}

// scanTasks are n tasks of a size, whose payloads begin with eight digits that tell them apart.
func scanTasks(n, size int, due store.Millis) []*store.Task {
	tasks := make([]*store.Task, n)
	for i := range tasks {
		payload := make([]byte, size)
		copy(payload, fmt.Sprintf("%08d", i))
		tasks[i] = &store.Task{ID: fmt.Sprint("t", i), Due: due, Payload: payload}
	}
	return tasks
}

func addAll(t *testing.T, s *redisstore.Store, shard store.Shard, tasks []*store.Task, at int) {
	t.Helper()
	for ; len(tasks) > 0; tasks = tasks[min(at, len(tasks)):] {
		if _, _, err := s.Add(t.Context(), shard, tasks[:min(at, len(tasks))]); err != nil {
			t.Fatal(err)
		}
	}
}

// Pages of large values ended within a step of HSCAN and went on behind "the last field", which is
// another place once the hash is rehashed: what was there all the time was skipped.
func TestWalksSeeAllThatStaysWhileTheHashGrows(t *testing.T) {
	server := redistest.Start(t)
	shard := store.Shard{Topic: "mail"}
	for round := range 2 {
		server.Do(t, "FLUSHALL")
		s := open(t, server.URL())
		large := scanTasks(120, 1<<20, 1<<50)
		addAll(t, s, shard, large, 4)
		all, pages := shown{}, 0
		for cursor := ""; ; pages++ {
			var err error
			if cursor, err = s.Rewrite(t.Context(), shard, all, cursor, 1000); err != nil {
				t.Fatal(err)
			}
			if cursor == "" {
				break
			}
			if pages < 40 { // others add tasks meanwhile: the hash grows from 128 slots to 4,096
				var small []*store.Task
				for i := range 60 {
					small = append(small, &store.Task{ID: fmt.Sprint("s", pages, "-", i), Due: 1 << 50, Payload: []byte("another!")})
				}
				addAll(t, s, shard, small, len(small))
			}
		}
		if n := all.missing(large); n > 0 {
			t.Errorf("round %d: %d of %d tasks were never seen in %d pages", round, n, len(large), pages)
		}
		s.Close()
	}
}

// The order of HSCAN depends on a seed that each process of Redis draws: a walk that went on with a
// cursor of before a restart skipped a quarter of the hash.
func TestWalksSeeAllOverARestart(t *testing.T) {
	const n = 4000
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	tasks := scanTasks(n, 64, 1)
	addAll(t, s.Store, s.shard, tasks, 500)
	entity := func(i int) store.CellID { return store.CellID(fmt.Sprintf("%c%08d", store.CellClaim, i)) }
	for i := 0; i < n; i += 100 {
		var c store.Commit
		for k := i; k < i+100; k++ {
			c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: entity(k), Body: []byte("x")}})
		}
		s.commit(t, store.OK, c)
		holds, _ := holdsFor(tasks[i : i+100])
		if _, _, err := s.Hold(t.Context(), s.shard, s.fence, holds); err != nil {
			t.Fatal(err)
		}
	}
	for name, walk := range map[string]func(cursor string, all shown) (string, error){
		"rewrite": func(cursor string, all shown) (string, error) {
			return s.Rewrite(t.Context(), s.shard, all, cursor, 100)
		},
		"entities of a kind": func(cursor string, all shown) (string, error) {
			page, next, err := s.CellPage(t.Context(), s.shard, store.CellClaim, cursor, 100)
			for _, c := range page {
				all[string(c.ID[1:])] = true
			}
			return next, err
		},
		"running tasks": func(cursor string, all shown) (string, error) {
			page, next, err := s.Running(t.Context(), s.shard, cursor, 100)
			for _, r := range page {
				var i int
				fmt.Sscanf(r.ID, "t%d", &i)
				all[fmt.Sprintf("%08d", i)] = true
			}
			return next, err
		},
	} {
		all, cursor, err := shown{}, "", error(nil)
		for len(all) < n/2 {
			if cursor, err = walk(cursor, all); err != nil {
				t.Fatal(err)
			}
		}
		server.Restart()
		for cursor != "" {
			if cursor, err = walk(cursor, all); err != nil {
				t.Fatal(err)
			}
		}
		if missed := all.missing(tasks); missed > 0 {
			t.Errorf("%s: %d of %d were never seen", name, missed, n)
		}
	}
}

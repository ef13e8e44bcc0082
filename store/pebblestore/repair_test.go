package pebblestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

var repairShard = store.Shard{Topic: "repair", N: 3}

// damage writes and deletes keys behind the store's back.
func damage(t *testing.T, s *Store, do func(b *pebble.Batch, number uint32)) {
	t.Helper()
	b := s.dir.DB().NewBatch()
	do(b, s.shards.get(repairShard, false).number)
	if err := b.Commit(pebble.Sync); err != nil {
		t.Fatal(err)
	}
}

func holdOne(t *testing.T, s *Store, fence store.Fence, id string) (store.Token, store.HoldResult) {
	t.Helper()
	token := store.NewToken()
	_, results, err := s.Hold(context.Background(), repairShard, fence, []store.Hold{{ID: id, Token: token, Visibility: time.Hour, Worker: "w"}})
	if err != nil {
		t.Fatal(err)
	}
	return token, results[0]
}

func getOne(t *testing.T, s *Store, id string) store.Snapshot {
	t.Helper()
	_, got, err := s.Get(context.Background(), repairShard, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func window(t *testing.T, s *Store) []store.Entry {
	t.Helper()
	_, entries, err := s.Window(context.Background(), repairShard, store.WindowQuery{To: store.Millis(time.Now().UnixMilli()), Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestUnreadableTaskDies damages the body of a task, its header, or all of it.
func TestUnreadableTaskDies(t *testing.T) {
	header := (&entry{due: 1, fingerprint: 7, stamp: 1}).appendHeader(nil)
	for name, value := range map[string][]byte{
		"body":    append(header, 0xff, 0xff, 0xff),
		"header":  header[:5],
		"nothing": {},
		"other":   []byte("something else"),
	} {
		t.Run(name, func(t *testing.T) { unreadableTask(t, value) })
	}
}

func unreadableTask(t *testing.T, value []byte) {
	s := openMem(t, vfs.NewMem())
	fence := claim(t, s, repairShard)
	add(t, s, repairShard, "bad", "good")
	damage(t, s, func(b *pebble.Batch, number uint32) {
		b.Set(appendIDKey(nil, number, tableTasks, "bad"), value, nil) //nolint:errcheck // Commit tells
	})
	if got := getOne(t, s, "bad"); !got.State.Pending() {
		t.Errorf("before it is held it is %v", got.State)
	}
	if got := listAll(t, s, repairShard, store.KindPending); len(got) != 2 {
		t.Errorf("the list of pending tasks has %d", len(got))
	}
	if _, result := holdOne(t, s, fence, "bad"); result.Status != store.Corrupt {
		t.Fatalf("hold answered %d, want Corrupt", result.Status)
	}
	if _, result := holdOne(t, s, fence, "bad"); result.Status != store.WrongState {
		t.Errorf("the second hold answered %d, want WrongState", result.Status)
	}
	if got := getOne(t, s, "bad"); got.State != store.StateDead || got.Reason != store.ReasonCorrupt {
		t.Errorf("the dead letter is %v for reason %d", got.State, got.Reason)
	}
	if got := window(t, s); len(got) != 1 || got[0].ID != "good" {
		t.Errorf("the window has %v, want the good one", got)
	}
	verifyWhole(t, s, repairShard)
	if _, got, err := s.Requeue(t.Context(), repairShard, []string{"bad"}); err != nil || got[0].Status != store.WrongState {
		t.Errorf("requeue answered %v, %v", got, err)
	}
	if _, got, err := s.RemoveDead(t.Context(), repairShard, []string{"bad"}); err != nil || got[0] != store.OK {
		t.Errorf("removing the dead letter answered %v, %v", got, err)
	}
	if got := getOne(t, s, "bad"); got.State != store.StateUnknown {
		t.Errorf("after its removal it is %v", got.State)
	}
	verifyWhole(t, s, repairShard)
}

// TestSweepRepairs has one damage of each kind, and a sweep in slices of each size.
func TestSweepRepairs(t *testing.T) {
	for name, c := range map[string]struct {
		damage   func(b *pebble.Batch, number uint32)
		repaired int
		id       string
		state    store.State
	}{
		"pending task in no index": {func(b *pebble.Batch, n uint32) {
			b.Delete(appendTimeKey(nil, n, tablePending, 1, "pending"), nil) //nolint:errcheck // Commit tells
		}, 1, "pending", store.StateReady},
		"unreadable task": {func(b *pebble.Batch, n uint32) {
			b.Set(appendIDKey(nil, n, tableTasks, "junk"), []byte("junk"), nil) //nolint:errcheck // as above
		}, 1, "junk", store.StateDead},
		"task with an unreadable body in no index": {func(b *pebble.Batch, n uint32) {
			value := append((&entry{due: 1}).appendHeader(nil), 0xff)
			b.Set(appendIDKey(nil, n, tableTasks, "junk"), value, nil) //nolint:errcheck // as above
		}, 1, "junk", store.StateDead},
		"dead task in no index": {func(b *pebble.Batch, n uint32) {
			b.DeleteRange(appendPrefix(nil, n, tableDead), appendPrefix(nil, n, tableDead+1), nil) //nolint:errcheck // as above
		}, 1, "dead", store.StateDead},
		"done task in one index": {func(b *pebble.Batch, n uint32) {
			b.DeleteRange(appendPrefix(nil, n, tableTrim), appendPrefix(nil, n, tableTrim+1), nil) //nolint:errcheck // as above
		}, 1, "done", store.StateDone},
		"entries without a task": {func(b *pebble.Batch, n uint32) {
			for _, index := range []table{tablePending, tableDead, tableDone, tableTrim} {
				b.Set(appendTimeKey(nil, n, index, 5, "gone"), nil, nil) //nolint:errcheck // as above
			}
		}, 4, "gone", store.StateUnknown},
		"entry at another time": {func(b *pebble.Batch, n uint32) {
			b.Set(appendTimeKey(nil, n, tablePending, 0, "pending"), nil, nil) //nolint:errcheck // as above
		}, 1, "pending", store.StateReady},
		"held task among the pending": {func(b *pebble.Batch, n uint32) {
			b.Set(appendTimeKey(nil, n, tablePending, 1, "held"), nil, nil) //nolint:errcheck // as above
		}, 1, "held", store.StateRunning},
		"unreadable holds": {func(b *pebble.Batch, n uint32) {
			b.Set((&group{number: 1 << 40}).appendKey(nil, n), []byte("junk"), nil) //nolint:errcheck // as above
		}, 1, "held", store.StateRunning},
		"hold without a task": {func(b *pebble.Batch, n uint32) {
			b.Delete(appendIDKey(nil, n, tableTasks, "held"), nil) //nolint:errcheck // as above
		}, 1, "held", store.StateUnknown},
		"keys that are none": {func(b *pebble.Batch, n uint32) {
			b.Set(append(appendPrefix(nil, n, tableTasks), 9), nil, nil)   //nolint:errcheck // as above
			b.Set(append(appendPrefix(nil, n, tablePending), 9), nil, nil) //nolint:errcheck // as above
		}, 2, "pending", store.StateReady},
	} {
		for _, limit := range []int{1, 3, 1000} {
			t.Run(name, func(t *testing.T) {
				s, fence := oneOfEach(t)
				damage(t, s, c.damage)
				if got := sweepBy(t, s, fence, limit); got != c.repaired {
					t.Errorf("the sweep repaired %d, want %d", got, c.repaired)
				}
				if got := getOne(t, s, c.id); got.State != c.state {
					t.Errorf("task %s is %v after the sweep, want %v", c.id, got.State, c.state)
				}
				verifyWhole(t, s, repairShard)
			})
		}
	}
}

// oneOfEach is a store with a task in each state.
func oneOfEach(t *testing.T) (*Store, store.Fence) {
	t.Helper()
	s := openMem(t, vfs.NewMem())
	fence := claim(t, s, repairShard)
	add(t, s, repairShard, "pending", "held", "dead", "done")
	for _, id := range []string{"held", "dead", "done"} {
		token, result := holdOne(t, s, fence, id)
		if result.Status != store.OK {
			t.Fatalf("hold answered %d", result.Status)
		}
		var err error
		switch id {
		case "dead":
			_, _, err = s.Nack(t.Context(), repairShard, []store.Nack{{ID: id, Token: token, Reason: store.ReasonPermanent}})
		case "done":
			_, _, err = s.Ack(t.Context(), repairShard, []store.Ack{{ID: id, Token: token}}, time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	verifyWhole(t, s, repairShard)
	return s, claim(t, s, repairShard)
}

func sweepBy(t *testing.T, s *Store, fence store.Fence, limit int) (repaired int) {
	t.Helper()
	for cursor := ""; ; {
		n, next, err := s.Sweep(t.Context(), repairShard, fence, cursor, limit)
		if err != nil {
			t.Fatal(err)
		}
		repaired += n
		if cursor = next; next == "" {
			return repaired
		}
	}
}

// TestDamagedFileIsNamed flips a bit in the middle of a table.
func TestDamagedFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir})
	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = strings.Repeat("x", i%100) + string(rune('a'+i%26)) + time.Duration(i).String()
	}
	add(t, s, repairShard, ids...)
	if err := s.dir.DB().Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables: %v", len(tables), err)
	}
	for _, table := range tables {
		content, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/3] ^= 0x10
		if err := os.WriteFile(table, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err = Open(Config{Dir: dir}, quiet)
	if err == nil {
		_, _, err = s.Get(t.Context(), repairShard, ids)
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("reading a damaged table answered %v", err)
		}
		s.Close() //nolint:errcheck // it failed
	}
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("the error does not name the directory: %v", err)
	}
}

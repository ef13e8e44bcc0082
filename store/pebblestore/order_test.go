package pebblestore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// lineOf are the unfinished tasks of the ordering key k.
func lineOf(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	_, found, err := s.InOrder(t.Context(), repairShard, []string{"k"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range found[0] {
		ids = append(ids, o.ID)
	}
	return ids
}

// lineUp adds tasks of the ordering key k, each due after the one before.
func lineUp(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	var tasks []*store.Task
	for i, id := range ids {
		tasks = append(tasks, &store.Task{ID: id, Due: store.Millis(i + 1), MaxRetries: -1, Traits: &store.Traits{OrderingKey: "k"}})
	}
	if _, _, err := s.Add(t.Context(), repairShard, tasks); err != nil {
		t.Fatal(err)
	}
}

// TestSweepRepairsOrder takes entries of ordering keys away, and puts some where they do
// not belong.
func TestSweepRepairsOrder(t *testing.T) {
	for name, c := range map[string]struct {
		damage   func(b *pebble.Batch, number uint32)
		repaired int
		want     []string
	}{
		"entries gone": {func(b *pebble.Batch, n uint32) {
			b.DeleteRange(appendPrefix(nil, n, tableOrder), appendPrefix(nil, n, tableOrder+1), nil) //nolint:errcheck // Commit tells
		}, 3, []string{"held", "second", "third"}},
		"entry of no task": {func(b *pebble.Batch, n uint32) {
			b.Set(appendOrderKey(nil, n, "k", wasHeld, "ghost"), nil, nil) //nolint:errcheck // as above
		}, 1, []string{"held", "second", "third"}},
		"entry of a finished task": {func(b *pebble.Batch, n uint32) {
			b.Set(appendOrderKey(nil, n, "k", 1, "done"), nil, nil) //nolint:errcheck // as above
		}, 1, []string{"held", "second", "third"}},
		"entry at another time": {func(b *pebble.Batch, n uint32) {
			b.Set(appendOrderKey(nil, n, "k", wasHeld, "third"), nil, nil) //nolint:errcheck // as above
		}, 1, []string{"held", "second", "third"}},
		"nonsense": {func(b *pebble.Batch, n uint32) {
			b.Set(append(appendPrefix(nil, n, tableOrder), 200), nil, nil) //nolint:errcheck // as above
		}, 1, []string{"held", "second", "third"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openMem(t, vfs.NewMem())
			fence := claim(t, s, repairShard)
			lineUp(t, s, "done", "held", "second", "third")
			token, _ := holdOne(t, s, fence, "done")
			if _, _, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "done", Token: token}}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, r := holdOne(t, s, fence, "held"); r.Status != store.OK {
				t.Fatalf("hold: %+v", r)
			}
			damage(t, s, c.damage)
			if repaired := sweepBy(t, s, fence, 2); repaired != c.repaired {
				t.Errorf("%d repaired, want %d", repaired, c.repaired)
			}
			if got := lineOf(t, s); !slices.Equal(got, c.want) {
				t.Errorf("in order are %v, want %v", got, c.want)
			}
			if repaired := sweepBy(t, s, fence, 100); repaired != 0 {
				t.Errorf("%d repaired in the second walk", repaired)
			}
		})
	}
}

// TestOrderOutlivesTheProcess opens the directory again after each step of the head.
func TestOrderOutlivesTheProcess(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	lineUp(t, s, "a", "b")
	token, _ := holdOne(t, s, claim(t, s, repairShard), "a")
	reopen := func() store.Fence {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openMem(t, fs)
		return claim(t, s, repairShard)
	}
	behind := func(fence store.Fence) {
		t.Helper()
		if _, r := holdOne(t, s, fence, "b"); r.Status != store.Behind || r.Head != "a" {
			t.Fatalf("hold of the second: %+v", r)
		}
	}
	behind(reopen())
	if _, _, err := s.Nack(t.Context(), repairShard, []store.Nack{{ID: "a", Token: token, Uncount: true}}); err != nil {
		t.Fatal(err)
	}
	fence := reopen()
	behind(fence)
	token, _ = holdOne(t, s, fence, "a")
	fence = reopen()
	if _, acked, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "a", Token: token}}, 0); err != nil || acked[0] != store.OK {
		t.Fatalf("ack: %v, %v", acked, err)
	}
	if _, r := holdOne(t, s, fence, "b"); r.Status != store.OK {
		t.Fatalf("hold of the second: %+v", r)
	}
	if got := fmt.Sprint(lineOf(t, s)); got != "[b]" {
		t.Errorf("in order are %s", got)
	}
}

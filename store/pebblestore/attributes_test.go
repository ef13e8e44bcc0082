package pebblestore

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

var byTenant = store.NewIndexSet("tenant")

// addIndexed adds tasks of the tenant acme that are due.
func addIndexed(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	var tasks []*store.Task
	for _, id := range ids {
		tasks = append(tasks, &store.Task{ID: id, Due: 1, MaxRetries: -1, Indexed: byTenant, Attributes: []store.Attribute{{Key: "tenant", Value: "acme"}}})
	}
	if _, _, err := s.Add(t.Context(), repairShard, tasks); err != nil {
		t.Fatal(err)
	}
}

func ofAcme(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	page, err := s.Lookup(t.Context(), repairShard, store.IndexQuery{Name: "tenant", Value: "acme", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		ids = append(ids, e.ID)
	}
	return ids
}

// TestSweepRepairsTheIndex has entries that are not there, those of a held task too, and some
// that are of nothing.
func TestSweepRepairsTheIndex(t *testing.T) {
	acme := store.Attribute{Key: "tenant", Value: "acme"}
	for _, limit := range []int{1, 3, 1000} {
		s := openMem(t, vfs.NewMem())
		fence := claim(t, s, repairShard)
		addIndexed(t, s, "held", "pending", "whole")
		holdOne(t, s, fence, "held")
		damage(t, s, func(b *pebble.Batch, n uint32) {
			for _, id := range []string{"held", "pending"} {
				b.Delete(appendIndexKey(nil, n, acme, id), nil) //nolint:errcheck // Commit tells
			}
			b.Set(appendIndexKey(nil, n, acme, "gone"), nil, nil)                                            //nolint:errcheck // as above
			b.Set(appendIndexKey(nil, n, store.Attribute{Key: "tenant", Value: "other"}, "whole"), nil, nil) //nolint:errcheck // as above
			b.Set(append(appendPrefix(nil, n, tableIndex), 9), nil, nil)                                     //nolint:errcheck // as above
		})
		if got := sweepBy(t, s, fence, limit); got != 5 {
			t.Errorf("the sweep repaired %d, want 5", got)
		}
		if got := ofAcme(t, s); !slices.Equal(got, []string{"held", "pending", "whole"}) {
			t.Errorf("the index has %q", got)
		}
		verifyWhole(t, s, repairShard)
	}
}

// TestIndexOutlivesTheProcess with what it is complete for, and what holds know of it.
func TestIndexOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir})
	fence := claim(t, s, repairShard)
	add(t, s, repairShard, "before")
	addIndexed(t, s, "acked", "kept")
	if _, err := s.Reindex(t.Context(), repairShard, byTenant, "", 1); err != nil {
		t.Fatal(err) // its walk ends with the process
	}
	for cursor := ""; ; {
		next, err := s.Reindex(t.Context(), repairShard, byTenant, cursor, 100)
		if err != nil {
			t.Fatal(err)
		}
		if cursor = next; next == "" {
			break
		}
	}
	token, _ := holdOne(t, s, fence, "acked")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, Config{Dir: dir})
	if got := ofAcme(t, s); !slices.Equal(got, []string{"acked", "kept"}) {
		t.Errorf("the index has %q", got)
	}
	if _, got, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "acked", Token: token}}, 0); err != nil || got[0] != store.OK {
		t.Fatalf("ack answered %v, %v", got, err)
	}
	if got := ofAcme(t, s); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("after the ack the index has %q", got)
	}
	verifyWhole(t, s, repairShard)
}

// TestReindexKeepsHolds that outlive the process, of tasks whose entries were written again.
func TestReindexKeepsHolds(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir})
	fence := claim(t, s, repairShard)
	task := &store.Task{ID: "held", Due: 1, MaxRetries: -1, Attributes: []store.Attribute{{Key: "tenant", Value: "acme"}}}
	if _, _, err := s.Add(t.Context(), repairShard, []*store.Task{task}); err != nil {
		t.Fatal(err)
	}
	token, _ := holdOne(t, s, fence, "held")
	if _, err := s.Reindex(t.Context(), repairShard, byTenant, "", 100); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, Config{Dir: dir})
	if got := getOne(t, s, "held"); got.State != store.StateRunning || got.Token != token {
		t.Fatalf("the held task is %v", got.State)
	}
	if _, got, err := s.Extend(t.Context(), repairShard, []store.Extend{{ID: "held", Token: token, Visibility: time.Hour}}); err != nil || got[0].Status != store.OK {
		t.Fatalf("extend answered %v, %v", got, err)
	}
	if _, got, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "held", Token: token}}, 0); err != nil || got[0] != store.OK {
		t.Fatalf("ack answered %v, %v", got, err)
	}
	if got := getOne(t, s, "held"); got.State != store.StateUnknown {
		t.Errorf("after the ack it is %v", got.State)
	}
	if got := ofAcme(t, s); len(got) != 0 {
		t.Errorf("after the ack the index has %q", got)
	}
	verifyWhole(t, s, repairShard)
}

package pebblestore

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
)

// TestDropDeletesFewRanges: each range that is deleted slows every read of the store until it is written to a table, and
// a topic that is deleted has each of its shards dropped twice.
func TestDropDeletesFewRanges(t *testing.T) {
	s := openStore(t, Config{Dir: t.TempDir()})
	name := store.Shard{Topic: "mail", Life: 7}
	ranges := func() (n int) {
		t.Helper()
		_, err := s.retention.change(t.Context(), name, access{owned: true}, func(tx *transaction) error {
			if err := tx.drop(name.Life); err != nil || tx.puts == nil {
				return err
			}
			for r := tx.puts.Reader(); ; {
				kind, _, _, more, err := r.Next()
				if !more || err != nil {
					return err
				}
				if kind == pebble.InternalKeyKindRangeDelete {
					n++
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := ranges(); n != 0 {
		t.Errorf("of a shard that was never used %d ranges are deleted", n)
	}
	for _, name := range []store.Shard{name, {Topic: "mail", N: 1, Life: 7}} {
		if err := s.OpenShard(t.Context(), name, store.ShardLife{Topic: 7, Ended: true}); err != nil {
			t.Fatal(err)
		}
		if _, added, err := s.Add(t.Context(), name, []*store.Task{{ID: "a", Due: 1}}); err != nil || added[0].Status != store.Added {
			t.Fatal(added, err)
		}
	}
	if n := ranges(); n == 0 || n > len(keptTables)+1 {
		t.Errorf("of a shard with a task %d ranges are deleted", n)
	}
	if n := ranges(); n != 0 {
		t.Errorf("of a shard that was dropped before %d ranges are deleted", n)
	}
	stats, err := s.Stats(t.Context(), []store.Shard{name, {Topic: "mail", N: 1}})
	if err != nil || stats[0].Pending != 0 || stats[1].Pending != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}

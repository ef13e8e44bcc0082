package pebblestore

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// journalKeys is how many keys of journals the shard has.
func journalKeys(t *testing.T, s *Store) (n int) {
	t.Helper()
	number := s.shards.get(repairShard, false).number
	err := s.dir.Scan(appendPrefix(nil, number, tableJournal), appendPrefix(nil, number, tableJournal+1), func(_, _ []byte) (bool, error) {
		n++
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// begun adds a task, holds it and gives it a journal of two entries.
func begun(t *testing.T, s *Store, fence store.Fence, id string) store.Token {
	t.Helper()
	if _, _, err := s.Add(t.Context(), repairShard, []*store.Task{{ID: id, Due: 1, MaxRetries: -1}}); err != nil {
		t.Fatal(err)
	}
	token, held := holdOne(t, s, fence, id)
	if held.Status != store.OK {
		t.Fatalf("hold of %s: %v", id, held.Status)
	}
	for _, name := range []string{"one", "two"} {
		c := store.Checkpoint{ID: id, Token: token, JournalEntry: store.JournalEntry{Name: name, Value: []byte("of " + name)}}
		if _, got, err := s.Checkpoint(t.Context(), repairShard, []store.Checkpoint{c}); err != nil || got[0] != store.OK {
			t.Fatalf("checkpoint of %s: %v, %v", id, got, err)
		}
	}
	return token
}

// TestNothingIsLeftOfAJournal looks into the directory after each way in which a task can go, each
// behind a restart: what knows of the journal is the stored hold, or the entry.
func TestNothingIsLeftOfAJournal(t *testing.T) {
	for name, c := range map[string]struct {
		reason store.Reason // of the nack before it
		end    func(s *Store, token store.Token) error
	}{
		"acked": {0, func(s *Store, token store.Token) error {
			_, _, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "a", Token: token}}, 0)
			return err
		}},
		"acked, and kept": {0, func(s *Store, token store.Token) error {
			_, _, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "a", Token: token}}, time.Hour)
			return err
		}},
		"removed when dead": {store.ReasonPermanent, func(s *Store, _ store.Token) error {
			_, _, err := s.RemoveDead(t.Context(), repairShard, []string{"a"})
			return err
		}},
		"trimmed when dead": {store.ReasonPermanent, func(s *Store, _ store.Token) error {
			_, err := s.TrimDead(t.Context(), repairShard, store.Entry{Due: store.MaxDue, ID: "z"}, 10)
			return err
		}},
		"replaced when dead": {store.ReasonPermanent, func(s *Store, _ store.Token) error {
			_, _, err := s.Add(t.Context(), repairShard, []*store.Task{{ID: "a", Due: 1, MaxRetries: -1, Fingerprint: 1}})
			return err
		}},
		"dropped": {store.ReasonPermanent, func(s *Store, _ store.Token) error { return s.DropShard(t.Context(), repairShard) }},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openMem(t, fs)
			token := begun(t, s, claim(t, s, repairShard), "a")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openMem(t, fs)
			if c.reason != 0 {
				if _, _, err := s.Nack(t.Context(), repairShard, []store.Nack{{ID: "a", Token: token, Reason: c.reason}}); err != nil {
					t.Fatal(err)
				}
				if n := journalKeys(t, s); n != 2 {
					t.Fatalf("%d keys of the dead letter, want 2", n)
				}
			}
			if err := c.end(s, token); err != nil {
				t.Fatal(err)
			}
			if n := journalKeys(t, s); n != 0 {
				t.Errorf("%d keys are left", n)
			}
			verifyWhole(t, s, repairShard)
		})
	}
}

// TestSweepRemovesJournalsOfNothing leaves those of held, failed and dead tasks alone.
func TestSweepRemovesJournalsOfNothing(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	fence := claim(t, s, repairShard)
	begun(t, s, fence, "held")
	for id, reason := range map[string]store.Reason{"failed": store.ReasonNone, "dead": store.ReasonPermanent} {
		nack := store.Nack{ID: id, Token: begun(t, s, fence, id), Reason: reason, Delay: time.Hour}
		if _, _, err := s.Nack(t.Context(), repairShard, []store.Nack{nack}); err != nil {
			t.Fatal(err)
		}
	}
	damage(t, s, func(b *pebble.Batch, n uint32) {
		b.Set(append(appendJournal(nil, n, "gone"), 'x'), nil, nil)      //nolint:errcheck // Commit tells
		b.Set(append(appendPrefix(nil, n, tableJournal), 200), nil, nil) //nolint:errcheck // as above
	})
	if n := sweepAll(t, s, repairShard, fence); n != 2 {
		t.Errorf("%d repaired, want 2", n)
	}
	if n := journalKeys(t, s); n != 6 {
		t.Errorf("%d keys are left, want 6", n)
	}
}

package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
}

func TestConformanceInFakeTime(t *testing.T) {
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, open(t)) })
		})
	}
}

func open(t *testing.T) *memstore.Store {
	s := memstore.New()
	t.Cleanup(func() { s.Close() })
	return s
}

// The model against itself, in real time: rapid does not run in a bubble.
// A node died while the clock was ahead of what it is now.
func TestSessionOfAClockThatWasAheadIsOver(t *testing.T) {
	m, shard := memstore.New(), store.Shard{Topic: "mail"}
	m.SetClock(time.Hour)
	claim := func(node string) error {
		session := store.Session{Node: node, Start: store.NewToken(), TTL: time.Second, Begin: true}
		if _, err := m.RenewSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		_, _, err := m.Claim(t.Context(), shard, session)
		return err
	}
	if err := claim("dead"); err != nil {
		t.Fatal(err)
	}
	m.SetClock(0)
	if err := claim("live"); err != nil {
		t.Errorf("claim of the dead node's shard: %v", err)
	}
}

func TestCells(t *testing.T) {
	storetest.RunCells(t, func(t *testing.T) store.Store { return open(t) })
}

func TestQueues(t *testing.T) {
	storetest.RunQueues(t, func(t *testing.T) store.Store { return open(t) })
}

// TestFull: there is no bound but the memory of the process, so nothing is refused.
func TestFull(t *testing.T) {
	storetest.RunFull(t, func(t *testing.T) storetest.Room { return storetest.Room{Store: open(t)} })
}

func TestRegistry(t *testing.T) {
	storetest.RunRegistry(t, func(t *testing.T) store.Store { return open(t) })
}

func TestProperty(t *testing.T) {
	storetest.RunProperty(t, func(t *testing.T) store.Store { return open(t) })
}

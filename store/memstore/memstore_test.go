package memstore_test

import (
	"testing"
	"testing/synctest"

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
func TestProperty(t *testing.T) {
	storetest.RunProperty(t, func(t *testing.T) store.Store { return open(t) })
}

package pebblestore

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openStore(t, Config{Dir: t.TempDir()}) })
}

// openStore opens a store that is closed at the end of the test, with memory
// enough for one.
func openStore(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

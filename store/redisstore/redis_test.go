package redisstore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
	"github.com/ddq-io/ddq/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// open opens a store in the server.
func open(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	return openWith(t, redisstore.Config{URL: url})
}

func openWith(t testing.TB, cfg redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(context.Background(), cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	server := redistest.Start(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		server.Do(t, "FLUSHALL")
		return open(t, server.URL())
	})
}

func TestProperty(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunProperty(t, func(t *testing.T) store.Store { return open(t, server.URL()) })
}

// eventually does something until it works, for as long as a minute.
func eventually(t *testing.T, what string, do func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func TestCells(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunCells(t, func(t *testing.T) store.Store {
		server.Do(t, "FLUSHALL")
		return open(t, server.URL())
	})
}

func TestQueues(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunQueues(t, func(t *testing.T) store.Store {
		server.Do(t, "FLUSHALL")
		return open(t, server.URL())
	})
}

// TestFull has a server use more than its maxmemory, which evicts nothing.
func TestFull(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunFull(t, func(t *testing.T) storetest.Room {
		server.Do(t, "CONFIG", "SET", "maxmemory", 0)
		server.Do(t, "FLUSHALL")
		return storetest.Room{Store: open(t, server.URL()), SetFull: func(full bool) {
			most := 0
			if full {
				most = 1
			}
			server.Do(t, "CONFIG", "SET", "maxmemory", most)
		}}
	})
}

func TestRegistry(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunRegistry(t, func(t *testing.T) store.Store {
		server.Do(t, "FLUSHALL")
		return open(t, server.URL())
	})
}

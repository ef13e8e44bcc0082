package sealstore_test

import (
	"context"
	"flag"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/pebblestore"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
	"github.com/ddq-io/ddq/store/sealstore"
	"github.com/ddq-io/ddq/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// Two master keys.
const (
	one = "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="
	two = "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI="
)

// masters are those keys, one on each line.
func masters(t testing.TB, text string) *sealstore.Masters {
	t.Helper()
	m, err := sealstore.ParseMasters(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// keysOf opens the keys of a store for another process.
func keysOf(t testing.TB, inner store.Registry) *sealstore.Keys {
	t.Helper()
	keys, err := sealstore.OpenKeys(context.Background(), inner, masters(t, one), sealstore.Config{Node: "a"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// sealed is inner, sealed.
func sealed(t testing.TB, inner sealstore.Inner) store.Store {
	t.Helper()
	return sealstore.New(inner, keysOf(t, inner))
}

// stores opens each kind of store, empty.
var stores = []struct {
	name string
	open func(t *testing.T) func(t *testing.T) sealstore.Inner
}{
	{"memory", func(*testing.T) func(t *testing.T) sealstore.Inner {
		return func(t *testing.T) sealstore.Inner { return openMemory(t) }
	}},
	{"embedded", func(*testing.T) func(t *testing.T) sealstore.Inner {
		return func(t *testing.T) sealstore.Inner { return openEmbedded(t, t.TempDir()) }
	}},
	{"redis", func(t *testing.T) func(t *testing.T) sealstore.Inner {
		server := redistest.Start(t)
		return func(t *testing.T) sealstore.Inner {
			server.Do(t, "FLUSHALL")
			return openRedis(t, server.URL())
		}
	}},
}

func openMemory(t testing.TB) *memstore.Store {
	s := memstore.New()
	closeAtEnd(t, s)
	return s
}

func openEmbedded(t testing.TB, dir string) *pebblestore.Store {
	t.Helper()
	s, err := pebblestore.Open(pebblestore.Config{Dir: dir}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	return s
}

func openRedis(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(context.Background(), redisstore.Config{URL: url}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	return s
}

func closeAtEnd(t testing.TB, s store.Store) { t.Cleanup(func() { s.Close() }) }

var sealedStores = flag.String("sealed.stores", "memory", "over which stores the suite of stores is played: some of memory, embedded and redis")

// onEach runs f with each kind of store that is to be played.
func onEach(t *testing.T, f func(t *testing.T, open func(t *testing.T) sealstore.Inner)) {
	for _, s := range stores {
		if !strings.Contains(*sealedStores, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) { f(t, s.open(t)) })
	}
}

func TestConformance(t *testing.T) {
	onEach(t, func(t *testing.T, open func(t *testing.T) sealstore.Inner) {
		storetest.Run(t, func(t *testing.T) store.Store { return sealed(t, open(t)) })
	})
}

func TestCells(t *testing.T) {
	onEach(t, func(t *testing.T, open func(t *testing.T) sealstore.Inner) {
		storetest.RunCells(t, func(t *testing.T) store.Store { return sealed(t, open(t)) })
	})
}

func TestQueues(t *testing.T) {
	onEach(t, func(t *testing.T, open func(t *testing.T) sealstore.Inner) {
		storetest.RunQueues(t, func(t *testing.T) store.Store { return sealed(t, open(t)) })
	})
}

// Its cases count changes from the first one, so there is no data key here.
func TestRegistry(t *testing.T) {
	storetest.RunRegistry(t, func(t *testing.T) store.Store {
		inner := openMemory(t)
		keys, err := sealstore.OpenKeys(t.Context(), inner, masters(t, one), sealstore.Config{ReadOnly: true}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		return sealstore.New(inner, keys)
	})
}

func TestProperty(t *testing.T) {
	onEach(t, func(t *testing.T, open func(t *testing.T) sealstore.Inner) {
		storetest.RunProperty(t, func(t *testing.T) store.Store { return sealed(t, open(t)) })
	})
}

func TestConformanceInFakeTime(t *testing.T) {
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, sealed(t, openMemory(t))) })
		})
	}
}

package pebblestore

import (
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDirEnv); dir != "" {
		crashChild(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openStore(t, Config{Dir: t.TempDir()}) })
}

func TestRegistry(t *testing.T) {
	storetest.RunRegistry(t, func(t *testing.T) store.Store { return openStore(t, Config{Dir: t.TempDir()}) })
}

func TestCells(t *testing.T) {
	storetest.RunCells(t, func(t *testing.T) store.Store { return openStore(t, Config{Dir: t.TempDir()}) })
}

func TestQueues(t *testing.T) {
	storetest.RunQueues(t, func(t *testing.T) store.Store { return openStore(t, Config{Dir: t.TempDir()}) })
}

// TestFull has less room on the disk than is to be free.
func TestFull(t *testing.T) {
	storetest.RunFull(t, func(t *testing.T) storetest.Room {
		fs := vfs.NewMem()
		s := openMem(t, fs)
		setFull := func(full bool) {
			free := uint64(1 << 40)
			if full {
				free = 1000
			}
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free})
			s.dir.Look()
		}
		setFull(false)
		return storetest.Room{Store: s, SetFull: setFull}
	})
}

func TestProperty(t *testing.T) {
	storetest.RunProperty(t, func(t *testing.T) store.Store { return openMem(t, vfs.NewMem()) })
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// openStore opens a store that is closed at the end of the test.
func openStore(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(c, quiet)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	return s
}

// openMem opens a store in a file system in memory, with tables as small as they can be.
func openMem(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	makeMemDir(t, fs)
	s, err := open(smallConfig, fs, quiet)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	return s
}

var smallConfig = Config{Dir: "data", MemTable: 64 << 10, Cache: 1 << 20}

func closeAtEnd(t testing.TB, s *Store) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// makeMemDir makes the data directory in a file system, and its entry durable.
func makeMemDir(t testing.TB, fs vfs.FS) {
	t.Helper()
	if err := fs.MkdirAll(smallConfig.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := fs.OpenDir("")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // nothing was written
	if err := root.Sync(); err != nil {
		t.Fatal(err)
	}
}

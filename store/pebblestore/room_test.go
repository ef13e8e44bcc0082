package pebblestore

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// TestNearlyFullDiskIsFlushedAndLoggedOnce fills a disk twice.
func TestNearlyFullDiskIsFlushedAndLoggedOnce(t *testing.T) {
	fs := vfs.NewMem()
	makeMemDir(t, fs)
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40})
	log := new(lines)
	s, err := open(smallConfig, fs, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	shard := crashShards[0]
	for episode := range 2 {
		add(t, s, shard, fmt.Sprint("before-", episode))
		before := s.dir.DB().Metrics().Flush.Count
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1000})
		for range 5 {
			s.dir.Look()
			if _, _, err := s.Add(t.Context(), shard, []*store.Task{{ID: "x", Due: 1}}); !errors.Is(err, store.ErrFull) {
				t.Fatalf("add on a nearly full disk: %v", err)
			}
		}
		waitForFlush(t, s, before)
		if n := log.count("disk is nearly full"); n != episode+1 {
			t.Errorf("%d lines say that the disk is nearly full, want %d", n, episode+1)
		}
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40})
		waitForRoom(t, s, shard)
		if n := log.count("has room again"); n != episode+1 {
			t.Errorf("%d lines say that there is room again, want %d", n, episode+1)
		}
		if _, _, err := s.Remove(t.Context(), shard, store.Removals("later")); err != nil {
			t.Fatal(err)
		}
	}
}

// waitForFlush returns once there were more flushes than before.
func waitForFlush(t *testing.T, s *Store, before int64) {
	t.Helper()
	for s.dir.DB().Metrics().Flush.Count == before {
		select {
		case <-t.Context().Done():
			t.Fatal("nothing was flushed")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestSmallVolumeIsFilledWithTasks fills a volume of 160 MiB, of which 64 MiB are to be
// left free. Logs that took their space ahead filled it with 13 MiB of tasks.
func TestSmallVolumeIsFilledWithTasks(t *testing.T) {
	const mib = 1 << 20
	s := openStore(t, Config{Dir: smallVolume(t, 160*mib) + "/data", MemTable: 16 * mib, MinFree: 64 * mib})
	const size, batch = 2000, 500
	payloads := make([]byte, batch*size)
	rand.Read(payloads) //nolint:errcheck // never fails
	stored, err := 0, error(nil)
	for i := 0; err == nil && stored < 100*mib; i++ {
		tasks := make([]*store.Task, batch)
		for k := range tasks {
			tasks[k] = &store.Task{ID: fmt.Sprintf("%06d-%03d", i, k), Due: 1 << 50, Payload: payloads[k*size : (k+1)*size]}
		}
		if _, _, err = s.Add(t.Context(), crashShards[0], tasks); err == nil {
			stored += len(payloads)
		}
	}
	if !errors.Is(err, store.ErrFull) || stored < 30*mib {
		t.Errorf("%d MiB of tasks were stored, and then %v", stored/mib, err)
	}
}

package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

func TestDirectoryIsForItsUserOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	openStore(t, Config{Dir: dir})
	for _, made := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v: %v", made, info.Mode(), err)
		}
	}
}

func TestDirectoryOpenToOthersIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := openStore(t, Config{Dir: dir}).Info(t.Context())
	if err != nil || len(info.Warnings) != 1 || !strings.Contains(info.Warnings[0], dir) {
		t.Errorf("info is %+v: %v", info, err)
	}
}

func TestDirectoryInUseIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openStore(t, Config{Dir: dir})
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, dir + "/.", link} {
		_, err := Open(Config{Dir: name}, quiet)
		if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), dir) {
			t.Errorf("opening %s answered %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, Config{Dir: dir})
}

func TestDirectoryThatIsNoneIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", file, filepath.Join(file, "data")} {
		if s, err := Open(Config{Dir: name}, quiet); err == nil || !strings.Contains(err.Error(), name) || errors.Is(err, store.ErrLocked) {
			t.Errorf("opening %q answered %v, %v", name, s, err)
		}
	}
}

func TestLayoutOfAnotherVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir})
	if err := s.dir.DB().Set(appendPrefix(nil, 0, tableFormat), []byte{99}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}, quiet); err == nil || !strings.Contains(err.Error(), "99") {
		t.Errorf("opening a directory of version 99 answered %v", err)
	}
}

// TestCloseWhileCallsRun closes a store under load: calls end well or with ErrClosed.
func TestCloseWhileCallsRun(t *testing.T) {
	s := openStore(t, Config{Dir: t.TempDir()})
	var group sync.WaitGroup
	running := make(chan struct{}, len(crashShards))
	for _, shard := range crashShards {
		fence := claim(t, s, shard)
		group.Go(func() {
			err := churn(s, shard, fence, 10, func(...mark) {
				select {
				case running <- struct{}{}:
				default:
				}
			})
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("a call on a closing store answered %v", err)
			}
		})
		group.Go(func() {
			for {
				_, err := s.Stats(context.Background(), crashShards)
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	<-running
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	closers.Wait()
	group.Wait()
}

// TestBatchLargerThanMemory takes tasks through their life in calls that Pebble must
// write around its tables in memory.
func TestBatchLargerThanMemory(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := openMem(t, fs)
	fence := claim(t, s, repairShard)
	ids := make([]string, 3000)
	for i := range ids {
		ids[i] = fmt.Sprintf("task-%d-%s", i, strings.Repeat("x", 100))
	}
	add(t, s, repairShard, ids...)
	tokens := holdAll(t, s, fence, ids...)
	s = openMem(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	if stats := statsOf(t, s); stats.Running != int64(len(ids)) || stats.Pending != 0 {
		t.Fatalf("after a crash there are %d held and %d pending", stats.Running, stats.Pending)
	}
	holds := make([]store.Hold, len(ids))
	for i, id := range ids {
		holds[i] = store.Hold{ID: id, Token: tokens[id]}
	}
	if err := ackAll(s, repairShard, holds); err != nil {
		t.Fatal(err)
	}
	verifyWhole(t, s, repairShard)
	for _, index := range []table{tableTasks, tablePending, tableHolds} {
		if n := countKeys(t, s, index); n != 0 {
			t.Errorf("%d keys of table %c are left", n, index)
		}
	}
}

// TestTokensOfCallersOutliveACrash: a caller that was given tokens uses them, whatever becomes of
// the node, and nothing that is synced follows.
func TestTokensOfCallersOutliveACrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	ask := []store.Reservation{{
		Key: store.LimitKey{Topic: "t", Key: "k"}, Rate: store.Rate{Kind: store.SlidingWindow, Count: 2, Period: time.Hour}, N: 2, Whole: true,
	}}
	for i, want := range []int{2, 0} {
		got, err := openMem(t, fs).Reserve(t.Context(), ask)
		if err != nil || got[0].N != want {
			t.Fatalf("start %d gave %+v and %v, want %d tokens", i, got, err, want)
		}
		fs = fs.CrashClone(vfs.CrashCloneCfg{})
	}
}

// TestRestartKeepsEverything takes a shard with a bit of everything through a restart.
func TestRestartKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, Config{Dir: dir})
	fence := claim(t, s, repairShard)
	add(t, s, repairShard, "pending", "acked", "added again", "extended", "held", "nacked", "held again")
	tokens := holdAll(t, s, fence, "acked", "added again", "extended", "held", "nacked", "held again")
	if err := ackAll(s, repairShard, []store.Hold{{ID: "acked", Token: tokens["acked"]}, {ID: "added again", Token: tokens["added again"]}}); err != nil {
		t.Fatal(err)
	}
	add(t, s, repairShard, "added again") // while the group of its first hold lives on
	_, extended, err := s.Extend(t.Context(), repairShard, []store.Extend{{ID: "extended", Token: tokens["extended"], Visibility: 2 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	_, nacked, err := s.Nack(t.Context(), repairShard, []store.Nack{
		{ID: "nacked", Token: tokens["nacked"], Delay: time.Hour, Error: "broke"},
		{ID: "held again", Token: tokens["held again"], Uncount: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens["held again"] = holdAll(t, s, fence, "held again")["held again"]
	before := statsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openStore(t, Config{Dir: dir})
	after := statsOf(t, s)
	after.Now, before.Now = time.Time{}, time.Time{}
	if after != before {
		t.Errorf("stats were %+v, and are %+v", before, after)
	}
	for id, want := range map[string]store.Snapshot{
		"pending":     {State: store.StateReady},
		"acked":       {State: store.StateUnknown},
		"added again": {State: store.StateReady},
		"extended":    {State: store.StateRunning, Token: tokens["extended"], Deadline: extended[0].Deadline, Worker: "w", Task: store.Task{Attempt: 1}},
		"held":        {State: store.StateRunning, Token: tokens["held"], Worker: "w", Task: store.Task{Attempt: 1}},
		"nacked":      {State: store.StateRetrying, Task: store.Task{Attempt: 1, LastError: "broke", Due: nacked[0].Due}},
		"held again":  {State: store.StateRunning, Token: tokens["held again"], Worker: "w", Task: store.Task{Attempt: 1}},
	} {
		got := getOne(t, s, id)
		if got.State != want.State || got.Token != want.Token || got.Attempt != want.Attempt || got.LastError != want.LastError || got.Worker != want.Worker ||
			want.Deadline != 0 && got.Deadline != want.Deadline || want.Due != 0 && got.Due != want.Due {
			t.Errorf("%s is\n%+v after the restart, want\n%+v", id, got, want)
		}
	}
	_, result, err := s.Hold(t.Context(), repairShard, fence, []store.Hold{{ID: "added again", Token: store.NewToken(), Visibility: time.Hour}})
	if err != nil || result[0].Status != store.OK {
		t.Errorf("holding under the claim from before the restart answered %v, %v", result, err)
	}
	_, stale, err := s.Ack(t.Context(), repairShard, []store.Ack{{ID: "added again", Token: tokens["added again"]}}, 0)
	if err != nil || stale[0] != store.Stale {
		t.Errorf("acking the first life of a task answered %v, %v", stale, err)
	}
	if err := ackAll(s, repairShard, []store.Hold{{ID: "held", Token: tokens["held"]}, {ID: "extended", Token: tokens["extended"]}}); err != nil {
		t.Error(err)
	}
	verifyWhole(t, s, repairShard)
}

// holdAll holds tasks in one call.
func holdAll(t *testing.T, s *Store, fence store.Fence, ids ...string) map[string]store.Token {
	t.Helper()
	holds, tokens := make([]store.Hold, len(ids)), make(map[string]store.Token)
	for i, id := range ids {
		tokens[id] = store.NewToken()
		holds[i] = store.Hold{ID: id, Token: tokens[id], Visibility: time.Hour, Worker: "w"}
	}
	_, results, err := s.Hold(t.Context(), repairShard, fence, holds)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Status != store.OK {
			t.Fatalf("holding %s answered %d", ids[i], r.Status)
		}
	}
	return tokens
}

func statsOf(t *testing.T, s *Store) store.Stats {
	t.Helper()
	stats, err := s.Stats(t.Context(), []store.Shard{repairShard})
	if err != nil {
		t.Fatal(err)
	}
	return stats[0]
}

// TestHoldsOverLeaveNoKeys settles holds in every way: no group stays behind.
func TestHoldsOverLeaveNoKeys(t *testing.T) {
	s := openStore(t, Config{Dir: t.TempDir()})
	fence := claim(t, s, repairShard)
	add(t, s, repairShard, "a", "b", "c")
	tokens := holdAll(t, s, fence, "a", "b", "c")
	for range 3 {
		if _, _, err := s.Extend(t.Context(), repairShard, []store.Extend{{ID: "a", Token: tokens["a"], Visibility: time.Hour}, {ID: "b", Token: tokens["b"], Visibility: time.Hour}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := countKeys(t, s, tableHolds); n != 2 {
		t.Errorf("there are %d groups, want that of the extension and that of c", n)
	}
	if err := ackAll(s, repairShard, []store.Hold{{ID: "a", Token: tokens["a"]}, {ID: "c", Token: tokens["c"]}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Nack(t.Context(), repairShard, []store.Nack{{ID: "b", Token: tokens["b"]}}); err != nil {
		t.Fatal(err)
	}
	if n := countKeys(t, s, tableHolds); n != 0 {
		t.Errorf("%d groups stay behind", n)
	}
}

func countKeys(t *testing.T, s *Store, index table) (n int) {
	t.Helper()
	number := s.shards.get(repairShard, false).number
	err := s.dir.Scan(appendPrefix(nil, number, index), appendPrefix(nil, number, index+1), func(_, _ []byte) (bool, error) {
		n++
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

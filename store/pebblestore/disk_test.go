package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ddq-io/ddq/store"
)

// TestFirstFailureEndsTheStore lets every kind of operation that changes the
// directory fail, at many points of a store's life. Whatever fails, the process
// lives, the store answers ErrUnavailable from then on, and what was acknowledged is
// there when the directory is opened again.
func TestFirstFailureEndsTheStore(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for nth := int64(1); nth < 400; nth += 1 + nth/3 {
			t.Run(fmt.Sprintf("%v/operation=%d", cause, nth), func(t *testing.T) { failNth(t, nth, cause) })
		}
	}
}

func failNth(t *testing.T, nth int64, cause error) {
	inner := vfs.NewCrashableMem()
	makeMemDir(t, inner)
	faults := &faulty{cause: cause}
	faults.left.Store(nth)
	l := newLedger()
	s, err := open(smallConfig, errorfs.Wrap(inner, faults), quiet)
	if err != nil {
		if !strings.Contains(err.Error(), smallConfig.Dir) {
			t.Errorf("the error does not name the directory: %v", err)
		}
	} else {
		churnAll(t, s, l)
		checkFailed(t, s)
	}
	verify(t, openMem(t, inner.CrashClone(vfs.CrashCloneCfg{})), crashShards, l.copy())
}

// faulty lets one operation that changes the directory fail, and all after it.
type faulty struct {
	cause error
	left  atomic.Int64
}

func (f *faulty) String() string { return "fails from one operation on" }

func (f *faulty) MaybeError(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileClose, errorfs.OpRemove, errorfs.OpRemoveAll, errorfs.OpLock:
		return nil
	}
	isTable := strings.HasSuffix(op.Path, ".sst") && f.cause == syscall.ENOSPC // another test's
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || isTable || f.left.Add(-1) > 0 {
		return nil
	}
	return f.cause
}

// churnAll works on all shards until the store fails.
func churnAll(t *testing.T, s *Store, l *ledger) {
	t.Helper()
	var group sync.WaitGroup
	for i, shard := range crashShards {
		group.Go(func() {
			ctx := context.Background()
			session := store.Session{Node: "node", Start: store.Token{1}, TTL: time.Hour, Begin: true}
			_, err := s.RenewSession(ctx, session)
			var fence store.Fence
			if err == nil {
				_, fence, err = s.Claim(ctx, shard, session)
			}
			if err == nil {
				err = churn(s, shard, fence, 1+10*i, l.note)
			}
			if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a call on a failing disk answered %v", err)
			}
		})
	}
	group.Wait()
}

func checkFailed(t *testing.T, s *Store) {
	t.Helper()
	ctx, shard := context.Background(), crashShards[0]
	for name, err := range map[string]error{
		"add":    second(s.Add(ctx, shard, []*store.Task{{ID: "x"}})),
		"get":    second(s.Get(ctx, shard, []string{"x"})),
		"window": second(s.Window(ctx, shard, store.WindowQuery{To: 1, Limit: 1})),
		"ack":    second(s.Ack(ctx, shard, nil, 0)),
		"failed": s.Failed(),
		"close":  s.Close(),
	} {
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrFailed) || !strings.Contains(err.Error(), smallConfig.Dir) {
			t.Errorf("%s after the failure answered %v", name, err)
		}
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

// TestFullDiskForTables lets tables find no room for a while. No call fails for it
// but Add, and all goes on once there is room again.
func TestFullDiskForTables(t *testing.T) {
	inner := vfs.NewMem()
	makeMemDir(t, inner)
	inner.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40})
	var full, refused atomic.Bool
	fs := errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !full.Load() || filepath.Ext(op.Path) != ".sst" || op.Kind != errorfs.OpFileWrite && op.Kind != errorfs.OpCreate {
			return nil
		}
		refused.Store(true)
		return syscall.ENOSPC
	}))
	c := smallConfig
	c.MemTable = 1 << 20
	s, err := open(c, fs, quiet)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	shard := crashShards[0]
	fence := claim(t, s, shard)
	full.Store(true)
	err = churn(s, shard, fence, 10, func(...mark) {})
	if !errors.Is(err, store.ErrFull) || !refused.Load() {
		t.Fatalf("churn on a disk without room for tables ended with %v", err)
	}
	verifyWhole(t, s, shard) // claims and sweeps
	full.Store(false)
	waitForRoom(t, s, shard)
	verifyWhole(t, s, shard)
}

// waitForRoom adds a task as soon as the store takes one.
func waitForRoom(t *testing.T, s *Store, shard store.Shard) {
	t.Helper()
	for {
		_, _, err := s.Add(t.Context(), shard, []*store.Task{{ID: "later", Due: 1}})
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the store stays full")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestNearlyFullDiskTakesNoTasks settles what there is on a disk with little room.
func TestNearlyFullDiskTakesNoTasks(t *testing.T) {
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40})
	s := openMem(t, fs)
	shard := crashShards[0]
	fence := claim(t, s, shard)
	add(t, s, shard, "a", "b")
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1000})
	s.dir.Look()

	hold := store.Hold{ID: "c", Token: store.NewToken(), Visibility: time.Hour}
	task := []*store.Task{{ID: "c", Due: 1}}
	_, topicErr := s.PutTopic(t.Context(), store.Topic{Name: "new"})
	for name, err := range map[string]error{
		"add":      second(s.Add(t.Context(), shard, task)),
		"hold new": second(s.HoldNew(t.Context(), shard, fence, task, []store.Hold{hold})),
		"topic":    topicErr, // a task that is refused has made none
	} {
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("%s on a nearly full disk answered %v", name, err)
		}
	}
	info, err := s.Info(t.Context())
	if err != nil || len(info.Warnings) == 0 {
		t.Errorf("info %+v does not warn: %v", info, err)
	}
	hold.ID = "a"
	if _, held, err := s.Hold(t.Context(), shard, fence, []store.Hold{hold}); err != nil || held[0].Status != store.OK {
		t.Fatalf("hold on a nearly full disk answered %v, %v", held, err)
	}
	if err := ackAll(s, shard, []store.Hold{hold}); err != nil {
		t.Fatalf("ack on a nearly full disk: %v", err)
	}
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 40})
	waitForRoom(t, s, shard)
}

// add adds tasks that are due.
func add(t testing.TB, s *Store, shard store.Shard, ids ...string) {
	t.Helper()
	tasks := make([]*store.Task, len(ids))
	for i, id := range ids {
		tasks[i] = &store.Task{ID: id, Payload: []byte("payload of " + id), Due: 1, MaxRetries: -1, Fingerprint: 7}
	}
	_, results, err := s.Add(context.Background(), shard, tasks)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Status != store.Added {
			t.Fatalf("adding %q answered %d", ids[i], r.Status)
		}
	}
}

// TestDescriptorsRunOut leaves the process no descriptor for a moment, whenever the store makes or
// opens a file. No call fails for it, and the store goes on.
func TestDescriptorsRunOut(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, syscall.ENFILE} {
		t.Run(cause.Error(), func(t *testing.T) {
			fs := &crowded{FS: vfs.NewMem(), cause: cause}
			makeMemDir(t, fs.FS)
			s, err := open(smallConfig, fs, quiet)
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, s)
			shard := crashShards[0]
			for round := 0; fs.made.Load() < 3 || fs.reused.Load() < 2 || fs.read.Load() < 3; round++ {
				id := fmt.Sprint(round)
				if _, _, err := s.Add(t.Context(), shard, []*store.Task{{ID: id, Payload: make([]byte, 8<<10), Due: 1}}); err != nil {
					t.Fatalf("with %d files made, %d reused and %d read: %v", fs.made.Load(), fs.reused.Load(), fs.read.Load(), err)
				}
				if err := second(s.Get(t.Context(), shard, []string{id, "0"})); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Failed(); err != nil {
				t.Error(err)
			}
		})
	}
}

// crowded is a file system on which the first attempt to open a file finds no descriptor. A file that
// is reused has its new name by then.
type crowded struct {
	vfs.FS
	cause              error
	refused            sync.Map // names that were refused once
	made, reused, read atomic.Int64
}

func (c *crowded) first(name string, n *atomic.Int64) error {
	if _, before := c.refused.LoadOrStore(name, true); before {
		return nil
	}
	n.Add(1)
	return &os.PathError{Op: "open", Path: name, Err: c.cause}
}

func (c *crowded) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.first(name, &c.made); err != nil {
		return nil, err
	}
	return c.FS.Create(name, category)
}

func (c *crowded) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := c.first("read "+name, &c.read); err != nil {
		return nil, err
	}
	return c.FS.Open(name, opts...)
}

func (c *crowded) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := c.first(name, &c.made); err != nil {
		return nil, err
	}
	return c.FS.OpenReadWrite(name, category, opts...)
}

func (c *crowded) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.FS.Rename(oldname, newname); err != nil {
		return nil, err
	}
	if err := c.first(newname, &c.reused); err != nil {
		return nil, err
	}
	return c.FS.OpenReadWrite(newname, category)
}

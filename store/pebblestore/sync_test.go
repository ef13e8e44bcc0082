package pebblestore

import (
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ddq-io/ddq/store"
)

// TestNothingUnsyncedIsTold keeps the log from being synced, and asks for a task
// that is in memory only: nobody is told of it before it is synced.
func TestNothingUnsyncedIsTold(t *testing.T) {
	s, release := unsynced(t)
	var released atomic.Bool
	var group sync.WaitGroup
	told := func(what string, call func() error) {
		group.Go(func() {
			err := call()
			if err != nil || !released.Load() {
				t.Errorf("%s was answered before the sync, or failed: %v", what, err)
			}
		})
	}
	task := []*store.Task{{ID: "x", Due: 1, Fingerprint: 7}}
	told("add", func() error { return second(s.Add(t.Context(), repairShard, task)) })
	for len(window(t, s)) == 0 {
		runtime.Gosched() // until it is in memory: a window is a hint, and waits for nothing
	}
	told("get", func() error { return second(s.Get(t.Context(), repairShard, []string{"x"})) })
	told("a duplicate", func() error { return second(s.Add(t.Context(), repairShard, task)) })
	told("remove of another", func() error { return second(s.Remove(t.Context(), repairShard, store.Removals("y"))) })
	told("list", func() error { return second(s.List(t.Context(), repairShard, store.KindPending, "", 10)) })
	for range 2000 {
		window(t, s) // time for the others to be answered, were they not to wait
	}
	released.Store(true)
	release()
	group.Wait()
}

// TestLooksDoNotWaitForSyncs asks what cells are told while the log is not synced: what a look
// commits by that comes behind it in the log.
func TestLooksDoNotWaitForSyncs(t *testing.T) {
	s, release := unsynced(t)
	var group sync.WaitGroup
	defer group.Wait()
	defer release()
	group.Go(func() {
		commit := store.Commit{
			Puts: []store.Put{{Cell: store.Cell{ID: "wflow", Body: []byte("1")}}},
			Send: []store.Parcel{{To: "wflow", Body: []byte("2")}},
		}
		if _, results, err := s.Commit(t.Context(), repairShard, nil, []store.Commit{commit}); err != nil || results[0].Status != store.OK {
			t.Errorf("commit: %v %v", results, err)
		}
	})
	for {
		parcels, cells, err := s.Told(t.Context(), repairShard, store.ToldQuery{Limit: 10, Cells: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(parcels) == 0 {
			runtime.Gosched()
			continue
		}
		if string(parcels[0].Body) != "2" || len(cells) != 1 || string(cells[0].Body) != "1" {
			t.Errorf("told %+v of %+v", parcels, cells)
		}
		return
	}
}

// unsynced returns a store with a claim of repairShard whose log is not synced from now on, until
// release is called.
func unsynced(t *testing.T) (s *Store, release func()) {
	t.Helper()
	inner := vfs.NewMem()
	makeMemDir(t, inner)
	var block atomic.Bool
	released := make(chan struct{})
	s, err := open(smallConfig, errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		isSync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		if isSync && filepath.Ext(op.Path) == ".log" && block.Load() {
			<-released
		}
		return nil
	})), quiet)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)
	claim(t, s, repairShard)
	block.Store(true)
	return s, sync.OnceFunc(func() { close(released) })
}

// TestCommitsAreToldOfBeforeTheyAreSynced: the owner of the shard goes on with what is made, and with what
// has arrived, whose sync is one with that of what it does.
func TestCommitsAreToldOfBeforeTheyAreSynced(t *testing.T) {
	s, release := unsynced(t)
	heard := make(chan int64, 10)
	s.OnInBox(func(at store.Shard, in int64) {
		if at != repairShard {
			t.Errorf("heard of %v", at)
		}
		heard <- in
	})
	made, returned := make(chan store.Stamp, 10), make(chan store.Stamp)
	commit := func(c store.Commit) {
		go func() {
			stamp, results, err := s.Commit(t.Context(), repairShard, nil, []store.Commit{c})
			if err != nil || results[0].Status != store.OK {
				t.Errorf("commit: %v %v", results, err)
			}
			returned <- stamp
		}()
	}
	commit(store.Commit{Send: []store.Parcel{{To: "wflow", Body: []byte("2")}}})
	in := <-heard
	commit(store.Commit{
		Puts: []store.Put{{Cell: store.Cell{ID: "wflow", Body: []byte("1")}}}, Take: in,
		Adds: []*store.Task{{ID: "x", Due: 1}}, Made: func(at store.Stamp) { made <- at },
	})
	at := <-made
	select {
	case <-returned:
		t.Error("a commit was answered before its sync")
	default:
	}
	release()
	first, second := <-returned, <-returned
	if at.In != in || max(first.Seq, second.Seq) != at.Seq {
		t.Errorf("told of seq %d, in-box %d; want %d and %d, %d", at.Seq, at.In, first.Seq, second.Seq, in)
	}
	if len(heard)+len(made) > 0 {
		t.Error("told twice")
	}
}

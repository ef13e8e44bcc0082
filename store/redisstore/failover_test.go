package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// slack is how much later than the servers the service may be back, besides what a
// client that knew nothing of before takes for the same. It is far more than it takes, and far
// less than the library takes by itself.
const slack = 10 * time.Second

// newcomer returns how long a client that is opened now takes for as many calls, one after
// the other, as go by in three cycles of a load: a machine that stands still does so for
// both.
func newcomer(t *testing.T, url string) <-chan time.Duration {
	done, began := make(chan time.Duration, 1), time.Now()
	go func() {
		defer close(done)
		var s *redisstore.Store
		for s == nil && t.Context().Err() == nil {
			s, _ = redisstore.Open(t.Context(), redisstore.Config{URL: url}, quiet())
		}
		if s == nil {
			return
		}
		defer s.Close()
		for calls := 0; calls < 9 && t.Context().Err() == nil; {
			if _, _, err := s.Add(t.Context(), store.Shard{Topic: "yardstick"}, newTasks(8, 1)); err == nil {
				calls++
			}
		}
		done <- time.Since(began)
	}()
	return done
}

// checkBack fails when a load takes much longer than a newcomer to go on.
func (l *load) checkBack(newcomer <-chan time.Duration, servers, service time.Duration) {
	l.t.Helper()
	other := <-newcomer
	l.t.Logf("the servers were back %v after the kill, the service %v later, and one that was begun then after %v", servers, service, other)
	if service > slack+3*other {
		l.t.Errorf("the service is back %v after the servers, want at most %v, and three times the %v that a client takes that was opened then", service, slack, other)
	}
}

func ownerKey(s store.Shard) string { return fmt.Sprintf("ddq:{%s:%d}:owner", s.Topic, s.N) }

// TestSlotsMoveUnderLoad moves a shard's slot around a cluster, key by key, also
// to a node that joined a moment before.
func TestSlotsMoveUnderLoad(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	s := open(t, cluster.URL())
	l := startLoad(t, s, 4)
	l.awaitAll(3)
	key := ownerKey(l.shards[0].shard)
	stay := 1
	from, _ := cluster.MasterOf(t, key)
	for _, to := range append(cluster.Masters(t), cluster.Join(t), from) {
		if at, _ := cluster.MasterOf(t, key); at == to {
			continue
		}
		cluster.Move(t, key, to, func() { l.await(stay, 2) })
		l.await(0, 3)
	}
	l.awaitAll(3)
	l.check()
}

// TestClusterMasterIsKilledUnderLoad kills the master of a shard.
func TestClusterMasterIsKilledUnderLoad(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 2)
	url := cluster.URL() + "?wait_replicas=1&wait_timeout=500ms"
	l := startLoad(t, open(t, url), 4)
	l.awaitAll(5)
	key := ownerKey(l.shards[0].shard)
	master, _ := cluster.MasterOf(t, key)
	killed := time.Now()
	master.Kill()
	cluster.AwaitTakeover(t, key)
	back, other := time.Now(), newcomer(t, url)
	l.awaitAll(3)
	l.checkBack(other, back.Sub(killed), time.Since(back))
	master.Restart() // as a replica of the new one
	l.awaitAll(3)
	l.check()
}

// TestClusterMasterIsFrozenUnderLoad stops the master of a shard until a replica
// has taken over, and lets it go on then.
func TestClusterMasterIsFrozenUnderLoad(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 2)
	s, err := redisstore.Open(t.Context(), redisstore.Config{
		URL: cluster.URL(), WaitReplicas: 1, WaitTimeout: 500 * time.Millisecond, Timeout: time.Second,
	}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := startLoad(t, s, 4)
	l.awaitAll(5)
	master, _ := cluster.MasterOf(t, ownerKey(l.shards[0].shard))
	frozen := time.Now()
	master.Pause()
	l.awaitAll(3)
	t.Logf("the service is back %v after the master stood still", time.Since(frozen))
	master.Resume()
	l.awaitAll(10)
	l.check()
}

// TestPrimaryIsKilledUnderLoad kills the primary that sentinels watch.
func TestPrimaryIsKilledUnderLoad(t *testing.T) {
	set := redistest.StartSentinel(t)
	url := set.URL() + "?wait_replicas=1&wait_timeout=500ms"
	l := startLoad(t, open(t, url), 4)
	l.awaitAll(5)
	primary := set.Primary(t)
	killed := time.Now()
	primary.Kill()
	set.AwaitTakeover(t)
	back, other := time.Now(), newcomer(t, url)
	l.awaitAll(3)
	l.checkBack(other, back.Sub(killed), time.Since(back))
	l.check()
}

// TestStatsOfShardsOnSeveralNodes asks for many shards at once while no node
// knows the script.
func TestStatsOfShardsOnSeveralNodes(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 0)
	s := claim(t, open(t, cluster.URL()))
	ctx := t.Context()
	var shards []store.Shard
	for n := range 60 {
		shard := store.Shard{Topic: "mail", N: n}
		shards = append(shards, shard)
		if _, _, err := s.Add(ctx, shard, newTasks(n, 1)); err != nil {
			t.Fatal(err)
		}
	}
	joined := cluster.Join(t)
	cluster.Move(t, ownerKey(shards[7]), joined, func() {})
	for _, node := range cluster.Masters(t) {
		node.Do(t, "SCRIPT", "FLUSH")
	}
	stats, err := s.Stats(ctx, shards)
	if err != nil {
		t.Fatal(err)
	}
	for n, got := range stats {
		if got.Pending != int64(n) {
			t.Errorf("shard %d has %d pending tasks, want %d", n, got.Pending, n)
		}
	}
}

// TestShortWaitIsUnknown stops the only replica: no change may be answered with
// success, also when it finds that it was made before.
func TestShortWaitIsUnknown(t *testing.T) {
	primary := redistest.StartTCP(t)
	replica := redistest.StartReplica(t, primary)
	s := claim(t, open(t, "redis://"+primary.Addr()+"?wait_replicas=1&wait_timeout=500ms"))
	ctx := t.Context()
	if info, err := s.Info(ctx); err != nil || info.Durability != "replicated" || len(info.Warnings) != 0 {
		t.Errorf("info is %+v, %v; want replicated without warnings", info, err)
	}
	tasks := newTasks(3, 1)
	replica.Pause()
	for range 2 { // the second time there is nothing to do
		if _, _, err := s.Add(ctx, s.shard, tasks); !errors.Is(err, store.ErrUnknown) {
			t.Errorf("add without a replica: %v, want %v", err, store.ErrUnknown)
		}
	}
	if _, err := s.RenewSession(ctx, s.session); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("begin a session without a replica: %v, want %v", err, store.ErrUnknown)
	}
	renewal := s.session
	renewal.Begin = false
	if _, err := s.RenewSession(ctx, renewal); err != nil {
		t.Errorf("renew without a replica: %v", err)
	}
	if _, got, err := s.Get(ctx, s.shard, []string{tasks[0].ID}); err != nil || got[0].State != store.StateReady {
		t.Errorf("get without a replica: %+v, %v", got, err)
	}
	replica.Resume()
	eventually(t, "add with the replica", func() error {
		_, results, err := s.Add(context.Background(), s.shard, tasks)
		if err == nil && results[0].Status != store.Duplicate {
			t.Errorf("status is %d, want %d", results[0].Status, store.Duplicate)
		}
		return err
	})
}

// TestChangesAreToldOnceReplicasHaveThem stops the only replica: what a failover would
// undo is not told, and where nothing is new nobody waits.
func TestChangesAreToldOnceReplicasHaveThem(t *testing.T) {
	primary := redistest.StartTCP(t)
	replica := redistest.StartReplica(t, primary)
	s := claim(t, open(t, "redis://"+primary.Addr()+"?wait_replicas=1&wait_timeout=500ms"))
	if err := s.Watch(t.Context(), s.shard, store.Watching{Retention: time.Hour, Max: 1000}); err != nil {
		t.Fatal(err)
	}
	tasks := newTasks(2, 1)
	if _, _, err := s.Add(t.Context(), s.shard, tasks[:1]); err != nil {
		t.Fatal(err)
	}
	look := func(ctx context.Context, after int64, limit int) (store.LogPage, error) {
		pages, err := s.Changes(ctx, []store.LogRead{{Shard: s.shard, After: after, Limit: limit}})
		if err != nil {
			return store.LogPage{}, err
		}
		return pages[0], nil
	}
	if page, err := look(t.Context(), 0, 10); err != nil || len(page.Changes) != 1 {
		t.Errorf("with the replica: %+v, %v", page, err)
	}
	replica.Pause()
	if page, err := look(t.Context(), 1, 10); err != nil || len(page.Changes) != 0 || page.Last != 1 {
		t.Errorf("nothing new, without the replica: %+v, %v", page, err)
	}
	if _, _, err := s.Add(t.Context(), s.shard, tasks[1:]); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("add without a replica: %v, want %v", err, store.ErrUnknown)
	}
	for _, limit := range []int{10, 0} {
		if page, err := look(t.Context(), 1, limit); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a change that no replica has: %+v, %v", page, err)
		}
	}
	replica.Resume()
	eventually(t, "changes with the replica", func() error {
		page, err := look(context.Background(), 1, 10)
		if err == nil && (len(page.Changes) != 1 || page.Changes[0].ID != tasks[1].ID) {
			t.Errorf("got %+v", page)
		}
		return err
	})
}

// TestUnansweredChangesAreMarked sees that a call that has nothing to do gives
// replicas something to wait for, and only where they are waited for.
func TestUnansweredChangesAreMarked(t *testing.T) {
	primary := redistest.StartTCP(t)
	redistest.StartReplica(t, primary)
	for url, want := range map[string]int64{
		"redis://" + primary.Addr():                      0,
		"redis://" + primary.Addr() + "?wait_replicas=1": 1,
	} {
		primary.Do(t, "FLUSHALL")
		s := claim(t, open(t, url))
		if _, _, err := s.Remove(t.Context(), s.shard, store.Removals("unknown")); err != nil {
			t.Fatal(err)
		}
		if got := primary.Do(t, "HEXISTS", ownerKey(s.shard), "waited"); got != want {
			t.Errorf("%s: marked: %v, want %d", url, got, want)
		}
		if _, _, err := s.Get(t.Context(), s.shard, []string{"unknown"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInfoWarnsOfMissingReplicas(t *testing.T) {
	server := redistest.Start(t)
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL(), WaitReplicas: 1}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	awaitWarning(t, s, "0 of the 1 replicas")
}

package redisstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// seen is what a store says of its servers.
type seen struct{ server, servers uint64 }

func look(t *testing.T, s shardOf) (seen, error) {
	t.Helper()
	counts, err := s.Counts(t.Context(), []store.Shard{s.shard})
	if err != nil {
		return seen{}, err
	}
	info, err := s.Info(t.Context())
	return seen{counts[0].Server, info.Servers}, err
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// awaitAnother waits until the store says that another server has the shard.
func awaitAnother(t *testing.T, s shardOf, was seen) {
	t.Helper()
	if was.server == 0 || was.servers == 0 {
		t.Fatalf("before there was %+v, want a server", was)
	}
	eventually(t, "another server", func() error {
		now, err := look(t, s)
		switch {
		case err != nil:
			return err
		case now.server == was.server || now.servers == was.servers:
			return fmt.Errorf("there is %+v, and was %+v", now, was)
		}
		return nil
	})
	stamp, _, err := s.Claim(t.Context(), s.shard, s.session)
	if now, e := look(t, s); errors.Join(err, e) != nil || stamp.Server != now.server {
		t.Fatalf("a claim says server %d, and counts %+v: %v", stamp.Server, now, errors.Join(err, e))
	}
}

// startForAKill starts a server that has on disk what it answered. With everysec, the default of
// tests, it answers while a sync goes on and writes up to two seconds later: a kill takes that.
func startForAKill(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t, "--appendfsync", "always")
}

func TestRestartedServerIsAnother(t *testing.T) {
	server := startForAKill(t)
	s := claim(t, open(t, server.URL()))
	was, err := look(t, s)
	noError(t, err)
	for range 20 { // a pool of connections, to the same server
		noError(t, s.Release(t.Context(), s.shard, s.fence))
		_, s.fence, err = s.Claim(t.Context(), s.shard, s.session)
		noError(t, err)
	}
	if now, err := look(t, s); err != nil || now != was {
		t.Fatalf("there is %+v, want %+v as before: %v", now, was, err)
	}
	server.Kill()
	server.Restart()
	awaitAnother(t, s, was)
}

// TestCommitIsForTheServerThatWasRead has the first command at a server that took over be what
// follows from the one before.
func TestCommitIsForTheServerThatWasRead(t *testing.T) {
	server := startForAKill(t)
	s := claim(t, open(t, server.URL()))
	_, _, err := s.Commit(t.Context(), s.shard, &s.fence, []store.Commit{{Send: []store.Parcel{{To: "sdaily", Body: []byte("x")}}}})
	noError(t, err)
	before, _, err := s.Wakes(t.Context(), s.shard, store.WakeQuery{Limit: 1})
	noError(t, err)
	server.Kill()
	server.Restart()
	for _, why := range []string{"it is another one", "it is known to be"} {
		_, _, err := s.Commit(t.Context(), s.shard, &s.fence, []store.Commit{{Take: before.In, From: before.Server}})
		if !errors.Is(err, store.ErrAnotherServer) {
			t.Errorf("%s: %v, want %v", why, err, store.ErrAnotherServer)
		}
	}
	after, _, err := s.Wakes(t.Context(), s.shard, store.WakeQuery{Limit: 1})
	noError(t, err)
	if parcels, err := s.Parcels(t.Context(), s.shard, store.InBox, 0, 10); err != nil || len(parcels) != 1 {
		t.Errorf("%d parcels are there, want 1: %v", len(parcels), err)
	}
	_, _, err = s.Commit(t.Context(), s.shard, &s.fence, []store.Commit{{Take: after.In, From: after.Server}})
	noError(t, err)
}

// TestSessionFindsARestartedServer is of a node at rest: nothing else is asked.
func TestSessionFindsARestartedServer(t *testing.T) {
	server := startForAKill(t)
	s := claim(t, open(t, server.URL()))
	was, err := look(t, s)
	noError(t, err)
	server.Kill()
	server.Restart()
	s.session.Begin = false
	eventually(t, "a renewal", func() error {
		_, err := s.RenewSession(t.Context(), s.session)
		return err
	})
	if info, err := s.Info(t.Context()); err != nil || info.Servers == was.servers {
		t.Fatalf("servers are %d after the restart, as before: %v", info.Servers, err)
	}
}

// TestSessionDoesNotSayWhereShardsAre: sessions are renewed on a connection of their own. That it
// came to another server must not pass for that of the others: what these read is of the old one.
func TestSessionDoesNotSayWhereShardsAre(t *testing.T) {
	server := startForAKill(t)
	s := claim(t, open(t, server.URL()))
	was, err := look(t, s)
	noError(t, err)
	server.Kill()
	server.Restart()
	s.session.Begin = false
	eventually(t, "a renewal", func() error {
		_, err := s.RenewSession(t.Context(), s.session)
		return err
	})
	if now, err := look(t, s); err != nil || now.server != was.server {
		t.Fatalf("the first answer since the restart is said to be of server %d, want %d, the one that was asked: %v", now.server, was.server, err)
	}
	if now, err := look(t, s); err != nil || now.server == was.server {
		t.Fatalf("the second answer is said to be of server %d, as before: %v", now.server, err)
	}
}

// TestSentinelsAreNoServers: the library greets the sentinels that it asks, too.
func TestSentinelsAreNoServers(t *testing.T) {
	set := redistest.StartSentinel(t)
	var said bytes.Buffer
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: set.URL()}, slog.New(slog.NewTextHandler(&said, nil)))
	noError(t, err)
	claim(t, s)
	noError(t, s.Close())
	if strings.Contains(said.String(), "another took over") {
		t.Errorf("a primary that stays was said to be another one:\n%s", &said)
	}
}

// TestFormerServerAnswersNoMore has a name come to stand for another server while connections to
// the former one are open and it goes on to answer: sentinels, names and balancers do that.
func TestFormerServerAnswersNoMore(t *testing.T) {
	former, other := redistest.Start(t), redistest.Start(t)
	p := startProxy(t, former)
	s := claim(t, open(t, "redis://"+p.listener.Addr().String()))
	for range 20 {
		inParallel(t, 8, func() error { _, err := s.Counts(t.Context(), []store.Shard{s.shard}); return err })
	}
	_, _, err := s.Add(t.Context(), s.shard, newTasks(1, store.MaxDue))
	noError(t, err)
	was, err := look(t, s)
	noError(t, err)

	p.server.Store(other)
	p.mu.Lock()
	if len(p.conns) < 4 {
		t.Fatalf("%d connections, want those of two calls at once", len(p.conns)/2)
	}
	p.conns[0].Close() // the next one leads to the other server
	p.mu.Unlock()
	eventually(t, "the other server", func() error {
		inParallel(t, 8, func() error { _, _ = look(t, s); return nil })
		now, err := look(t, s)
		if now.server == was.server {
			err = errors.Join(err, errors.New("the former one answers"))
		}
		return err
	})
	inParallel(t, 64, func() error {
		counts, err := s.Counts(t.Context(), []store.Shard{s.shard})
		if err == nil && (counts[0].Pending != 0 || counts[0].Server == was.server) {
			return fmt.Errorf("%d tasks are there, says server %d, the former one: it was %d", counts[0].Pending, counts[0].Server, was.server)
		}
		return err
	})
}

// TestServersThatAnswerByTurns is of an address behind which a balancer has several processes.
func TestServersThatAnswerByTurns(t *testing.T) {
	a, b := redistest.Start(t), redistest.Start(t)
	p := startProxy(t, a)
	s := open(t, "redis://"+p.listener.Addr().String())
	p.turns.Store(b)
	for range 50 {
		inParallel(t, 8, func() error { _, _ = s.Clock(t.Context()); return nil })
	}
	inParallel(t, 8, func() error { _, err := s.Clock(t.Context()); return err })
}

// inParallel calls do so many times at once.
func inParallel(t *testing.T, n int, do func() error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = do() })
	}
	wg.Wait()
	noError(t, errors.Join(errs...))
}

func TestPrimaryThatTookOverIsAnother(t *testing.T) {
	set := redistest.StartSentinel(t)
	s := claim(t, open(t, set.URL()))
	was, err := look(t, s)
	noError(t, err)
	set.HandOver(t)
	set.AwaitTakeover(t)
	awaitAnother(t, s, was)
}

func TestClusterMasterThatTookOverIsAnother(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, 2)
	s := claim(t, open(t, cluster.URL()))
	was, err := look(t, s)
	noError(t, err)
	master, _ := cluster.MasterOf(t, ownerKey(s.shard))
	master.Kill()
	cluster.AwaitTakeover(t, ownerKey(s.shard))
	awaitAnother(t, s, was)
}

package actors_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// A store that was flushed, or restored from a backup, knows neither the node's session nor
// who owns a shard, and perhaps another session from long ago.
func TestNodeGoesOnAfterTheStoreForgotIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		empty := st.Clone()
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.Background())
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "before", time.Hour))
		synctest.Wait()

		st.Restore(empty)
		time.Sleep(4 * s.Node().Config().LeaseTTL)
		if err := s.Node().Ready(); err != nil {
			t.Errorf("four leases later: %v", err)
		}
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "after", time.Second))
		subscribed := servicetest.Subscribe(t, s, "mail", 10) // the topic is another one than before
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := subscribed.Take(); len(got) != 1 || got[0].Task.ID != "after" {
			t.Errorf("delivered %d tasks, want the one that was enqueued since", len(got))
		}
	})
}

// While another process of its name renews the session a node says so; when that is gone the
// node goes on.
func TestNodeGoesOnAfterAnotherProcessOfItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := servicetest.Start(t, actors.Config{Node: "n1"}, st)
		defer s.Node().Stop(context.Background())
		rival := actors.NewRival(st, slog.New(slog.DiscardHandler), store.Session{Node: "n1", Start: store.NewToken(), TTL: s.Node().Config().LeaseTTL, Addr: "10.0.0.9:9090"})
		if err := rival.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		rival.Start()
		time.Sleep(2 * s.Node().Config().LeaseTTL)
		if err := s.Node().Ready(); !errors.Is(err, store.ErrSessionLost) {
			t.Errorf("while the other one lives: %v, want %v", err, store.ErrSessionLost)
		}
		rival.Close()
		time.Sleep(2 * s.Node().Config().LeaseTTL)
		if err := s.Node().Ready(); err != nil {
			t.Errorf("after the other one was gone: %v", err)
		}
	})
}

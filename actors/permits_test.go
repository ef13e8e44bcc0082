package actors_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// The worker is at one node, and the tasks are in shards of three, none of which hears that a
// hold is over. Each task is held for an hour, under a permit that lasts as long.
func TestWhoSettlesAHoldFreesItsPermit(t *testing.T) {
	caps := map[string]service.TopicChange{
		"the topic's cap": {Concurrency: new(1)},
		"a key's cap":     {KeyConcurrency: new(1)},
		"both":            {Concurrency: new(1), KeyConcurrency: new(1)},
	}
	for name, limits := range caps {
		for does, kind := range map[string]subscription.SettleKind{"acks": subscription.SettleAck, "nacks": subscription.SettleNack} {
			for _, at := range []string{"b", "c"} {
				t.Run(fmt.Sprintf("%s, %s at %s", name, does, at), func(t *testing.T) {
					testPermitFreed(t, limits, kind, at)
				})
			}
		}
	}
}

// testPermitFreed settles tasks that a worker of node b has, at a node.
func testPermitFreed(t *testing.T, limits service.TopicChange, kind subscription.SettleKind, at string) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", limits)
		w := servicetest.Subscribe(t, f.Nodes["b"].Sys, "mail", 100)
		servicetest.Idle(3 * time.Second)
		const tasks = 16
		f.Backlog("mail", tasks, func(_ int, n *service.NewTask) {
			n.Task.Visibility, n.Task.MaxRetries, n.Task.Traits = time.Hour, 0, &store.Traits{ConcurrencyKey: "k"}
		})
		servicetest.Idle(time.Second)
		f.Edit(func() { f.Deaf = true })
		seen := 0
		for range tasks {
			for _, d := range w.Take() {
				seen++
				got, err := f.Nodes[at].Sys.Delivery.Settle(t.Context(), "mail", []subscription.Settlement{
					{Kind: kind, ID: d.Task.ID, Token: d.Token, Permanent: kind == subscription.SettleNack},
				})
				if err != nil || got[0].Err != nil {
					t.Fatal(err, got[0].Err)
				}
			}
			servicetest.Idle(3 * time.Second)
		}
		if seen != tasks {
			t.Errorf("%d of %d tasks were delivered: the permit of one before was not freed", seen, tasks)
		}
	})
}

// TestAnExtendOfAHoldThatIsOverLeavesNoPermit: a worker extends a hold by twelve hours that has ended meanwhile, and the
// store is lost behind the call that makes its permits longer, or the task is gone behind it. Neither keeps a place.
func TestAnExtendOfAHoldThatIsOverLeavesNoPermit(t *testing.T) {
	for name, limits := range map[string]service.TopicChange{
		"the topic's cap": {Concurrency: new(1)}, "a key's cap": {KeyConcurrency: new(1)},
	} {
		for at, over := range map[string]func(f *servicetest.Fleet, settle func(kind subscription.SettleKind)){
			"the store is lost": func(f *servicetest.Fleet, settle func(subscription.SettleKind)) {
				settle(subscription.SettleNack)
				servicetest.Idle(time.Second)
				f.Nodes["b"].Store.OnMove(func() error { return store.ErrUnavailable })
			},
			"it is done meanwhile": func(f *servicetest.Fleet, settle func(subscription.SettleKind)) {
				once := sync.OnceFunc(func() { settle(subscription.SettleAck); servicetest.Idle(time.Second) })
				f.Nodes["b"].Store.OnMove(func() error { once(); return nil })
			},
		} {
			t.Run(name+", "+at, func(t *testing.T) {
				servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
					f.Limited("mail", limits)
					w := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 100)
					servicetest.Idle(3 * time.Second)
					f.Backlog("mail", 1, func(_ int, n *service.NewTask) {
						n.Task.Traits, n.Task.MaxRetries = &store.Traits{ConcurrencyKey: "k"}, 1
						n.Task.Backoff = &store.Backoff{Kind: store.BackoffFixed, Base: 24 * time.Hour}
					})
					servicetest.Idle(time.Second)
					d := w.TakeOne()
					settle := func(node string, s subscription.Settlement) {
						s.ID, s.Token = d.Task.ID, d.Token
						_, err := f.Nodes[node].Sys.Delivery.Settle(t.Context(), "mail", []subscription.Settlement{s})
						if err != nil {
							t.Error(err)
						}
					}
					over(f, func(kind subscription.SettleKind) { settle("a", subscription.Settlement{Kind: kind}) })
					settle("b", subscription.Settlement{Kind: subscription.SettleExtend, Extend: 12 * time.Hour})
					f.Nodes["b"].Store.OnMove(nil)
					servicetest.Idle(10 * time.Second)
					for _, key := range []string{"", "k"} {
						got, err := f.Store.Acquire(t.Context(), []store.Acquire{{Key: store.CapKey("mail", key), Max: 1}})
						if err != nil || got[0].InUse != 0 {
							t.Errorf("%d permits of %q are in use (%v), and nothing is held", got[0].InUse, key, err)
						}
					}
				})
			})
		}
	}
}

// TestAPermitThatIsGivenBackIsAnnounced has node a hold the permit of a key for as long as it asks in vain for that
// of the topic, as the store has no Take. Node b, which waits for the key, is in line for the topic's by then, and goes
// on when that is free.
func TestAPermitThatIsGivenBackIsAnnounced(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		for _, n := range f.Nodes {
			n.Store.NoTake.Store(true)
		}
		f.Limited("mail", service.TopicChange{Concurrency: new(1), KeyConcurrency: new(1)})
		w := servicetest.Subscribe(t, f.Nodes["b"].Sys, "mail", 100)
		servicetest.Idle(3 * time.Second)
		enqueue := func(owner, key string) (id string) {
			t.Helper()
			task := servicetest.After("mail", idOwnedBy(t, f, owner, key), 0)
			task.Task.Traits = &store.Traits{ConcurrencyKey: key}
			servicetest.EnqueueOne(t, f.Nodes["b"].Sys, task)
			servicetest.Idle(time.Millisecond)
			return task.Task.ID
		}
		enqueue("b", "other")
		first := w.TakeOne()

		asks, goOn := make(chan struct{}), make(chan struct{})
		once := sync.OnceFunc(func() { close(asks); <-goOn })
		f.Nodes["a"].Store.OnAcquire(func(key string) {
			if key == "" {
				once()
			}
		})
		here := enqueue("a", "k")
		<-asks
		there := enqueue("b", "k")
		close(goOn)
		servicetest.Idle(time.Millisecond)
		if _, err := f.Nodes["a"].Sys.Tasks.Delete(t.Context(), "mail", here); err != nil {
			t.Fatal(err)
		}
		w.Settle(subscription.SettleAck, first)
		servicetest.Idle(100 * time.Millisecond)
		if got := w.TakeOne(); got.Task.ID != there {
			t.Errorf("%s was delivered, want %s", got.Task.ID, there)
		}
	})
}

// idOwnedBy is an id of a shard of the topic mail that a node owns.
func idOwnedBy(t *testing.T, f *servicetest.Fleet, node, of string) string {
	t.Helper()
	const shards = 12
	all := make([]store.Shard, shards)
	for n := range all {
		all[n] = store.Shard{Topic: "mail", N: n}
	}
	stats, err := f.Store.Counts(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if id := fmt.Sprint(of, "-", node, "-", i); stats[place.ShardOf(id, shards)].Owner == node {
			return id
		}
	}
	t.Fatalf("%s owns no shard", node)
	return ""
}

package actors_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const idleAfter = 10 * time.Minute // the default, and what the chores take to notice

func TestIdleTopicCloses(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Second))
		servicetest.Idle(2 * time.Second)
		w.Settle(subscription.SettleAck, w.TakeOne())
		servicetest.Idle(idleAfter + time.Minute)
		open(t, s, "mail", true) // it has a subscription
		w.Sub.Unsubscribe(nil)
		servicetest.Idle(idleAfter - time.Minute)
		open(t, s, "mail", true)
		servicetest.Idle(2 * time.Minute)
		open(t, s, "mail", false)
	})
}

func TestTopicThatIsUsedStaysOpen(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		for range 6 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
			if _, err := s.Tasks.Delete(t.Context(), "mail", "a"); err != nil {
				t.Fatal(err)
			}
			servicetest.Idle(idleAfter / 2)
			open(t, s, "mail", true)
		}
		servicetest.Idle(idleAfter + time.Minute)
		open(t, s, "mail", false)
	})
}

// A task that is due in a quarter of an hour has its owner keep the topic open.
func TestTopicWithTasksStaysOpen(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 20*time.Minute))
		for range 20 {
			servicetest.Idle(time.Minute)
			open(t, s, "mail", true)
		}
	})
}

func TestIdleTopicOpensOnItsNextUse(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		for round := range 3 {
			name := fmt.Sprint("task-", round)
			in := servicetest.EnqueueOne(t, s, servicetest.After("mail", name, 5*time.Second))
			if in.Err != nil {
				t.Fatal(in.Err)
			}
			w := servicetest.Subscribe(t, s, "mail", 1)
			servicetest.Idle(6 * time.Second)
			d := w.TakeOne()
			if late := w.At[len(w.At)-1].Sub(in.Due.Time()); d.Task.ID != name || late < 0 || late > 2*time.Millisecond {
				t.Fatalf("%s, late by %v", d.Task.ID, late)
			}
			w.Settle(subscription.SettleAck, d)
			servicetest.Idle(time.Second)
			w.Sub.Unsubscribe(nil)
			servicetest.Idle(idleAfter + time.Minute)
			open(t, s, "mail", false)
		}
	})
}

// Nobody owns the shards of a topic that is closed everywhere. An enqueue at any node has it
// opened at the owners, and tasks are in hand at their milliseconds.
func TestIdleTopicOpensAtItsOwners(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		for round, at := range []string{"a", "b", "c", "a"} {
			w := f.Work(f.Nodes[at], "mail", 1000)
			w.Enqueue(f.Nodes[at], "mail", fmt.Sprint("first-", round), 100, 2*time.Second)
			w.Run(3 * time.Second)
			w.Done(20 * time.Millisecond)
			w.Sub.Unsubscribe(nil)
			servicetest.Idle(idleAfter + time.Minute)
			for _, n := range f.Nodes {
				open(t, n.Sys, "mail", false)
			}
			unowned(t, f, "mail")
		}
		w := f.Work(f.Nodes["b"], "sms", 1) // what is open elsewhere does not matter
		defer w.Sub.Unsubscribe(nil)
		w.Run(time.Second)
		enqueueFar(t, f, "c")
	})
}

// enqueueFar stores tasks beyond the horizon of a closed topic, and has a worker come when
// they are due only.
func enqueueFar(t *testing.T, f *servicetest.Fleet, at string) {
	t.Helper()
	for i := range 50 {
		task := servicetest.After("mail", fmt.Sprint("far-", i), 30*time.Minute)
		if in := servicetest.EnqueueOne(t, f.Nodes[at].Sys, task); in.Err != nil {
			t.Fatal(in.Err)
		}
	}
	servicetest.Idle(29 * time.Minute)
	w := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 100)
	servicetest.Idle(70 * time.Second)
	got := w.Take()
	if len(got) != 50 {
		t.Fatalf("%d deliveries, want 50", len(got))
	}
	for i, d := range got {
		if late := w.At[len(w.At)-50+i].Sub(d.Task.Due.Time()); late < 0 || late > 20*time.Millisecond {
			t.Errorf("%s is late by %v", d.Task.ID, late)
		}
	}
	for _, d := range got {
		w.Settle(subscription.SettleAck, d)
	}
}

// A node at which nobody uses a topic, and which owns none of its shards, closes it though
// the others go on.
func TestTopicClosesAtANodeWithoutItsShards(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		if err := a.Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		servicetest.EnqueueOne(t, a.Sys, servicetest.After("mail", "a", 20*time.Minute))
		open(t, a.Sys, "mail", true)
		servicetest.Idle(idleAfter + time.Minute)
		open(t, a.Sys, "mail", false)
		open(t, b.Sys, "mail", true)
	})
}

// A node that joins while a topic is closed gets its part of the shards.
func TestClosedTopicIsSharedWithANewNode(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["a"], "mail", 1000)
		w.Enqueue(f.Nodes["a"], "mail", "t", 100, time.Second)
		w.Run(2 * time.Second)
		w.Done(20 * time.Millisecond)
		w.Sub.Unsubscribe(nil)
		servicetest.Idle(idleAfter + time.Minute)
		open(t, f.Nodes["a"].Sys, "mail", false)
		b := f.Join("b")
		servicetest.Idle(time.Second)
		w = f.Work(b, "mail", 1000)
		w.Enqueue(b, "mail", "u", 100, time.Second)
		w.Run(2 * time.Second)
		w.Done(50 * time.Millisecond)
		if owners := f.Owners("mail"); !slices.Contains(owners, "a") || !slices.Contains(owners, "b") {
			t.Errorf("owned by %q", owners)
		}
		w.Sub.Unsubscribe(nil)
	})
}

var closingRounds = flag.Int("closing.rounds", 6, "how many rounds TestUseMeetsTheClosing plays")

// Uses that meet the closing of a topic come through, whoever is first. `make long` plays
// more rounds.
func TestUseMeetsTheClosing(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"]
		w := f.Work(a, "mail", 1)
		w.Enqueue(a, "mail", "first", 1, time.Millisecond)
		w.Run(time.Second)
		w.Done(time.Second)
		w.Sub.Unsubscribe(nil)
		for round := range dose(*closingRounds) {
			servicetest.Idle(idleAfter + time.Minute)
			open(t, a.Sys, "mail", false)
			in := servicetest.EnqueueOne(t, a.Sys, servicetest.After("mail", fmt.Sprint("x", round), 0))
			if in.Err != nil {
				t.Fatal(in.Err)
			}
			if _, err := a.Sys.Tasks.Delete(t.Context(), "mail", in.ID); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idleAfter)
			go a.Sys.Node().Topics().CloseIdle(t.Context())
			go b.Sys.Node().Topics().CloseIdle(t.Context())
			id := fmt.Sprint("y", round)
			if in := servicetest.EnqueueOne(t, b.Sys, servicetest.After("mail", id, 10*time.Millisecond)); in.Err != nil {
				t.Fatal(in.Err)
			}
			o := servicetest.Subscribe(t, a.Sys, "mail", 1)
			servicetest.Idle(time.Second)
			d := o.TakeOne()
			if late := o.At[0].Sub(d.Task.Due.Time()); d.Task.ID != id || late > 300*time.Millisecond {
				t.Fatalf("%s, late by %v", d.Task.ID, late)
			}
			o.Settle(subscription.SettleAck, d)
			servicetest.Idle(time.Second)
			o.Sub.Unsubscribe(nil)
		}
	})
}

// A claim that the store has still, although the topic is closed, is given up when another
// node says so: as after a failover that undid its release.
func TestClosedTopicGivesUpAClaimThatCameBack(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		if err := a.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		at := store.Shard{Topic: "mail", N: 7}
		if _, _, err := f.Store.Claim(t.Context(), at, a.Node().Session()); err != nil {
			t.Fatal(err)
		}
		servicetest.EnqueueOne(t, f.Nodes["b"].Sys, servicetest.After("mail", "a", time.Hour))
		open(t, a, "mail", false)
		servicetest.Idle(time.Minute)
		if owners := f.Owners("mail"); owners[at.N] != "b" {
			t.Errorf("shard %d is owned by %q", at.N, owners[at.N])
		}
	})
}

func open(t *testing.T, s *service.Service, topic string, want bool) {
	t.Helper()
	synctest.Wait()
	if _, got := s.Node().Topics().Opened(topic); got != want {
		t.Fatalf("at %s: %s is open: %v, want %v", s.Node().Config().Node, topic, got, want)
	}
}

func unowned(t *testing.T, f *servicetest.Fleet, topic string) {
	t.Helper()
	config, err := f.Store.GetTopic(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	stats, err := f.Store.Counts(t.Context(), place.Shards(&config))
	if err != nil {
		t.Fatal(err)
	}
	for n := range stats {
		if stats[n].Owner != "" {
			t.Errorf("shard %d is owned by %s", n, stats[n].Owner)
		}
	}
}

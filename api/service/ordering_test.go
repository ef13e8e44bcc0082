package service_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

func TestTasksOfAKeyGoOneAtATime(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		var tasks []service.NewTask
		for i := range 20 {
			tasks = append(tasks, servicetest.InLine("a", fmt.Sprint("a", i), 0), servicetest.InLine("b", fmt.Sprint("b", i), 0))
		}
		results, err := s.Tasks.Enqueue(t.Context(), tasks)
		if err != nil || results[0].Err != nil {
			t.Fatal(err, results[0].Err)
		}
		for i := range 20 {
			got := w.Gets(fmt.Sprint("a", i), fmt.Sprint("b", i))
			servicetest.Idle(time.Minute / 3) // and nothing else comes meanwhile
			w.Gets()
			for _, d := range got {
				w.Settle(subscription.SettleAck, d)
			}
		}
		w.Gets()
	})
}

// Asked for in hibiken/asynq#429, one after the other by key: what failed is tried again
// before what comes behind it.
func TestRetryKeepsTheHead(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		for i := range 3 {
			servicetest.EnqueueOne(t, s, servicetest.InLine("a", fmt.Sprint("a", i), 0))
		}
		first := w.Gets("a0")["a0"]
		later := time.Minute
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: first.Task.ID, Token: first.Token, Delay: &later, Error: "no"}})
		servicetest.EnqueueOne(t, s, servicetest.InLine("b", "b0", 0))
		w.Settle(subscription.SettleAck, w.Gets("b0")["b0"])
		servicetest.Idle(59 * time.Second)
		w.Gets()
		found, err := s.Tasks.Get(t.Context(), "mail", first.Task.ID)
		if err != nil || found.WaitingFor != service.WaitsForWorker || found.State != store.StateRetrying {
			t.Errorf("the head is %+v, %v", found.WaitingFor, err)
		}
		page, _, err := s.Finder.List(t.Context(), "mail", store.StateReady, 10, "")
		if err != nil || len(page) != 2 || page[0].WaitingFor != service.WaitsForOrder || page[1].WaitingFor != service.WaitsForOrder {
			t.Errorf("those behind it are %+v, %v", page, err)
		}
		servicetest.Idle(1001 * time.Millisecond)
		again := w.Gets("a0")["a0"]
		w.Sub.Settle(2, []subscription.Settlement{{Kind: subscription.SettleRelease, ID: again.Task.ID, Token: again.Token}})
		again = w.Gets("a0")["a0"]
		w.Sub.Settle(3, []subscription.Settlement{{Kind: subscription.SettleNack, ID: again.Task.ID, Token: again.Token, Permanent: true}})
		w.Settle(subscription.SettleAck, w.Gets("a1")["a1"]) // a dead letter keeps nothing back
		w.Settle(subscription.SettleAck, w.Gets("a2")["a2"])
	})
}

func TestWhatKeepsOthersBackMayGo(t *testing.T) {
	for name, c := range map[string]func(t *testing.T, s *service.Service, head string){
		"deleted": func(t *testing.T, s *service.Service, head string) {
			if _, err := s.Tasks.Delete(t.Context(), "mail", head); err != nil {
				t.Error(err)
			}
		},
		"deleted behind its back": func(t *testing.T, s *service.Service, head string) {
			f, err := s.Tasks.Get(t.Context(), "mail", head)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Node().Store().Remove(t.Context(), f.Shard, store.Removals(head)); err != nil {
				t.Error(err)
			}
			servicetest.Idle(15 * time.Second)
		},
		"promoted": func(t *testing.T, s *service.Service, head string) {
			if _, err := s.Tasks.Promote(t.Context(), "mail", head, 0); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
				w := servicetest.Subscribe(t, s, "mail", 100)
				servicetest.EnqueueOne(t, s, servicetest.InLine("a", "head", 0))
				servicetest.EnqueueOne(t, s, servicetest.InLine("a", "next", 0))
				head, later := w.Gets("head")["head"], 10*time.Minute // beyond the horizon
				w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: head.Task.ID, Token: head.Token, Delay: &later}})
				servicetest.Idle(time.Minute)
				w.Gets()
				c(t, s, head.Task.ID)
				if name == "promoted" {
					w.Settle(subscription.SettleAck, w.Gets("head")["head"])
				}
				w.Settle(subscription.SettleAck, w.Gets("next")["next"])
			})
		})
	}
}

// TestLaterRetryComesBack has a head that waits beyond the window of an owner whose
// budget is full of the tasks behind it.
func TestLaterRetryComesBack(t *testing.T) {
	servicetest.Bubble(t, actors.Config{ReadyBudget: 20, WheelBudget: 20, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		servicetest.EnqueueOne(t, s, servicetest.InLine("a", "head", 0))
		head, later := w.Gets("head")["head"], 10*time.Minute
		for i := range 200 {
			servicetest.EnqueueOne(t, s, servicetest.InLine("a", fmt.Sprintf("a%03d", i), 0))
		}
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: head.Task.ID, Token: head.Token, Delay: &later}})
		for i := range 100 { // other keys flow
			servicetest.EnqueueOne(t, s, servicetest.InLine(fmt.Sprint("b", i), "b", 0))
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint("c", i), 0))
		}
		others := 0
		for range 200 {
			for _, d := range w.Take() {
				others++
				w.Settle(subscription.SettleAck, d)
				_ = w.Sub.Grant(1)
			}
			synctest.Wait()
		}
		if others != 200 {
			t.Errorf("%d tasks of others came, want 200", others)
		}
		servicetest.Idle(10*time.Minute - time.Second)
		w.Gets()
		servicetest.Idle(1001 * time.Millisecond)
		w.Settle(subscription.SettleAck, w.Gets("head")["head"])
		for i := range 200 {
			name := fmt.Sprintf("a%03d", i)
			w.Settle(subscription.SettleAck, w.Gets(name)[name])
			_ = w.Sub.Grant(1)
		}
	})
}

// TestEarlierTaskGoesFirst: the order is that of due times, not that of enqueues.
func TestEarlierTaskGoesFirst(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		for _, at := range []int{5, 1, 4, 2, 3} {
			task := servicetest.InLine("a", fmt.Sprint(at), 0)
			task.When.At = store.Millis(time.Now().UnixMilli() + int64(at))
			servicetest.EnqueueOne(t, s, task)
		}
		last := servicetest.EnqueueOne(t, s, servicetest.InLine("a", "9", 9*time.Millisecond))
		servicetest.Idle(time.Second)
		if _, err := s.Tasks.Reschedule(t.Context(), "mail", last.ID, service.When{At: 1}, 0); err != nil { // before all that wait
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, s, "mail", 100)
		for _, name := range []string{"9", "1", "2", "3", "4", "5"} {
			w.Settle(subscription.SettleAck, w.Gets(name)[name])
		}
	})
}

// TestIdempotencyKeyIsOfItsOrderingKey has both keys on a task.
func TestIdempotencyKeyIsOfItsOrderingKey(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		both := func(order string) service.Enqueued {
			task := servicetest.InLine(order, order, time.Hour)
			task.Task.Key = &store.Key{Text: "once"}
			return servicetest.EnqueueOne(t, s, task)
		}
		a, b := both("a"), both("b")
		if a.Key != service.KeyTook || b.Key != service.KeyTook || a.ID == b.ID {
			t.Fatalf("of two ordering keys: %+v, %+v", a, b)
		}
		for i := range 3 {
			if again := both("a"); again.ID != a.ID || again.Key != service.KeyReturned {
				t.Errorf("again %d: %+v", i, again)
			}
		}
	})
}

// TestOrderOutlivesAReshard: tasks of a key go where its unfinished ones are, and a dead
// letter of a former shard is requeued where they are now.
func TestOrderOutlivesAReshard(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		w := servicetest.Subscribe(t, a, "mail", 100)
		servicetest.Idle(200 * time.Millisecond)
		servicetest.EnqueueOne(t, a, servicetest.InLine("k", "dead", 0))
		synctest.Wait()
		dead := w.TakeOne()
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: dead.Task.ID, Token: dead.Token, Permanent: true, Error: "bad"}})
		first := servicetest.EnqueueOne(t, a, servicetest.InLine("k", "first", 0))
		held := w.Gets("first")["first"]
		was, err := a.Tasks.Get(t.Context(), "mail", first.ID)
		if err != nil {
			t.Fatal(err)
		}
		f.Reshard(f.Nodes["a"], "mail", 5)
		second := servicetest.EnqueueOne(t, b, servicetest.InLine("k", "second", 0))
		if second.Err != nil {
			t.Fatal(second.Err)
		}
		servicetest.Idle(time.Second)
		w.Gets()
		if got, err := b.Tasks.Get(t.Context(), "mail", second.ID); err != nil || got.Shard != was.Shard || got.WaitingFor != service.WaitsForOrder {
			t.Errorf("the second is in %v, waits for %d: %v", got.Shard, got.WaitingFor, err)
		}
		other := servicetest.EnqueueOne(t, b, servicetest.InLine("other", "other", 0))
		w.Settle(subscription.SettleAck, w.Gets("other")["other"])
		if other.Err != nil {
			t.Error(other.Err)
		}
		w.Settle(subscription.SettleAck, held)
		servicetest.Idle(3 * time.Second) // hints get lost while shards change: then its owner looks
		w.Settle(subscription.SettleAck, w.Gets("second")["second"])
		servicetest.Idle(time.Second)
		third := servicetest.EnqueueOne(t, a, servicetest.InLine("k", "third", 0))
		servicetest.Idle(time.Millisecond)
		got, err := a.Tasks.Get(t.Context(), "mail", third.ID)
		if err != nil || got.Shard == was.Shard {
			t.Errorf("the third is in %v of before: %v", got.Shard, err)
		}
		if done, err := b.DeadLetters.Requeue(t.Context(), "mail", []string{dead.Task.ID}, service.DeadFilter{}, service.Pace{}); done.Count != 1 || len(done.Missing) > 0 || err != nil {
			t.Fatalf("requeued %+v, %v", done, err)
		}
		servicetest.Idle(time.Second)
		w.Settle(subscription.SettleAck, w.Gets("third")["third"])
		servicetest.Idle(time.Second)
		again := w.Gets("dead")["dead"]
		if again.Task.ID != dead.Task.ID || again.Task.Attempt != 1 {
			t.Errorf("requeued as %+v", again.Task)
		}
		w.Settle(subscription.SettleAck, again)
		servicetest.Idle(time.Minute)
		topic, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil || place.Resharding(&topic) {
			t.Errorf("shards of before are left: %+v, %v", topic.Former, err)
		}
	})
}

// TestOrderHoldsForTheFleet kills a node, drains another one and reshards, under traffic.
func TestOrderHoldsForTheFleet(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		visibility := 3 * time.Second
		f.Limited("mail", service.TopicChange{Visibility: &visibility, Shards: new(6), Backoff: &store.Backoff{Kind: store.BackoffFixed, Base: 300 * time.Millisecond}})
		w := f.Hire("mail", 6, 20, "a", "b", "c").Witness()
		const keys = 25
		total, due := 0, store.Millis(time.Now().UnixMilli())
		enqueue := func(at string, n int) {
			var tasks []service.NewTask
			for range n {
				total++
				due += 7 // rises, so the order is known
				task := servicetest.InLine(fmt.Sprint("k", total%keys), fmt.Sprint(total), 0)
				task.When.At, task.Task.MaxRetries = due, 1000
				tasks = append(tasks, task)
			}
			results, err := f.Nodes[at].Sys.Tasks.Enqueue(t.Context(), tasks)
			if err != nil {
				t.Fatal(err)
			}
			for i := range results {
				if results[i].Err != nil {
					t.Fatal(results[i].Err)
				}
			}
		}
		enqueue("a", 400)
		w.Run(3 * time.Second)
		f.Reshard(f.Nodes["a"], "mail", 4)
		enqueue("c", 300)
		w.Run(2 * time.Second)
		f.Kill(f.Nodes["b"])
		w.Dead[f.Nodes["b"]] = true
		enqueue("a", 300)
		w.Run(8 * time.Second)
		f.Reshard(f.Nodes["c"], "mail", 9)
		enqueue("c", 300)
		w.Run(2 * time.Second)
		if err := f.Nodes["c"].Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		enqueue("a", 300)
		w.Run(60 * time.Second)
		if len(w.Acked) < total {
			t.Errorf("%d of %d tasks are done", len(w.Acked), total)
		}
		if len(w.Began) != total {
			t.Errorf("%d of %d tasks were delivered", len(w.Began), total)
		}
	})
}

// lostOrders is a store that does not say what is first of a key for a while.
type lostOrders struct {
	store.Store
	failures int
}

func (s *lostOrders) InOrder(ctx context.Context, shard store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	if s.failures--; s.failures >= 0 {
		return store.Stamp{}, nil, store.ErrUnavailable
	}
	return s.Store.InOrder(ctx, shard, keys, limit)
}

func TestKeyGoesOnAfterAFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 1}}, &lostOrders{memstore.New(), 3})
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		for i := range 100 {
			servicetest.EnqueueOne(t, s, servicetest.InLine("a", fmt.Sprintf("a%03d", i), 0))
		}
		w := servicetest.Subscribe(t, s, "mail", 1000)
		for i := range 100 {
			name := fmt.Sprintf("a%03d", i)
			if i >= agenda.ParkedMost && i < agenda.ParkedMost+3 {
				servicetest.Idle(10 * time.Second) // the store does not say which is next
			}
			w.Settle(subscription.SettleAck, w.Gets(name)[name])
		}
	})
}

// meddledStore calls a function behind a read of a dead task.
type meddledStore struct {
	*memstore.Store
	meddle func(reads int)
	reads  int
}

func (m *meddledStore) Get(ctx context.Context, s store.Shard, ids []string) (store.Stamp, []store.Snapshot, error) {
	stamp, found, err := m.Store.Get(ctx, s, ids)
	if m.meddle != nil && len(found) == 1 && found[0].State == store.StateDead {
		m.reads++
		m.meddle(m.reads)
	}
	return stamp, found, err
}

// TestADeadLetterThatMovesIsRequeuedOnce although two users requeue it at once, and its new task is done before
// the slower one of them goes on.
func TestADeadLetterThatMovesIsRequeuedOnce(t *testing.T) {
	for slow := 1; slow <= 4; slow++ { // at which read of the dead letter the first one is held up
		synctest.Test(t, func(t *testing.T) {
			st := &meddledStore{Store: memstore.New()}
			s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 2}}, st)
			defer servicetest.Stop(s)
			w := servicetest.Subscribe(t, s, "mail", 100)
			servicetest.EnqueueOne(t, s, servicetest.InLine("k", "dead", 0))
			dead := w.Gets("dead")["dead"]
			w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: dead.Task.ID, Token: dead.Token, Permanent: true}})
			servicetest.EnqueueOne(t, s, servicetest.InLine("other", "kept", time.Hour)) // so the shards of before stay
			servicetest.Idle(time.Second)
			if _, err := s.Topics.Reshard(t.Context(), "mail", 5); err != nil {
				t.Fatal(err)
			}
			requeue := func() (done service.Requeued) {
				done, err := s.DeadLetters.Requeue(t.Context(), "mail", []string{dead.Task.ID}, service.DeadFilter{}, service.Pace{})
				if err != nil {
					t.Errorf("requeue: %v", err)
				}
				return done
			}
			runs, faster := 0, service.Requeued{}
			finish := func() {
				servicetest.Idle(3 * time.Second)
				for _, d := range w.Take() {
					if runs++; d.Task.Attempt != 1 || d.Task.LastError != "" {
						t.Errorf("requeued as attempt %d after %q", d.Task.Attempt, d.Task.LastError)
					}
					w.Settle(subscription.SettleAck, d)
				}
				servicetest.Idle(time.Second)
			}
			st.meddle = func(reads int) {
				if reads == slow {
					st.meddle = nil
					faster = requeue()
					finish()
				}
			}
			slower := requeue()
			finish()
			if runs != 1 || faster.Count+slower.Count != 1 {
				t.Errorf("held up at read %d: the task ran %d times, requeued %d and %d times", slow, runs, faster.Count, slower.Count)
			}
			if left, _, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{}, 10, ""); len(left) > 0 || err != nil {
				t.Errorf("%d dead letters are left: %v", len(left), err)
			}
		})
	}
}

// TestADeleteElsewhereLetsTheNextOneGo: the head of an ordering key, which waits for a permit, is deleted at a node that does
// not own its shard.
func TestADeleteElsewhereLetsTheNextOneGo(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{Shards: new(1), KeyConcurrency: new(1)})
		stream := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 10)
		enqueue := func(name, ordering, concurrency string) (id string) {
			task := servicetest.InLine(ordering, name, 0)
			task.Task.Traits.ConcurrencyKey = concurrency
			id = servicetest.EnqueueOne(t, f.Nodes["a"].Sys, task).ID
			servicetest.Idle(100 * time.Millisecond)
			return id
		}
		comes := func(want ...string) {
			t.Helper()
			var got []string
			for _, d := range stream.Take() {
				got = append(got, string(d.Task.Payload))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v came, want %v", got, want)
			}
		}
		enqueue("runs", "", "busy")
		first := enqueue("first", "k", "busy")
		enqueue("next", "k", "free")
		comes("runs")
		other := "a"
		if f.Owners("mail")[0] == "a" {
			other = "b"
		}
		if _, err := f.Nodes[other].Sys.Tasks.Delete(t.Context(), "mail", first); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		comes("next")
	})
}

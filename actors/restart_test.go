package actors_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// panicShard has the actor of a shard panic.
func panicShard(s *service.Service, topic string, n int) { s.Node().PanicShard(topic, n) }

// panicTopic has the actor of a topic panic.
func panicTopic(s *service.Service, topic string) { s.Node().PanicTopic(topic) }

// subscribeFew subscribes with room for n tasks, and grants credit for them.
func subscribeFew(t *testing.T, s *service.Service, topic string, n int) *servicetest.Stream {
	t.Helper()
	o := &servicetest.Stream{T: t}
	sub, err := s.Delivery.Subscribe(t.Context(), subscription.Options{Topic: topic, Worker: "w", MaxInFlight: n}, o)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	o.Sub = sub
	if err := sub.Grant(n); err != nil {
		t.Fatalf("grant: %v", err)
	}
	return o
}

// checkRoom adds n tasks and wants them all delivered: there is room for them.
func checkRoom(t *testing.T, s *service.Service, w *servicetest.Stream, n int) {
	t.Helper()
	for i := range n {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint("room-", i), 0))
	}
	time.Sleep(time.Second)
	if got := len(w.Take()); got != n {
		t.Errorf("%d tasks for a subscription that has nothing, want %d", got, n)
	}
}

func TestPanicOfAShardKeepsTheRoomOfItsSubscriptions(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := subscribeFew(t, s, "mail", 4)
		for i := range 4 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 0))
		}
		got := w.Take()
		panicShard(s, "mail", 0)
		time.Sleep(time.Second)
		for _, d := range got {
			w.Settle(subscription.SettleAck, d)
			w.Sub.Grant(1)
		}
		time.Sleep(time.Second)
		checkRoom(t, s, w, 4)
	})
}

// TestPanicOfAShardRefundsWhatIsNotHeld panics over the answer of a Hold: what it was
// about is neither held nor waits.
func TestPanicOfAShardRefundsWhatIsNotHeld(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1, Visibility: 20 * time.Second}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := subscribeFew(t, s, "mail", 4)
		f.Set(func(f *servicetest.FaultyStore) { f.Broken["hold"] = 1 })
		for i := range 4 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), time.Second))
		}
		time.Sleep(2 * time.Second)
		checkRoom(t, s, w, 4)
	})
}

// TestHoldsOfAnEarlierIncarnationGoBack panics while a Hold is in flight. Its tasks come
// again at once, not when the hold runs out, and it costs no room.
func TestHoldsOfAnEarlierIncarnationGoBack(t *testing.T) {
	for call, delay := range map[string]time.Duration{"hold": time.Second, "hold_new": 0} {
		t.Run(call, func(t *testing.T) {
			servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
				w := subscribeFew(t, s, "mail", 4)
				arrive := make(chan struct{})
				f.Set(func(f *servicetest.FaultyStore) { f.Late = map[string]chan struct{}{call: arrive} })
				go s.Tasks.Enqueue(t.Context(), []service.NewTask{servicetest.After("mail", "a", delay)})
				time.Sleep(2 * time.Second)
				panicShard(s, "mail", 0)
				time.Sleep(100 * time.Millisecond)
				f.Set(func(f *servicetest.FaultyStore) { f.Late = nil })
				close(arrive)
				time.Sleep(2 * time.Second)
				d := w.TakeOne()
				if d.Task.Attempt != 1 {
					t.Errorf("attempt %d, want 1: no worker has seen the first", d.Task.Attempt)
				}
				w.Settle(subscription.SettleAck, d)
				w.Sub.Grant(1)
				time.Sleep(time.Second)
				checkRoom(t, s, w, 4)
			})
		})
	}
}

// stopsSoon stops the node and wants its shard released, long before the grace is over.
func stopsSoon(t *testing.T, s *service.Service, st store.Store) {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Node().Stop(ctx); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("stopping a node with nothing in hand took %v: %v", time.Since(began), err)
	}
	stats, err := st.Stats(context.Background(), []store.Shard{{Topic: "mail"}})
	if err != nil || stats[0].Owner != "" {
		t.Errorf("the shard is still owned by %q: %v", stats[0].Owner, err)
	}
}

func TestPanicWithACallInFlightDoesNotKeepTheNode(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		arrive := make(chan struct{})
		f.Set(func(f *servicetest.FaultyStore) { f.Late = map[string]chan struct{}{"add": arrive} })
		go s.Tasks.Enqueue(t.Context(), []service.NewTask{servicetest.After("mail", "b", time.Hour)})
		synctest.Wait()
		panicShard(s, "mail", 0)
		time.Sleep(time.Millisecond)
		f.Set(func(f *servicetest.FaultyStore) { f.Late = nil })
		close(arrive)
		time.Sleep(5 * time.Second)
		stopsSoon(t, s, f.Store)
	})
}

// TestAckOfAnEarlierIncarnationIsAnswered has an ack in flight when the shard panics: the
// task is gone, and only the actor answers that.
func TestAckOfAnEarlierIncarnationIsAnswered(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := subscribeFew(t, s, "mail", 1)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		d := w.TakeOne()
		w.Settle(subscription.SettleAck, d)
		w.TakeSettled()
		arrive := make(chan struct{})
		f.Set(func(f *servicetest.FaultyStore) { f.Late = map[string]chan struct{}{"ack": arrive} })
		w.Settle(subscription.SettleAck, d)
		synctest.Wait()
		panicShard(s, "mail", 0)
		time.Sleep(time.Millisecond)
		f.Set(func(f *servicetest.FaultyStore) { f.Late = nil })
		close(arrive)
		time.Sleep(time.Second)
		if r := w.TakeSettled(); len(r) != 1 || r[0].Err == nil {
			t.Errorf("the ack of a task that is gone: %+v, want one answer, that its hold is lost", r)
		}
	})
}

func TestPanicOfATopicKeepsSubscriptionsApart(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		old := servicetest.Subscribe(t, s, "mail", 10)
		panicTopic(s, "mail")
		time.Sleep(time.Second)
		synctest.Wait()
		old.Mu.Lock()
		drained := old.Drained
		old.Mu.Unlock()
		if drained != 1 {
			t.Errorf("the stream was told %d times to reconnect, want once", drained)
		}
		again := servicetest.Subscribe(t, s, "mail", 10)
		old.Sub.Grant(5)
		old.Sub.Unsubscribe(nil)
		synctest.Wait()
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		if got := len(again.Take()); got != 1 {
			t.Errorf("%d tasks for the new stream, want 1", got)
		}
	})
}

// TestPanicOfATopicUnderLimitsKeepsTheNode panics while permits are asked for, or given
// back: they are free soon, and the topic drains.
func TestPanicOfATopicUnderLimitsKeepsTheNode(t *testing.T) {
	for _, call := range []string{"acquire", "free"} {
		t.Run(call, func(t *testing.T) {
			servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
				if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{Concurrency: new(1)}); err != nil {
					t.Fatal(err)
				}
				w := servicetest.Subscribe(t, s, "mail", 10)
				arrive := make(chan struct{})
				f.Set(func(f *servicetest.FaultyStore) { f.Late = map[string]chan struct{}{call: arrive} })
				servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
				for _, d := range w.Take() {
					w.Settle(subscription.SettleAck, d)
				}
				synctest.Wait()
				panicTopic(s, "mail")
				time.Sleep(time.Millisecond)
				f.Set(func(f *servicetest.FaultyStore) { f.Late = nil })
				close(arrive)
				time.Sleep(time.Second)
				servicetest.EnqueueOne(t, s, servicetest.After("mail", "b", 0))
				w = servicetest.Subscribe(t, s, "mail", 10)
				for range 2 {
					time.Sleep(time.Second)
					for _, d := range w.Take() {
						w.Settle(subscription.SettleAck, d)
					}
				}
				time.Sleep(time.Second)
				stopsSoon(t, s, f.Store)
			})
		})
	}
}

// TestShardsThatPanickedAreHandedOver panics every shard of a node while its holds are in
// flight, and drains the node.
func TestShardsThatPanickedAreHandedOver(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"], f.Nodes["b"].Sys
		if _, err := a.Sys.Topics.Create(t.Context(), "mail", service.TopicChange{Shards: new(12)}); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, a.Sys, "mail", 1000)
		servicetest.Idle(2 * time.Second)
		for i := range 50 {
			servicetest.EnqueueOne(t, a.Sys, servicetest.After("mail", fmt.Sprint("t", i), 2*time.Second))
		}
		time.Sleep(1990 * time.Millisecond)
		a.Store.Freeze(true)
		time.Sleep(100 * time.Millisecond)
		for n := range 12 {
			panicShard(a.Sys, "mail", n)
		}
		time.Sleep(100 * time.Millisecond)
		a.Store.Freeze(false)
		servicetest.Idle(5 * time.Second)
		w.Take()
		if err := a.Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(10 * time.Second)
		for n, owner := range f.Owners("mail") {
			if owner != "b" {
				t.Errorf("shard %d is owned by %q after a was drained", n, owner)
			}
		}
		next := servicetest.Subscribe(t, b, "mail", 1000)
		for i := range 50 {
			servicetest.EnqueueOne(t, b, servicetest.After("mail", fmt.Sprint("u", i), time.Second))
		}
		servicetest.Idle(5 * time.Second)
		seen := map[string]bool{}
		for _, d := range next.Take() {
			seen[d.Task.ID] = true
		}
		for i := range 50 {
			if id := fmt.Sprint("u", i); !seen[id] {
				t.Errorf("task %s was not delivered", id)
			}
		}
	})
}

// panickyStream is a stream whose first delivery panics.
type panickyStream struct {
	*servicetest.Stream
	panicked bool
}

func (o *panickyStream) Deliver(d []subscription.Delivery) bool {
	if !o.panicked {
		o.panicked = true
		panic("no delivery")
	}
	return o.Stream.Deliver(d)
}

// TestPanicOfAWorkerBeginsItsStreamAnew loses a delivery: its credit is spent, so the stream
// has to begin anew, and the one that ends leaves no actor behind.
func TestPanicOfAWorkerBeginsItsStreamAnew(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		w := &panickyStream{Stream: &servicetest.Stream{T: t}}
		sub, err := s.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w", MaxInFlight: 1}, w)
		if err != nil {
			t.Fatal(err)
		}
		_ = sub.Grant(1)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		time.Sleep(time.Second)
		if n := w.Drains(); n != 1 {
			t.Errorf("the stream was drained %d times, want once", n)
		}
		sub.Unsubscribe(nil)
		next := subscribeFew(t, s, "mail", 1)
		time.Sleep(2 * s.Node().Config().Topic.Visibility)
		if got := len(next.Take()); got != 1 {
			t.Errorf("the next stream got %d tasks, want the one that was lost", got)
		}
		if n := subscribed(t, s); n != 1 {
			t.Errorf("counted as subscribed: %v, want 1", n)
		}
	})
}

// The actor of a worker is gone once every shard has confirmed that nothing more comes, or
// cannot bring anything any more.
func TestWorkersLeaveShardsThatDoNotAnswer(t *testing.T) {
	for name, breaks := range map[string]func(s *service.Service){
		"none":    func(*service.Service) {},
		"stopped": func(s *service.Service) { s.Node().StopShard("mail", 1) },
		"panics":  func(s *service.Service) { panicShard(s, "mail", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
				w := subscribeFew(t, s, "mail", 1)
				time.Sleep(time.Second)
				breaks(s)
				w.Sub.Unsubscribe(nil)
				time.Sleep(time.Minute)
				if n := subscribed(t, s); n != 0 {
					t.Errorf("%v workers are left", n)
				}
			})
		})
	}
}

// subscribed is how many actors of workers the node has.
func subscribed(t *testing.T, s *service.Service) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(actors.SubscriptionGauge(s.Node().Metrics()))
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Metric[0].GetGauge().GetValue()
}

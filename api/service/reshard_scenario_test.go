package service_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

func TestReshardUnderTraffic(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 2000)
		nodes := []string{"a", "b", "c"}
		for i, shards := range []int{12, 30, 4, 4, 7} {
			f.Reshard(f.Nodes[nodes[i%3]], "mail", shards)
			for k := range 20 { // the others hear of it meanwhile
				w.Enqueue(f.Nodes[nodes[k%3]], "mail", fmt.Sprintf("n%d-%d", i, k), 20, 300*time.Millisecond)
				w.Enqueue(f.Nodes[nodes[k%3]], "mail", fmt.Sprintf("s%d-%d", i, k), 5, 30*time.Second)
				w.Run(5 * time.Millisecond)
			}
			w.Run(time.Second)
			if w.Late > 250*time.Millisecond {
				t.Errorf("a reshard to %d made tasks late by %v", shards, w.Late)
			}
			w.Run(40 * time.Second)
		}
		w.Done(250 * time.Millisecond)
		got, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil || got.Shards != 7 || place.Resharding(&got) {
			t.Errorf("the topic is %+v: %v", got, err)
		}
		for n, owner := range f.Owners("mail") {
			if owner == "" {
				t.Errorf("shard %d has no owner", n)
			}
		}
	})
}

// TestARepeatedRequestIsKnownOverAReshard also when the node that stored the task did
// not know of the reshard, and sent it to a second shard.
func TestARepeatedRequestIsKnownOverAReshard(t *testing.T) {
	for _, expires := range []time.Duration{0, time.Hour} {
		servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
			a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
			servicetest.EnqueueOne(t, a, servicetest.After("mail", "x", time.Hour))
			servicetest.EnqueueOne(t, b, servicetest.After("mail", "y", time.Hour))
			servicetest.Idle(2 * time.Second)
			f.Reshard(f.Nodes["a"], "mail", 3)
			request := func() service.NewTask {
				n := servicetest.After("mail", "id", time.Minute)
				n.ExpireAfter = expires
				return n
			}
			if out := servicetest.EnqueueOne(t, b, request()); out.Err != nil {
				t.Fatal(out.Err)
			}
			servicetest.Idle(2 * time.Second)
			if again := servicetest.EnqueueOne(t, b, request()); again.Err != nil || !again.Deduplicated {
				t.Errorf("the same request again, with an expiry after %v: deduplicated %v, %v", expires, again.Deduplicated, again.Err)
			}
		})
	}
}

func TestIDsStayUniqueOverAReshard(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		w := servicetest.Subscribe(t, b, "mail", 1)
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "running", 0))
		running := w.TakeOne()
		for _, id := range []string{"due", "late", "gone"} {
			servicetest.EnqueueOne(t, a, servicetest.After("mail", id, time.Hour))
		}
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "dead", 0))
		_ = w.Sub.Grant(1)
		dead := w.TakeOne()
		w.Sub.Settle(2, []subscription.Settlement{{Kind: subscription.SettleNack, Permanent: true, ID: "dead", Token: dead.Token}})
		servicetest.Idle(time.Second)
		f.Reshard(f.Nodes["a"], "mail", 5)
		for _, at := range []*service.Service{b, a} { // b has not heard of it
			for _, id := range []string{"due", "running"} {
				if r := servicetest.EnqueueOne(t, at, servicetest.After("mail", id, map[string]time.Duration{"due": time.Hour}[id])); !r.Deduplicated {
					t.Errorf("%s was stored twice: %+v", id, r)
				}
			}
			other := servicetest.After("mail", "due", 2*time.Hour)
			other.Task.Payload = []byte("another")
			got, err := at.Tasks.Enqueue(t.Context(), []service.NewTask{other})
			if err != nil || got[0].Err == nil || got[0].Err.Reason != "ID_CONFLICT" {
				t.Errorf("another request under the id of a task: %+v, %v", got, err)
			}
		}
		if r := servicetest.EnqueueOne(t, b, servicetest.After("mail", "dead", time.Hour)); r.Replaced != store.StateDead {
			t.Errorf("a dead letter was not replaced: %+v", r)
		}
		if done, err := a.DeadLetters.Requeue(t.Context(), "mail", []string{"dead"}, service.DeadFilter{}, service.Pace{}); done.Count != 0 || len(done.Missing) != 1 || err != nil {
			t.Errorf("requeued %+v, %v", done, err)
		}
		if _, err := a.Tasks.Delete(t.Context(), "", "gone"); err != nil {
			t.Error(err)
		}
		if _, err := a.Tasks.Get(t.Context(), "mail", "gone"); err == nil {
			t.Error("a deleted task is still there")
		}
		if _, err := b.Tasks.Reschedule(t.Context(), "mail", "late", service.When{Delay: time.Second}, 0); err != nil {
			t.Error(err)
		}
		w.Settle(subscription.SettleAck, running)
		_ = w.Sub.Grant(1)
		servicetest.Idle(1100 * time.Millisecond)
		if late := w.TakeOne(); late.Task.ID != "late" {
			t.Errorf("got %s", late.Task.ID)
		}
		var listed []string
		for token := ""; ; {
			page, next, err := b.Finder.List(t.Context(), "mail", store.StateScheduled, 1, token)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page {
				listed = append(listed, f.Task.ID)
			}
			if token = next; next == "" {
				break
			}
		}
		if slices.Sort(listed); !slices.Equal(listed, []string{"dead", "due"}) {
			t.Errorf("listed %v", listed)
		}
	})
}

// TestANodeFindsTasksOfShardsThatItHasNotHeardOf changes them there a moment after another node gave the
// topic other shards.
func TestANodeFindsTasksOfShardsThatItHasNotHeardOf(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, at *service.Service) error{
		"delete": func(t *testing.T, at *service.Service) error {
			_, err := at.Tasks.Delete(t.Context(), "mail", "id")
			return err
		},
		"reschedule": func(t *testing.T, at *service.Service) error {
			_, err := at.Tasks.Reschedule(t.Context(), "mail", "id", service.When{Delay: time.Hour}, 0)
			return err
		},
		"cancel": func(t *testing.T, at *service.Service) error {
			_, err := at.Tasks.Cancel(t.Context(), t.Context(), "mail", "id", 0, true)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
				a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
				servicetest.EnqueueOne(t, b, servicetest.After("mail", "first", time.Hour))
				servicetest.Idle(2 * time.Second)
				f.Reshard(f.Nodes["a"], "mail", 5)
				servicetest.EnqueueOne(t, a, servicetest.After("mail", "id", time.Hour))
				if err := change(t, b); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestANodeFindsDeadLettersOfShardsThatItHasNotHeardOf is the same for tasks that ended there.
func TestANodeFindsDeadLettersOfShardsThatItHasNotHeardOf(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, at *service.Service, ids []string) (int64, error){
		"requeue": func(t *testing.T, at *service.Service, ids []string) (int64, error) {
			done, err := at.DeadLetters.Requeue(t.Context(), "mail", ids, service.DeadFilter{}, service.Pace{})
			return done.Count, err
		},
		"delete": func(t *testing.T, at *service.Service, ids []string) (int64, error) {
			n, _, err := at.DeadLetters.Delete(t.Context(), "mail", ids, service.DeadFilter{}, service.Pace{})
			return n, err
		},
	} {
		for by, ids := range map[string][]string{"id": {"id"}, "filter": nil} {
			t.Run(what+" by "+by, func(t *testing.T) {
				servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
					a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
					servicetest.EnqueueOne(t, b, servicetest.After("mail", "first", time.Hour))
					w := servicetest.Subscribe(t, a, "mail", 1)
					servicetest.Idle(2 * time.Second)
					f.Split(f.Nodes["a"], f.Nodes["b"], true)
					f.Reshard(f.Nodes["a"], "mail", 5)
					servicetest.EnqueueOne(t, a, servicetest.After("mail", "id", 0))
					w.Sub.Settle(2, []subscription.Settlement{{Kind: subscription.SettleNack, Permanent: true, ID: "id", Token: w.TakeOne().Token}})
					synctest.Wait()
					if n, err := change(t, b, ids); n != 1 || err != nil {
						t.Errorf("%d dead letters were changed, %v; want 1", n, err)
					}
				})
			})
		}
	}
}

// TestTheEndOfAReshardGivesRoomBack: a shard that goes may know of a hold that somebody else has ended, and
// that its subscription counts.
func TestTheEndOfAReshardGivesRoomBack(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		w := servicetest.SubscribeWith(t, a, subscription.Options{Topic: "mail", Worker: "w", MaxInFlight: 1}, 1)
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "before", 0))
		held := w.TakeOne()
		f.Reshard(f.Nodes["a"], "mail", 5)
		former, token, _ := subscription.DecodeToken(held.Token)
		if _, got, err := f.Store.Ack(t.Context(), store.Shard{Topic: "mail", N: former}, []store.Ack{{ID: "before", Token: token}}, 0); err != nil || got[0] != store.OK {
			t.Fatal(got, err)
		}
		for range 60 {
			if current, err := f.Store.GetTopic(t.Context(), "mail"); err != nil {
				t.Fatal(err)
			} else if !place.Resharding(&current) {
				break
			}
			servicetest.Idle(time.Second)
		}
		_ = w.Sub.Grant(1)
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "behind", 0))
		servicetest.Idle(time.Second)
		if got := w.TakeOne(); got.Task.ID != "behind" {
			t.Errorf("got %s", got.Task.ID)
		}
	})
}

func TestReshardGoesOnWithoutItsNode(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 100)
		w.Enqueue(f.Nodes["b"], "mail", "before", 50, 3*time.Second)
		topic, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		if err := service.StartGeneration(&topic, 3); err != nil { // as far as a node came that died then
			t.Fatal(err)
		}
		if _, err := f.Store.PutTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			w.Enqueue(f.Nodes["ab"[i%2:i%2+1]], "mail", fmt.Sprint("t", i), 10, time.Second)
			w.Run(200 * time.Millisecond)
		}
		w.Run(5 * time.Second)
		w.Done(250 * time.Millisecond)
	})
}

func TestReshardIsRefusedWhileThreeGenerationsHaveTasks(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		for i := range 4 {
			servicetest.EnqueueOne(t, a, servicetest.After("mail", fmt.Sprint("t", i), time.Hour))
			_, err := a.Topics.Reshard(t.Context(), "mail", 5+i)
			var e *problem.Error
			if i < 3 && err != nil || i == 3 && (!errors.As(err, &e) || e.Reason != "RESHARD_PENDING") {
				t.Errorf("reshard %d: %v", i, err)
			}
		}
		for _, shards := range []int{0, -1, 257} {
			var e *problem.Error
			if _, err := a.Topics.Reshard(t.Context(), "mail", shards); !errors.As(err, &e) || e.Field != "shards" {
				t.Errorf("%d shards: %v", shards, err)
			}
		}
		if _, err := a.Topics.Reshard(t.Context(), "none", 2); err == nil {
			t.Error("an unknown topic was resharded")
		}
		for i := range 3 {
			if _, err := a.Tasks.Delete(t.Context(), "mail", fmt.Sprint("t", i)); err != nil {
				t.Error(err)
			}
		}
		servicetest.Idle(time.Minute)
		if topic := f.Reshard(f.Nodes["a"], "mail", 2); topic.Former[0].Shards != 7 || topic.Former[1].Shards != 0 {
			t.Errorf("the topic is %+v", topic)
		}
		if err := a.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Error(err)
		}
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "t0", time.Hour)) // into shards that were sealed in the topic before
		if found, err := a.Tasks.Get(t.Context(), "mail", "t0"); err != nil || found.Topic != "mail" {
			t.Error(err)
		}
	})
}

func TestTasksOfUnknownShardsAreTakenIn(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := f.Work(f.Nodes["b"], "mail", 1000)
		f.Edit(func() { f.Deaf = true })
		f.Reshard(f.Nodes["a"], "mail", 40)
		w.Enqueue(f.Nodes["a"], "mail", "t", 200, 100*time.Millisecond) // those of a's shards come over the link
		w.Run(200 * time.Millisecond)
		if len(w.Seen) < 50 {
			t.Errorf("only %d tasks came from the new shards of the other node", len(w.Seen))
		}
		w.Run(2 * time.Second)
		w.Done(2 * time.Second)
	})
}

// A node may die when it has stored a task under the id of a dead letter of a former shard, and
// has not deleted that yet.
func TestADeadLetterWhoseIDIsGivenAnewIsNotRequeued(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		w := servicetest.Subscribe(t, a, "mail", 1)
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "x", 0))
		servicetest.Idle(time.Second)
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, Permanent: true, ID: "x", Token: w.TakeOne().Token}})
		servicetest.Idle(time.Second)
		f.Reshard(f.Nodes["a"], "mail", 5)
		topic, err := f.Store.GetTopic(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		places := place.Candidates(&topic, "x")
		again := &store.Task{ID: "x", Due: store.Millis(time.Now().Add(time.Hour).UnixMilli()), MaxRetries: -1}
		if _, _, err := f.Store.Add(t.Context(), places[0].For(topic.Life), []*store.Task{again}); err != nil {
			t.Fatal(err)
		}
		if done, err := a.DeadLetters.Requeue(t.Context(), "mail", []string{"x"}, service.DeadFilter{}, service.Pace{}); done.Count != 0 || len(done.Missing) != 1 || err != nil {
			t.Errorf("requeued %+v, %v", done, err)
		}
		live := int64(0)
		stats, err := f.Store.Stats(t.Context(), places)
		for _, st := range stats {
			live += st.Pending + st.Running
		}
		if live != 1 || err != nil {
			t.Errorf("%d live tasks have the id: %v", live, err)
		}
	})
}

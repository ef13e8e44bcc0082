package actors_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// staleView is what a shard looks at while the node learns that there is another
// member.
type staleView struct {
	fleet.View
	owner string
	learn func()
	once  *sync.Once
}

func (v staleView) Owner(store.Shard) string {
	v.once.Do(v.learn)
	return v.owner
}

// A topic opens at the moment in which members change: its shards have looked at the
// members of before, and nobody knows the topic yet.
func TestTopicThatOpensDuringAJoinIsPlaced(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		synctest.Wait()
		a := f.Nodes["a"].Sys
		members := a.Node().Membership().View()
		f.Nodes["a"].Show(func(was fleet.View) fleet.View {
			return staleView{was, "a", func() {
				f.Nodes["a"].Show(nil)
				a.Node().Broadcast(&actors.ViewChanged{})
			}, new(sync.Once)}
		})
		if _, err := a.Topics.Create(t.Context(), "mail", service.TopicChange{Shards: new(64)}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Node().Topics().Open(t.Context(), "mail", false); err != nil {
			t.Fatal(err)
		}
		w := f.Work(f.Nodes["b"], "mail", 100)
		w.Enqueue(f.Nodes["b"], "mail", "t", 300, time.Second)
		w.Run(time.Second)
		w.Done(250 * time.Millisecond)
		for n, owner := range f.Owners("mail") {
			if placed := members.Owner(store.Shard{Topic: "mail", N: n}); owner != placed {
				t.Errorf("shard %d is owned by %q and placed on %q", n, owner, placed)
			}
		}
	})
}

// A notice about a shard arrives at the moment in which it becomes this node's: whoever
// handles it has looked at the members of before. The shard has an owner all the same.
func TestANoticeDuringADrainLeavesNoShardWithoutAnOwner(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"]
		if _, err := a.Sys.Topics.Create(t.Context(), "mail", service.TopicChange{Shards: new(12)}); err != nil {
			t.Fatal(err)
		}
		a.SetDraining(true)
		f.Work(f.Nodes["b"], "mail", 100).Enqueue(a, "mail", "t", 100, time.Second)
		time.Sleep(time.Minute)
		a.Show(func(was fleet.View) fleet.View {
			return staleView{View: was, owner: "b", once: new(sync.Once), learn: func() {
				f.Nodes["b"].SetDraining(true)
				a.SetDraining(false)
				a.Show(nil)
				a.Sys.Node().ViewChanged()
				time.Sleep(time.Second)
			}}
		})
		a.Sys.Node().Peer().Notified(fleet.Notice{Released: []store.Shard{{Topic: "mail", N: 11}}})
		time.Sleep(10 * time.Second)
		for n, owner := range f.Owners("mail") {
			if owner != "a" {
				t.Errorf("shard %d is owned by %q", n, owner)
			}
		}
	})
}

// slowTopics answers about topics whose names begin with s only after five seconds.
type slowTopics struct {
	store.Store
	asked atomic.Int64
}

func (f *slowTopics) GetTopic(ctx context.Context, name string) (store.Topic, error) {
	f.asked.Add(1)
	if name[0] == 's' {
		actors.Sleep(ctx, 5*time.Second)
		if ctx.Err() != nil {
			return store.Topic{}, ctx.Err()
		}
	}
	return f.Store.GetTopic(ctx, name)
}

// slowTopicsBubble runs a test of a node whose store is slow about some topics.
func slowTopicsBubble(t *testing.T, test func(t *testing.T, s *service.Service, f *slowTopics)) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowTopics{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, f)
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		test(t, s, f)
	})
}

func TestNobodyWaitsForAnotherTopic(t *testing.T) {
	slowTopicsBubble(t, func(t *testing.T, s *service.Service, _ *slowTopics) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { servicetest.EnqueueOne(t, s, servicetest.After(fmt.Sprint("slow", i), "a", time.Hour)) })
		}
		synctest.Wait()
		began := time.Now()
		if out := servicetest.EnqueueOne(t, s, servicetest.After("quick", "a", time.Hour)); out.Err != nil || time.Since(began) > time.Second {
			t.Errorf("an enqueue to another topic took %v: %v", time.Since(began), out.Err)
		}
		wg.Wait()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("20 topics opened one after the other, in %v", took)
		}
	})
}

func TestOpeningEndsAtTheDeadline(t *testing.T) {
	slowTopicsBubble(t, func(t *testing.T, s *service.Service, f *slowTopics) {
		var wg sync.WaitGroup
		began := time.Now()
		for range 60 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				out, err := s.Tasks.Enqueue(ctx, []service.NewTask{servicetest.After("slow", "a", 0)})
				if err == nil && out[0].Err == nil {
					t.Error("stored, though the topic cannot have been read")
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("calls with a deadline of a second returned after %v", took)
		}
	})
}

// Callers that learn together that a topic has changed do not each ask the store, one behind the other.
func TestTopicIsReadOnceForAllWhoWait(t *testing.T) {
	slowTopicsBubble(t, func(t *testing.T, s *service.Service, f *slowTopics) {
		servicetest.EnqueueOne(t, s, servicetest.After("slow", "a", time.Hour))
		before, began := f.asked.Load(), time.Now()
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() {
				if err := s.Node().Topics().Refresh(t.Context(), "slow"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n, took := f.asked.Load()-before, time.Since(began); n > 5 || took > 20*time.Second {
			t.Errorf("the store was asked %d times what the topic is, in %v", n, took)
		}
	})
}

func TestTopicIsOpenedOnceForAllWhoWait(t *testing.T) {
	slowTopicsBubble(t, func(t *testing.T, s *service.Service, f *slowTopics) {
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { servicetest.EnqueueOne(t, s, servicetest.After("slow", fmt.Sprint(i), time.Hour)) })
		}
		wg.Wait()
		if n := f.asked.Load(); n > 5 { // and the looks for changes
			t.Errorf("the store was asked %d times what the topic is", n)
		}
	})
}

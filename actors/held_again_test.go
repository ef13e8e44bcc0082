package actors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

// Another node settled a hold, and its notice was lost: the next hold of the task is what
// tells that the one before is over. It must not cost the subscription's room.
func TestHoldInThePlaceOfAnotherMakesRoom(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		const room = 2
		worker := &servicetest.Stream{T: t}
		sub, err := s.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w", MaxInFlight: room}, worker)
		if err != nil {
			t.Fatal(err)
		}
		worker.Sub = sub
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		shard := store.Shard{Topic: "mail", N: place.ShardOf("a", s.Node().Config().Topic.Shards)}
		for attempt := range 3 * room {
			_ = sub.Grant(1)
			time.Sleep(2 * s.Node().Config().WatchdogInterval) // it finds what is overdue
			d := worker.TakeOne()
			_, token, _ := actors.DecodeToken(d.Token)
			if _, _, err := s.Node().Store().Nack(t.Context(), shard, []store.Nack{{ID: "a", Token: token}}); err != nil {
				t.Fatalf("nack of attempt %d: %v", attempt, err)
			}
		}
	})
}

// slowToSay is a store whose first answer to a HoldNew is lost, and the call that made the hold ends late.
type slowToSay struct {
	*memstore.Store
	said bool
}

func (st *slowToSay) HoldNew(ctx context.Context, sh store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	stamp, results, err := st.Store.HoldNew(ctx, sh, f, tasks, holds)
	if !st.said {
		st.said = true
		time.Sleep(time.Second)
		return store.Stamp{}, nil, store.ErrUnknown
	}
	return stamp, results, err
}

// TestAHoldWhoseAnswerWasLostLastsFromItsBegin: the store takes it back when it is over, and it counts in caps until
// then. A worker that is told that it lasts longer works beside the next one.
func TestAHoldWhoseAnswerWasLostLastsFromItsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &slowToSay{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		w := servicetest.Subscribe(t, s, "mail", 10)
		time.Sleep(time.Second) // its credit reaches the topic
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", 0))
		synctest.Wait()
		d, shard := w.TakeOne(), store.Shard{Topic: "mail", N: place.ShardOf("a", s.Node().Config().Topic.Shards)}
		stamp, found, err := st.Get(t.Context(), shard, []string{"a"})
		if err != nil || !st.said {
			t.Fatal(st.said, err)
		}
		if left := found[0].Deadline.Time().Sub(stamp.Now); d.HoldFor > left {
			t.Errorf("the worker was told %v, and %v are left", d.HoldFor, left)
		}
	})
}

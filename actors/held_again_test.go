package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
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

package shard

import (
	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

// Saved is what a shard leaves to the incarnation after it: what the store cannot
// tell.
type Saved struct {
	holds   []*agenda.Hold // those that take room of a subscription
	inStore *store.Fence   // what the store may have of its claim
	unsent  []unsentTask   // those of holds that wait for their due time
	stopped chan struct{}  // see claimer
}

// save runs before a restart.
func (s *Actor) save() {
	*s.saved = Saved{holds: s.holds.save(), unsent: s.holder.unsent.all(), inStore: s.claimer.claim.InStore(), stopped: s.claimer.stopped}
}

// restore takes over from the incarnation before this one.
func (s *Actor) restore() {
	s.claimer.claim = agenda.NewClaim(s.Fleet.Owns(s.id), s.saved.inStore)
	if s.saved.stopped != nil {
		s.claimer.stopOnceIdle(s.saved.stopped)
	}
	s.holds.restore(s.saved.holds)
	s.holder.unsent.add(s.saved.unsent...)
	*s.saved = Saved{}
}

// refundRest gives back the room of what was assigned to this incarnation and is not held:
// it waited, was in a call, or got lost in the panic.
func (s *Actor) refundRest() {
	s.report.sendEnded()
	s.holder.discard()
	s.report.refundAll(s.saved.holds)
}

// giveRoomBack runs when the shard goes for good, as one of before a reshard does once it is empty: what
// its holds and what was assigned to it take of subscriptions is heard of by nobody else. The end of a hold
// that another node settled may not have been heard of here.
func (s *Actor) giveRoomBack() {
	held := s.holds.save()
	s.report.refundAll(held)
	for _, h := range held {
		s.report.endHold(h)
	}
	s.report.sendEnded()
}

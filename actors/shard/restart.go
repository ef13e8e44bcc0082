package shard

import (
	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

// onCall handles the end of a store call. Of a call of an earlier incarnation only what it
// changed in the store counts. Claims, pages and walks of then say nothing about now.
func (s *Actor) onCall(d *runtime.CallDone) {
	own := d.By == s.actor
	switch m := d.Result.(type) {
	case *added:
		s.adder.onAdded(m, own)
	case *holdsDone:
		s.holder.onHolds(m, own)
	case *acksDone, *nacksDone, *extendsDone:
		s.settler.onDone(m, own)
	case *recovered:
		s.recoverer.onRecovered(m, own)
	case *givenUp:
		s.claimer.onReleased(m)
	default:
		if own {
			s.onOwnCall(m)
		}
	}
}

// onOwnCall handles the end of a call that only reads, or claims.
func (s *Actor) onOwnCall(result any) {
	switch m := result.(type) {
	case *runningFound:
		s.recoverer.onRunning(m)
	case *swept:
		s.recoverer.onSwept(m)
	case *windowLoaded, *laneLoaded, *lanesFound:
		s.loader.onDone(m)
	case *orderFound:
		s.orderer.onFound(m)
	case *claimed:
		s.claimer.onClaimed(m)
	}
}

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

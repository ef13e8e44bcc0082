package actors

import (
	"cmp"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// An actor that panics is restarted: a new incarnation of it begins from the store. The
// mailbox survives, so the new incarnation gets the results of the old one's store calls.
// A callDone names the incarnation that made the call: only that one counts it as its own.

// callDone is the end of a store call: its result, and the incarnation that made it.
type callDone struct {
	by     actor.Actor
	result any
}

func (d *callDone) fail(err *problem.Error) {
	if m, ok := d.result.(failer); ok {
		m.fail(err)
	}
}

// done tells the shard what a store call came to. Safe from any goroutine.
func (s *shard) done(result any) { s.post(&callDone{s, result}) }

// onCall handles the end of a store call.
func (s *shard) onCall(d *callDone) {
	if d.by != actor.Actor(s) {
		s.onLateCall(d.result)
		return
	}
	switch m := d.result.(type) {
	case *added:
		s.landAdds(m)
		s.onAdded(m)
	case *holdsDone:
		s.holds.Done()
		s.onHolds(m)
	case *acksDone:
		s.acks.Done()
		s.onAcks(m)
	case *nacksDone:
		s.nacks.Done()
		s.onNacks(m)
	case *extendsDone:
		s.extends.Done()
		s.onExtends(m)
	case *recovered:
		s.recovers.Done()
		s.onRecovered(m)
	case *windowLoaded:
		s.onLoaded(m)
	case *laneLoaded:
		s.onLaneLoaded(m)
	case *orderFound:
		s.onOrderFound(m)
	case *lanesFound:
		s.onLanesFound(m)
	case *runningFound:
		s.onRunning(m)
	case *swept:
		s.onSwept(m)
	case *claimed:
		s.onClaimed(m)
	case *givenUp:
		s.onReleased(m)
	}
}

// onLateCall handles the end of a call of an incarnation before this one. What it
// changed in the store is learned, and holds that it was granted go back: their room was
// refunded by refundRest. Claims, pages and walks of then say nothing about now.
func (s *shard) onLateCall(result any) {
	switch m := result.(type) {
	case *added:
		s.giveBack(m.heldTasks(s.now()))
		s.expectHolds(m.tokens, m.err)
		m.held = false
		s.onAdded(m)
	case *holdsDone:
		s.giveBack(s.grantedLate(m))
	case *acksDone:
		s.onAcks(m)
	case *nacksDone:
		s.onNacks(m)
	case *extendsDone:
		s.onExtends(m)
	case *recovered:
		s.onRecovered(m)
	case *givenUp:
		s.onReleased(m)
	}
}

// grantedLate returns the tasks that a call held for an incarnation that is gone. Their
// permits end with the holds, and those of the others now.
func (s *shard) grantedLate(m *holdsDone) (granted []heldTask) {
	if m.err != nil {
		s.endAdmissions(m)
		s.expectHolds(m.tokens, m.err)
		return nil
	}
	for i, r := range m.batch {
		result := &m.results[i]
		if result.Status != store.OK {
			s.endAdmission(r.admission)
			continue
		}
		if r.admission != nil && r.admission.Permit != nil {
			s.permitted(r.task.ID, r.admission.Permit)
		}
		granted = append(granted, heldTask{task: result.Task, token: m.tokens[i].Token, deadline: result.Deadline})
	}
	return granted
}

// savedShard is what a shard leaves to the incarnation after it: what the store cannot
// tell.
type savedShard struct {
	holds   []*agenda.Hold // those that take room of a subscription
	left    *store.Fence   // what the store may have of its claim
	stopped chan struct{}  // see shard.stopped
}

// save runs before a restart.
func (s *shard) save() {
	*s.saved = savedShard{left: s.claim.InStore(), stopped: s.stopped}
	for _, h := range ordered.All(s.held.ByID, cmp.Compare) {
		if h.Sub != nil {
			next := *h
			next.Ending = nil
			s.saved.holds = append(s.saved.holds, &next)
		}
	}
}

// restore takes over from the incarnation before this one.
func (s *shard) restore() {
	s.claim = agenda.NewClaim(s.fleet.Owns(s.id), s.saved.left)
	if s.saved.stopped != nil {
		s.stopClaim(s.saved.stopped)
	}
	for _, h := range s.saved.holds {
		s.assigned[h.Sub.HolderID()]++
		s.held.Add(h)
	}
	*s.saved = savedShard{}
}

// refundRest gives back the room of what was assigned to this incarnation and is not
// held: it waited, was in a call, or got lost in the panic.
func (s *shard) refundRest() {
	for sub, n := range ordered.All(s.freed, cmp.Compare) {
		s.unassign(sub, n)
		s.send(s.parent, &settledHolds{sub: sub, n: n})
	}
	for _, h := range s.saved.holds {
		s.unassign(h.Sub.HolderID(), 1)
	}
	for sub, tasks := range ordered.All(s.outgoing, compareSubscribers) {
		sub.budget.discard(*tasks) // they are held, and no worker gets them
	}
	for sub, n := range ordered.All(s.assigned, cmp.Compare) {
		s.send(s.parent, &refunded{sub: sub, n: n})
	}
}

// unassign notes that the topic hears of the end of n tasks.
func (s *shard) unassign(sub int64, n int) {
	if s.assigned[sub] -= n; s.assigned[sub] <= 0 {
		delete(s.assigned, sub)
	}
}

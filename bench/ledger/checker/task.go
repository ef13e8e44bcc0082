package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/states"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// task is a story under check, with what follows from the clocks and the faults of the run.
// All times are of the monotonic clock unless they are called due. What is known of a hold:
// it was granted before its delivery was received, not before the task was due, and it lasts
// at least as long after that as was left of it when the delivery was sent.
type task struct {
	*story
	*evidence
	earliest int64           // due, see story.earliestDue
	timeline []*ledger.Event // of its offences
}

// task is a story, as rules look at it.
func (ev *evidence) task(s *story) *task {
	return &task{s, ev, s.earliestDue(&ev.clock), s.events}
}

// offend complains of the task.
func (t *task) offend(v verdict.Violation, why string, args ...any) {
	t.evidence.offend(v, t.topic, t.id, t.timeline, why, args...)
}

// policy is how the topic of the task was made, nil when nobody told.
func (t *task) policy() *ledger.Event { return t.topics[t.topic] }

// granted is the earliest that the hold of a delivery can have begun.
func (t *task) granted(d *delivery) int64 { return t.grantedAhead(d, 0) }

// grantedAhead is that of one that may have been held so many ms before it was due.
func (t *task) grantedAhead(d *delivery, ms int64) int64 {
	earliest := t.clock.Reached(max(t.earliest-ms, d.Due-ms, t.began(d.Attempt)))
	for _, o := range t.enqueues {
		if o.result == ledger.OK && o.Mono <= d.Mono { // else it is of a later life, as of a dead letter that is requeued
			earliest = max(earliest, o.Mono) // the only one that can have stored it
		}
	}
	return min(earliest, d.Mono)
}

// until is the earliest that a hold can have run out by itself: extends that were
// asked for before a moment and granted count.
func (t *task) until(d *delivery, before int64) int64 {
	end := t.clock.After(t.granted(d), d.HoldMS*millisecond)
	for _, o := range d.settles {
		if o.Op == ledger.Extend && o.did() && o.to < before {
			end = max(end, t.clock.After(o.Mono, o.answer.HoldMS*millisecond))
		}
	}
	return end
}

const heldAhead = states.HeldAhead

// remover is the first call that made the task go away, or may have: where done tasks
// are kept, an ack does not.
func (t *task) remover() *op {
	if topic := t.policy(); topic == nil || topic.KeepMS == 0 {
		return t.finisher()
	}
	for _, o := range t.removals {
		if o.may() {
			return o
		}
	}
	return nil
}

// handedBack is the earliest moment at which a hold can have been over.
func (t *task) handedBack(d *delivery) int64 {
	end := int64(never)
	for _, o := range d.settles {
		if o.Op != ledger.Extend && o.may() {
			end = min(end, o.Mono)
		}
	}
	for _, o := range t.removals {
		if o.Op == ledger.Drop && o.may() && o.to > t.added(d) {
			end = min(end, o.Mono)
		}
	}
	return min(end, t.until(d, end))
}

// added is when the task of a delivery was there, by its calls: the hand-over may be on its way while its topic is deleted.
func (t *task) added(d *delivery) int64 {
	moment := d.Mono
	for _, o := range t.enqueues {
		if o.may() && o.Mono < d.Mono {
			moment = o.Mono
		}
	}
	return moment
}

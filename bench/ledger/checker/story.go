package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// story is all that is known about one task.
type story struct {
	topic, id   string
	schedule    string         // that made it; empty: an enqueue did
	occurrence  int64          // ms, of such a task
	recipient   string         // whom it is for; empty: it is not of a run of an audience
	created     int64          // ms, of such a task; 0: nobody knows
	making      *ledger.Making // of a step of a workflow; nil: it is none
	cause       string         // the task whose ack enqueued it
	events      []*ledger.Event
	enqueues    []*op
	removals    []*op // deletes, and cancels that may have deleted
	edits       []*op
	moves       []*op // the edits that say when the task is due
	settles     []*op
	waits       []*op
	cancels     []*op
	checkpoints []*op
	ran         []*ledger.Event // what its handlers did once
	deliveries  []*delivery     // in the order they were received
	found       *ledger.Event   // nil: not in the store at the end
	allFound    []*ledger.Event // a key may have several
	takenBack   bool            // the run of a schedule may have been made anew, see excuseTakenBack
}

// op is a call and what came of it. It took effect, if it did, between from and to.
type op struct {
	*ledger.Event               // the call
	answer        *ledger.Event // nil: none came
	result        ledger.Result
	to            int64 // mono of the answer, never without one
	settled       *delivery
	excused       bool // a fault may have undone it
}

// did reports whether the server said that it did what was asked.
func (o *op) did() bool { return o.result == ledger.OK || o.result == ledger.Already }

// may reports whether it was done, or could have been, at any time.
func (o *op) may() bool { return o.result != ledger.Refused }

// delivery is one hand-over and what was done with the hold.
type delivery struct {
	*ledger.Event
	settles []*op
	loose   bool // a fault may have undone the hold; it proves nothing
}

func (s *story) add(e *ledger.Event, calls map[uint64]*op) {
	s.events = append(s.events, e)
	if e.Schedule != "" {
		s.schedule, s.occurrence = e.Schedule, e.Occurrence
	}
	if e.Recipient != "" {
		s.recipient, s.created = e.Recipient, e.Created
	}
	if e.Making != nil {
		s.making = e.Making
	}
	if e.Cause != "" {
		s.cause = e.Cause
	}
	switch e.Kind {
	case ledger.Call:
		o := &op{Event: e, result: ledger.Unknown, to: never}
		calls[e.Call] = o
		switch e.Op {
		case ledger.Enqueue:
			s.enqueues = append(s.enqueues, o)
		case ledger.Delete:
			s.removals = append(s.removals, o)
		case ledger.Update, ledger.Promote, ledger.Reschedule:
			s.edits = append(s.edits, o)
			if e.Op != ledger.Update || e.Due != 0 {
				s.moves = append(s.moves, o)
			}
		case ledger.Ack, ledger.Nack, ledger.Release, ledger.Extend:
			s.settles = append(s.settles, o)
		case ledger.Checkpoint:
			s.checkpoints = append(s.checkpoints, o)
		case ledger.Wait:
			s.waits = append(s.waits, o)
		case ledger.Cancel:
			s.cancels = append(s.cancels, o)
		case ledger.Pause, ledger.Resume, ledger.Configure, ledger.Acquire, ledger.Drop: // of topics
		case ledger.PutSchedule, ledger.PauseSchedule, ledger.ResumeSchedule, ledger.Trigger: // of schedules
		case ledger.Join, ledger.OptOut, ledger.MoveOn, ledger.DropOut: // of audiences
		case ledger.Submit, ledger.Signal, ledger.CancelWorkflow, ledger.PauseWorkflow, ledger.ResumeWorkflow, ledger.RetryWorkflow, ledger.SkipStep: // of workflows
		}
	case ledger.Answer:
		if o := calls[e.Call]; o != nil {
			o.answer, o.result, o.to = e, e.Result, e.Mono
			delete(calls, e.Call)
		}
	case ledger.Delivered:
		s.deliveries = append(s.deliveries, &delivery{Event: e})
	case ledger.Ran:
		s.ran = append(s.ran, e)
	case ledger.Found:
		s.found = e
		s.allFound = append(s.allFound, e)
	case ledger.Opened, ledger.Topic, ledger.Fault, ledger.Healed, ledger.Clock, ledger.Audited, ledger.Watching, ledger.Told, ledger.Expired, ledger.Failed, ledger.Logged, ledger.Ordered, ledger.Works:
	}
}

// made reports whether ddq itself made the task: a schedule, a workflow or an ack.
func (s *story) made() bool { return s.schedule != "" || s.making != nil || s.cause != "" }

// sort puts everything in order and gives settlements to the delivery they are about.
func (s *story) sort() {
	slices.SortStableFunc(s.events, func(a, b *ledger.Event) int { return cmp.Compare(a.Mono, b.Mono) })
	slices.SortStableFunc(s.deliveries, func(a, b *delivery) int { return cmp.Compare(a.Mono, b.Mono) })
	s.removals = append(s.removals, s.cancelled()...)
	slices.SortStableFunc(s.removals, func(a, b *op) int { return cmp.Compare(a.Mono, b.Mono) })
	for _, ops := range [][]*op{s.enqueues, s.edits, s.moves, s.settles, s.waits, s.cancels, s.checkpoints} {
		slices.SortStableFunc(ops, func(a, b *op) int { return cmp.Compare(a.Mono, b.Mono) })
	}
	s.claimEnqueue()
	byToken := make(map[string]*delivery, len(s.deliveries))
	for _, d := range s.deliveries {
		if byToken[d.Token] == nil {
			byToken[d.Token] = d
		}
	}
	for _, o := range s.settles {
		if d := byToken[o.Token]; d != nil {
			d.settles = append(d.settles, o)
			o.settled = d
		}
	}
	for _, o := range s.checkpoints {
		o.settled = byToken[o.Token]
	}
}

// begin is the monotonic time of the first thing that is known.
func (s *story) begin() int64 { return s.events[0].Mono }

// heldSince is from when on a task may have been held. Of one that ddq itself made the first that
// is known is that a worker got it, which is some time after it was held.
func heldSince(s *story) int64 {
	if s.made() {
		return s.begin() - underway
	}
	return s.begin()
}

// underway is how long, in ns, a delivery is on its way at most, about.
const underway = 5000 * millisecond

// mayBeRepeated reports whether the store may have made an edit more than once, each time
// with another version. One that asks for a version it makes once.
func (o *op) mayBeRepeated() bool {
	return o.may() && o.IfVersion == 0 && o.to-o.Mono >= ordinary
}

// ordinary is how long, in ns, an edit takes at least that a node made again because the
// store's answer was lost.
const ordinary = 10 * millisecond

// numbered are the accepted edits whose version is known, in its order.
func (s *story) numbered() []*op {
	var known []*op
	for _, o := range s.edits {
		if o.did() && o.answer.Version != 0 {
			known = append(known, o)
		}
	}
	slices.SortStableFunc(known, func(a, b *op) int { return cmp.Compare(a.answer.Version, b.answer.Version) })
	return known
}

// said is what the first of the task's enqueues says that says anything of it.
func (s *story) said(what func(*op) string) string {
	for _, o := range s.enqueues {
		if it := what(o); it != "" {
			return it
		}
	}
	return ""
}

// key is what the task counts for under the limits of its topic.
func (s *story) key() string { return s.said(func(o *op) string { return o.Key }) }

func (s *story) orderingKey() string { return s.said(func(o *op) string { return o.Order }) }

// tag is the attribute of a task.
func (s *story) tag() string {
	for _, o := range s.enqueues {
		if o.Tag != "" {
			return o.Tag
		}
	}
	return ""
}

// accepted is the first settlement of a kind that was accepted.
func (s *story) accepted(kind ledger.Op) *op {
	for _, o := range s.settles {
		if o.Op == kind && o.did() && o.settled != nil && !o.settled.loose {
			return o
		}
	}
	return nil
}

// settledBefore reports whether a hold was given up before a moment, or may have been.
func (d *delivery) settledBefore(moment int64) bool {
	for _, o := range d.settles {
		if o.Op != ledger.Extend && o.may() && o.Mono < moment {
			return true
		}
	}
	return false
}

// firstDelivery is the first attempt as a worker received it, nil when nobody did.
func (s *story) firstDelivery() *delivery {
	for _, d := range s.deliveries {
		if d.Attempt == 1 && !d.loose {
			return d
		}
	}
	return nil
}

// endedBy reports whether an attempt ended as a settlement of a kind ends it. One that
// was to be cancelled is so, unless it succeeded.
func endedBy(a *ledger.Attempt, kind ledger.Op) bool {
	switch kind {
	case ledger.Ack:
		return a.Outcome == "acked"
	case ledger.Nack:
		return a.Outcome == "failed" || a.Outcome == "cancelled"
	case ledger.Release:
		return a.Outcome == "released" || a.Outcome == "cancelled"
	}
	return false
}

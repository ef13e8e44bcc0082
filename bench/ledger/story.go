package ledger

import (
	"cmp"
	"math"
	"slices"
)

// never is later than everything.
const never = math.MaxInt64

// story is all that is known about one task.
type story struct {
	topic, id  string
	events     []*Event
	enqueues   []*op
	removals   []*op // deletes, and cancels that may have deleted
	edits      []*op
	moves      []*op // the edits that say when the task is due
	settles    []*op
	waits      []*op
	cancels    []*op
	deliveries []*delivery // in the order they were received
	found      *Event      // nil: not in the store at the end
	allFound   []*Event    // a key may have several
}

// op is a call and what came of it. It took effect, if it did, between from and to.
type op struct {
	*Event         // the call
	answer  *Event // nil: none came
	result  Result
	to      int64 // mono of the answer, never without one
	settled *delivery
	excused bool // a fault may have undone it
}

// did reports whether the server said that it did what was asked.
func (o *op) did() bool { return o.result == OK || o.result == Already }

// may reports whether it was done, or could have been, at any time.
func (o *op) may() bool { return o.result != Refused }

// delivery is one hand-over and what was done with the hold.
type delivery struct {
	*Event
	settles []*op
	loose   bool // a fault may have undone the hold; it proves nothing
}

func (s *story) add(e *Event, calls map[uint64]*op) {
	s.events = append(s.events, e)
	switch e.Kind {
	case Call:
		o := &op{Event: e, result: Unknown, to: never}
		calls[e.Call] = o
		switch e.Op {
		case Enqueue:
			s.enqueues = append(s.enqueues, o)
		case Delete:
			s.removals = append(s.removals, o)
		case Update, Promote, Reschedule:
			s.edits = append(s.edits, o)
			if e.Op != Update || e.Due != 0 {
				s.moves = append(s.moves, o)
			}
		case Ack, Nack, Release, Extend:
			s.settles = append(s.settles, o)
		case Wait:
			s.waits = append(s.waits, o)
		case Cancel:
			s.cancels = append(s.cancels, o)
		case Pause, Resume, Configure, Acquire, Drop: // of topics
		}
	case Answer:
		if o := calls[e.Call]; o != nil {
			o.answer, o.result, o.to = e, e.Result, e.Mono
			delete(calls, e.Call)
		}
	case Delivered:
		s.deliveries = append(s.deliveries, &delivery{Event: e})
	case Found:
		s.found = e
		s.allFound = append(s.allFound, e)
	case Opened, Topic, Fault, Healed, Clock, Audited, Watching, Told, Expired, Failed, Logged, Ordered:
	}
}

// sort puts everything in order and gives settlements to the delivery they are about.
func (s *story) sort() {
	slices.SortStableFunc(s.events, func(a, b *Event) int { return cmp.Compare(a.Mono, b.Mono) })
	slices.SortStableFunc(s.deliveries, func(a, b *delivery) int { return cmp.Compare(a.Mono, b.Mono) })
	s.removals = append(s.removals, s.cancelled()...)
	slices.SortStableFunc(s.removals, func(a, b *op) int { return cmp.Compare(a.Mono, b.Mono) })
	for _, ops := range [][]*op{s.enqueues, s.edits, s.moves, s.settles, s.waits, s.cancels} {
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
}

// begin is the monotonic time of the first thing that is known.
func (s *story) begin() int64 { return s.events[0].Mono }

// began is the earliest that the store says an attempt began, ms; 0 when it does not
// say. One that was released comes again under its number.
func (s *story) began(attempt int) int64 {
	if s.found == nil || s.creations() > 1 {
		return 0
	}
	first := int64(0)
	for _, a := range s.found.History {
		if a.Number == attempt && (first == 0 || a.Started < first) {
			first = a.Started
		}
	}
	return first
}

// repeatPause is the least time after which a server repeats a call to its store whose
// answer was lost.
const repeatPause = 10 * millisecond

// claimEnqueue takes the first enqueue that was answered "already" for the one that
// stored the task, when there is no other that can have: the server repeated the call
// itself, after the store's answer was lost. Of those with an idempotency key it may be any.
func (s *story) claimEnqueue() {
	if slices.ContainsFunc(s.enqueues, func(o *op) bool { return o.result == OK || o.result == Unknown }) {
		return
	}
	for _, o := range s.enqueues {
		if o.result != Already {
			continue
		}
		if o.result = OK; s.conflict() != "" {
			o.result = Unknown
		}
		return
	}
}

// creations is how many lives the task may have had: enqueues that stored it, or may have. A
// server may have repeated one of them itself after the task had come to its end: nothing is
// kept of an acked task that would tell the repeat, and a dead one gives way to it. One that
// nobody heard the end of it may be repeating still.
func (s *story) creations() (n int) {
	switch conflict := s.conflict(); {
	case conflict == Replace:
		return s.keyLives()
	case conflict != "" && !slices.ContainsFunc(s.enqueues, func(o *op) bool { return o.excused }):
		return min(1, s.keyLives())
	}
	repeated := 0
	for _, o := range s.enqueues {
		until := o.to
		switch o.result {
		case OK:
			n++
		case Unknown:
			n++
			until = never
		case Refused:
			continue
		}
		if until-o.Mono >= repeatPause && (s.endedBefore(until) || s.diedBefore(o, until)) {
			repeated = 1
		}
	}
	return n + repeated
}

// endedBefore reports whether the task was acked or deleted before a moment, or may
// have been.
func (s *story) endedBefore(moment int64) bool {
	for _, o := range s.removals {
		if o.may() && o.Mono < moment {
			return true
		}
	}
	for _, o := range s.settles {
		if o.Op == Ack && o.may() && o.Mono < moment {
			return true
		}
	}
	return false
}

// diedBefore reports whether the task of an enqueue had come to the dead letters before a moment,
// or may have: the answer says that it took the place of one; or none came, and a worker gave
// the task up or had its last attempt.
func (s *story) diedBefore(o *op, moment int64) bool {
	if o.result != Unknown {
		return o.answer.Replaced == "dead"
	}
	for _, n := range s.settles {
		if n.Op == Nack && n.Final && n.may() && n.Mono < moment {
			return true
		}
	}
	return slices.ContainsFunc(s.deliveries, func(d *delivery) bool {
		return o.Attempts > 0 && d.Attempt >= o.Attempts && d.Mono < moment
	})
}

// stored is the first enqueue that was answered OK, nil when none was.
func (s *story) stored() *op {
	var first *op
	for _, o := range s.enqueues {
		if o.did() && (first == nil || o.to < first.to) {
			first = o
		}
	}
	return first
}

// finisher is the first call that ended the task, or may have, nil when there is
// none.
func (s *story) finisher() (first *op) {
	for _, o := range slices.Concat(s.removals, s.settles) {
		ends := o.Op == Ack || slices.Contains(s.removals, o)
		if ends && o.may() && (first == nil || o.Mono < first.Mono) {
			first = o
		}
	}
	return first
}

// earliestDue is the earliest time, in store milliseconds, at which the task may
// ever have been due for its first attempt; 0 when it was to be delivered at once.
func (s *story) earliestDue(c *clock) int64 {
	due := int64(never)
	for _, o := range s.enqueues {
		if o.result == Refused {
			continue
		}
		d := o.Due
		if o.answer != nil && o.did() && o.answer.Due != 0 {
			d = o.answer.Due
			if o.answer.Result == Already { // the task may have been tried since it was stored
				d = min(d, o.Due)
			}
		}
		due = min(due, d)
	}
	if due == never {
		return 0
	}
	for i, o := range s.moves {
		switch alone := !slices.ContainsFunc(s.moves[:i], func(before *op) bool { return before.to >= o.Mono }); {
		case o.result == Refused:
		case o.did() && alone && c.upper(s.begin(), o.answer) < due:
			due = o.answer.Due // nobody could hold it before
		case o.answer != nil && o.did():
			due = min(due, o.answer.Due)
		default:
			due = min(due, o.Due)
		}
	}
	return due
}

// latestDue is the due time that lateness is measured from: the last that was agreed
// on. False means that nobody knows it.
func (s *story) latestDue() (int64, bool) {
	o := s.stored()
	if o == nil || o.answer.Due == 0 || s.creations() > 1 {
		return 0, false
	}
	due := o.answer.Due
	for _, m := range s.moves {
		switch {
		case m.result == Unknown:
			return 0, false
		case m.did():
			due = m.answer.Due
		}
	}
	return due, true
}

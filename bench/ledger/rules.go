package ledger

import "slices"

// The rules, one method each. All times are of the monotonic clock unless they are
// called due. What is known of a hold: it was granted before its delivery was
// received, not before the task was due, and it lasts at least as long after that as
// was left of it when the delivery was sent.

func (c *checker) phantom() {
	if len(c.s.deliveries) > 0 {
		c.offend(Phantom, "delivered, though no enqueue was accepted")
	} else if c.s.found != nil {
		c.offend(Phantom, "in the store, though no enqueue was accepted")
	}
}

func (c *checker) garbled() {
	sums := map[string]bool{}
	for _, o := range slices.Concat(c.s.enqueues, c.s.edits) {
		sums[o.Sum] = true
	}
	for _, d := range c.s.deliveries {
		if !sums[d.Sum] {
			c.offend(Garbled, "attempt %d has another payload", d.Attempt)
			return
		}
	}
}

// heldAhead is how many ms before it is due a task may be held at most, which is not to say
// that a worker may have it.
const heldAhead = 250

// early also holds the server to what it says itself: the due time in a delivery, and
// the delay of a nack.
func (c *checker) early() {
	for _, d := range c.s.deliveries {
		now := c.h.clock.upper(c.s.begin(), d.Event)
		if due := max(c.earliest, d.Due); now < due {
			c.offend(Early, "attempt %d at least %d ms before it was due", d.Attempt, due-now)
			return
		}
	}
	for _, o := range c.s.settles {
		if o.Op != Nack || !o.did() || o.DelayMS == 0 || o.settled == nil || c.movedAfter(o) {
			continue
		}
		for _, d := range c.s.deliveries {
			if d.ID != o.settled.ID { // another task of the same idempotency key
				continue
			}
			// Both ends are cut to milliseconds.
			if next := c.h.clock.after(o.Mono, (o.DelayMS-1)*millisecond); !d.loose && d.Attempt > o.settled.Attempt && d.Mono > o.Mono && d.Mono < next {
				c.offend(Early, "attempt %d came %d ms before the delay of the nack was over", d.Attempt, (next-d.Mono)/millisecond)
				return
			}
		}
	}
}

// movedAfter reports whether the task may have got another due time after a nack.
func (c *checker) movedAfter(nack *op) bool {
	return slices.ContainsFunc(c.s.moves, func(m *op) bool { return m.may() && m.to > nack.Mono })
}

// doubled looks for one hold that was handed out twice.
func (c *checker) doubled() {
	seen := map[string]bool{}
	for _, d := range c.s.deliveries {
		if seen[d.Token] {
			c.offend(Repeated, "attempt %d was delivered twice under one hold", d.Attempt)
			return
		}
		seen[d.Token] = true
	}
}

// granted is the earliest that the hold of a delivery can have begun.
func (c *checker) granted(d *delivery) int64 {
	earliest := c.h.clock.reached(max(c.earliest, d.Due, c.s.began(d.Attempt)))
	for _, o := range c.s.enqueues {
		if o.result == OK {
			earliest = max(earliest, o.Mono) // the only one that can have stored it
		}
	}
	return min(earliest, d.Mono)
}

// until is the earliest that a hold can have run out by itself: extends that were
// asked for before a moment and granted count.
func (c *checker) until(d *delivery, before int64) int64 {
	end := c.h.clock.after(c.granted(d), d.HoldMS*millisecond)
	for _, o := range d.settles {
		if o.Op == Extend && o.did() && o.to < before {
			end = max(end, c.h.clock.after(o.Mono, o.answer.HoldMS*millisecond))
		}
	}
	return end
}

// settledBefore reports whether a hold was given up before a moment, or may have been.
func (d *delivery) settledBefore(moment int64) bool {
	for _, o := range d.settles {
		if o.Op != Extend && o.may() && o.Mono < moment {
			return true
		}
	}
	return false
}

// overlaps looks for an attempt that came while the hold of an earlier one was alive.
func (c *checker) overlaps() {
	for _, a := range c.s.deliveries {
		for _, b := range c.s.deliveries {
			if a.loose || b.loose || a.Attempt >= b.Attempt || a.settledBefore(b.Mono) {
				continue
			}
			if end := c.until(a, b.Mono); b.Mono < end-millisecond {
				c.offend(Overlap, "attempt %d came %d ms before the hold of attempt %d was over", b.Attempt, (end-b.Mono)/millisecond, a.Attempt)
				return
			}
		}
	}
}

// attempts looks for numbers that came twice, or that are missing without a reason.
func (c *checker) attempts() {
	tokens := map[int]*delivery{}
	highest := 0
	for _, d := range c.s.deliveries {
		if d.loose {
			return
		}
		// A released attempt is not counted, so that its number comes again.
		if other := tokens[d.Attempt]; other != nil && !released(c.s.deliveries, d.Attempt) {
			c.offend(Repeated, "attempt %d was delivered under two holds", d.Attempt)
			return
		}
		tokens[d.Attempt] = d
		highest = max(highest, d.Attempt)
	}
	// Attempts that no worker saw ran out: each took the length of a hold.
	hold, last := c.h.holds[c.s.topic], 0
	since := c.h.clock.reached(c.earliest)
	for n := 1; n <= highest; n++ {
		d := tokens[n]
		if d == nil {
			continue
		}
		if missing := int64(n - last - 1); d.Mono-since < missing*(hold-1)*millisecond {
			c.offend(Skipped, "attempt %d follows %d within %d ms, less than holds of %d ms take", n, last, (d.Mono-since)/millisecond, hold)
			return
		}
		last, since = n, c.granted(d)
	}
}

// released reports whether the worker gave an attempt back, or may have.
func released(deliveries []*delivery, attempt int) bool {
	for _, d := range deliveries {
		if d.Attempt != attempt {
			continue
		}
		for _, o := range d.settles {
			if o.Op == Release && o.may() {
				return true
			}
		}
	}
	return false
}

// stale looks for settlements that were accepted after the hold was over: a later
// attempt had come, or the same hold was settled before.
func (c *checker) stale() {
	for _, o := range c.s.settles {
		if o.result != OK || o.settled == nil || o.settled.loose {
			continue
		}
		for _, d := range c.s.deliveries {
			if !d.loose && d.Attempt > o.settled.Attempt && d.Mono < o.Mono {
				c.offend(Stale, "%s of attempt %d was accepted after attempt %d had come", o.Op, o.settled.Attempt, d.Attempt)
				return
			}
		}
		for _, before := range o.settled.settles {
			if before.Op != Extend && before.did() && before.to < o.Mono {
				c.offend(Stale, "%s of attempt %d was accepted after its %s", o.Op, o.settled.Attempt, before.Op)
				return
			}
		}
	}
}

// resurrected looks for life after the end.
func (c *checker) resurrected() {
	acked := c.acked()
	if acked != nil {
		for _, d := range c.s.deliveries {
			if !d.loose && d.Attempt > acked.settled.Attempt {
				c.offend(Resurrected, "attempt %d, though attempt %d was acked", d.Attempt, acked.settled.Attempt)
				return
			}
		}
		if f := c.s.found; f != nil && f.State != "done" {
			c.offend(Resurrected, "%s in the store at the end, though it was acked", f.State)
			return
		}
	}
	for _, o := range c.s.removals {
		if o.did() && c.livesAfter(o) {
			return
		}
	}
}

// acked is the ack that was accepted; two of different holds are a violation already.
func (c *checker) acked() (first *op) {
	for _, o := range c.s.settles {
		if o.Op != Ack || !o.did() || o.settled == nil || o.settled.loose {
			continue
		}
		if first != nil && first.Token != o.Token {
			c.offend(Stale, "acks of attempts %d and %d were both accepted", first.settled.Attempt, o.settled.Attempt)
		}
		if first == nil || o.settled.Attempt < first.settled.Attempt {
			first = o
		}
	}
	return first
}

// livesAfter reports whether a task lived on after it was deleted.
func (c *checker) livesAfter(gone *op) bool {
	for _, d := range c.s.deliveries {
		if !d.loose && c.granted(d) > gone.to {
			c.offend(Resurrected, "attempt %d came after it was deleted", d.Attempt)
			return true
		}
		for _, o := range d.settles {
			if o.result == OK && o.Mono > gone.to {
				c.offend(Resurrected, "%s of attempt %d was accepted after it was deleted", o.Op, d.Attempt)
				return true
			}
		}
	}
	if f := c.s.found; f != nil {
		c.offend(Resurrected, "%s in the store at the end, though it was deleted", f.State)
		return true
	}
	return false
}

// answers holds deletes and edits to what was true when they were answered.
func (c *checker) answers() {
	stored, finisher := c.s.stored(), c.finisher()
	for _, ops := range [][]*op{c.s.removals, c.s.edits, c.s.cancels, c.s.waits} {
		for _, o := range ops {
			switch {
			case o.result == Refused && o.answer.Reason == NoTask:
				if stored != nil && stored.result != Unknown && stored.to < o.Mono && (finisher == nil || finisher == o || finisher.Mono > o.to) {
					c.offend(Wrong, "%s said that there is no such task", o.Op)
				}
			case o.result == Refused && (o.answer.Reason == Running || o.answer.Reason == Finished):
				from := c.earliest
				if o.answer.Reason == Running {
					from -= heldAhead
				}
				if c.h.clock.upper(c.s.begin(), o.answer) < from {
					c.offend(Wrong, "%s said that it was delivered, before it was due", o.Op)
				}
			case o.did() && o.Op != Cancel && o.Op != Wait && o.Op != Drop:
				c.freeToChange(o)
			}
		}
	}
}

// freeToChange complains when a task was deleted or moved although it was gone, or a
// worker held it all the while.
func (c *checker) freeToChange(o *op) {
	for _, before := range slices.Concat(c.s.removals, c.s.settles) {
		if before != o && before.Op != Extend && before.Op != Nack && before.Op != Release && before.did() && before.to < o.Mono {
			c.offend(Wrong, "%s was accepted after its %s", o.Op, before.Op)
			return
		}
	}
	for _, d := range c.s.deliveries {
		if !d.loose && d.Mono < o.Mono && !d.settledBefore(o.to) && c.until(d, o.Mono) > o.to {
			c.offend(Wrong, "%s was accepted while attempt %d was held", o.Op, d.Attempt)
			return
		}
	}
}

// refusals looks for settlements that were refused although the hold was alive.
func (c *checker) refusals() {
	for _, o := range c.s.settles {
		d := o.settled
		if o.result != Refused || d == nil || d.loose || o.answer.Reason != HoldLost && o.answer.Reason != NoTask {
			continue
		}
		if !c.endedBefore(d, o) && c.until(d, o.Mono) > o.to {
			c.offend(Wrong, "%s of attempt %d was refused while its hold was alive", o.Op, d.Attempt)
			return
		}
	}
}

// endedBefore reports whether anything else may have ended a hold before a settlement
// was answered.
func (c *checker) endedBefore(d *delivery, o *op) bool {
	for _, other := range d.settles {
		if other != o && other.Op != Extend && other.may() && other.Mono < o.to {
			return true
		}
	}
	for _, other := range c.s.removals {
		if other.may() && other.Mono < o.to {
			return true
		}
	}
	for _, later := range c.s.deliveries {
		if later.Attempt > d.Attempt && later.Mono < o.to {
			return true // a violation of its own
		}
	}
	return false
}

// finisher is the first call that made the task go away, or may have: where done tasks
// are kept, an ack does not.
func (c *checker) finisher() *op {
	if t := c.h.topics[c.s.topic]; t == nil || t.KeepMS == 0 {
		return c.s.finisher()
	}
	for _, o := range c.s.removals {
		if o.may() {
			return o
		}
	}
	return nil
}

// lost needs an audit.
func (c *checker) lost() {
	if c.s.stored() == nil || c.s.found != nil {
		return
	}
	switch end := c.finisher(); {
	case end == nil && c.s.finisher() != nil:
		c.offend(Lost, "done, and not kept")
	case end == nil && !c.mayBeTrimmed():
		c.offend(Lost, "acknowledged, and gone")
	}
}

// mayBeTrimmed reports whether the task was one of too many dead letters.
func (c *checker) mayBeTrimmed() bool {
	t := c.h.topics[c.s.topic]
	return t != nil && t.MaxDead > 0 && slices.ContainsFunc(append(c.s.ids(), c.s.id), func(id string) bool { return c.h.died[c.s.topic+"/"+id] })
}

// left looks at what is in the store at the end.
func (c *checker) left() {
	f := c.s.found
	if f == nil {
		return
	}
	switch f.State {
	case "scheduled", "ready", "retrying":
		if late := c.h.clock.late(f, f.Due) / millisecond; late > c.stuckAfter {
			c.offend(Stuck, "%s at the end, %d ms after it was due", f.State, late)
		}
	case "running":
		if over := -f.HoldMS; over > c.stuckAfter {
			c.offend(Stuck, "running at the end, %d ms after its hold was over", over)
		}
	case "dead":
		c.rightlyDead(f)
	}
}

// rightlyDead asks whether the cause of death is true.
func (c *checker) rightlyDead(f *Event) {
	switch f.Reason {
	case "permanent":
		for _, o := range c.s.settles {
			if o.Op == Nack && o.Final && o.may() {
				return
			}
		}
		c.offend(Wrong, "dead as permanent, though no worker said so")
	case "cancelled":
		if !slices.ContainsFunc(c.s.cancels, (*op).may) {
			c.offend(Wrong, "dead as cancelled, though nobody asked for it")
		}
	case "max_retries", "hold_expired":
		if f.Retries < f.MaxRetries {
			c.offend(Wrong, "dead as %s after %d retries of %d", f.Reason, f.Retries, f.MaxRetries)
		}
	default:
		c.offend(Wrong, "dead as %q", f.Reason)
	}
}

// Reasons of refusals that the rules know, in Event.Reason.
const (
	HoldLost = "HOLD_LOST"
	NoTask   = "NO_TASK"
	Running  = "TASK_RUNNING"
	Finished = "TASK_FINISHED"
	Mismatch = "VERSION_MISMATCH"
)

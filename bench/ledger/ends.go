package ledger

import "slices"

// The rules of how tasks end: cancels, results and history.

// The outcomes of cancels.
const (
	requested = "requested"
	tooLate   = "too_late"
	confirmed = "confirmed"
	dropped   = "deleted" // nobody held it
)

// cancelled are the cancels that deleted the task, or may have.
func (s *story) cancelled() (removals []*op) {
	for _, o := range s.cancels {
		if o.Final && (o.result == Unknown || o.did() && o.answer.Outcome == dropped) {
			removals = append(removals, o)
		}
	}
	return removals
}

// deletes are the removals that are neither cancels nor those of a whole topic.
func (s *story) deletes() []*op {
	return slices.DeleteFunc(slices.Clone(s.removals), func(o *op) bool { return o.Op == Cancel || o.Op == Drop })
}

// cancels: a task whose cancellation was asked for, or that was over by then, is not
// delivered again; one that is cancelled did not succeed, and one that was held could be
// asked.
func (c *checker) cancels() {
	for _, o := range c.s.cancels {
		switch {
		case o.result == Refused && o.answer.Reason == notRunning:
			c.heldAllTheWhile(o)
		case o.did() && o.answer.Outcome != dropped:
			c.overAfter(o)
		}
		if !o.did() || o.answer.Outcome != confirmed {
			continue
		}
		if ack := c.s.accepted(Ack); ack != nil {
			c.offend(Wrong, "cancel was confirmed, and attempt %d was acked", ack.settled.Attempt)
		}
		if f := c.s.found; f != nil && (f.State != "dead" || f.Reason != "cancelled") {
			c.offend(Wrong, "cancel was confirmed, and the task is %s (%s)", f.State, f.Reason)
		}
	}
}

// overAfter complains of an attempt that began after a cancel was answered.
func (c *checker) overAfter(o *op) {
	for _, d := range c.s.deliveries {
		if !d.loose && c.granted(d) > o.to {
			c.offend(Resurrected, "attempt %d came after a cancel was answered with %s", d.Attempt, o.answer.Outcome)
			return
		}
	}
}

// heldAllTheWhile complains of a refusal because the task does not run, though it does.
func (c *checker) heldAllTheWhile(o *op) {
	for _, d := range c.s.deliveries {
		if !d.loose && d.Mono < o.Mono && !d.settledBefore(o.to) && c.until(d, o.Mono) > o.to {
			c.offend(Wrong, "%s said that it does not run, while attempt %d was held", o.Op, d.Attempt)
			return
		}
	}
}

// accepted is the first settlement of a kind that was accepted.
func (s *story) accepted(kind Op) *op {
	for _, o := range s.settles {
		if o.Op == kind && o.did() && o.settled != nil && !o.settled.loose {
			return o
		}
	}
	return nil
}

// results: what is told of a done task is what the worker said that acked it.
func (c *checker) results() {
	if f := c.s.found; f != nil && f.State == "done" {
		c.given(f)
	}
	for _, o := range c.s.waits {
		if o.did() && o.answer.State == "done" {
			c.given(o.answer)
		}
	}
}

// given asks whether a worker gave the result that e tells.
func (c *checker) given(e *Event) {
	if ack := c.s.accepted(Ack); ack != nil && e.Output != ack.Output {
		c.offend(Wrong, "the result is not that of attempt %d, which was acked", ack.settled.Attempt)
		return
	}
	asked := slices.ContainsFunc(c.s.settles, func(o *op) bool {
		return o.Op == Ack && o.may() && o.Mono < e.Mono && o.Output == e.Output
	})
	if !asked && e.Output != "" {
		c.offend(Wrong, "done with a result that no worker gave")
	}
}

// historyCap is how many attempts a store keeps.
const historyCap = 20

// history: where attempts are kept, every one that a worker had is written down as it ended, and
// none that ended in another way.
func (c *checker) history() {
	f := c.s.found
	if t := c.h.topics[c.s.topic]; f == nil || t == nil || t.KeepMS == 0 || len(f.History) >= historyCap {
		return
	}
	for _, d := range c.s.deliveries {
		if !d.loose && !c.written(d) {
			return
		}
	}
	for i := range f.History {
		if a := &f.History[i]; c.undone(a.Started) || !c.happened(a) {
			return
		}
	}
}

// written reports whether a delivery, and what was accepted of its settlements, is in the history.
func (c *checker) written(d *delivery) bool {
	var own []*Attempt
	for i := range c.s.found.History {
		if a := &c.s.found.History[i]; a.Number == d.Attempt && a.Worker == d.Client {
			own = append(own, a)
		}
	}
	if !slices.ContainsFunc(own, func(a *Attempt) bool { return a.Started <= c.h.clock.upper(c.s.begin(), d.Event) }) {
		c.offend(Wrong, "attempt %d of %s is not in the history", d.Attempt, d.Client)
		return false
	}
	for _, o := range d.settles {
		if o.Op == Extend || o.result != OK {
			continue
		}
		if !slices.ContainsFunc(own, func(a *Attempt) bool { return a.endedBy(o.Op) }) {
			c.offend(Wrong, "the %s of attempt %d is not in the history", o.Op, d.Attempt)
			return false
		}
	}
	return true
}

// endedBy reports whether an attempt ended as a settlement of a kind ends it. One that
// was to be cancelled is so, unless it succeeded.
func (a *Attempt) endedBy(kind Op) bool {
	switch kind {
	case Ack:
		return a.Outcome == "acked"
	case Nack:
		return a.Outcome == "failed" || a.Outcome == "cancelled"
	case Release:
		return a.Outcome == "released" || a.Outcome == "cancelled"
	}
	return false
}

// happened reports whether an attempt of the history may have ended as it says.
func (c *checker) happened(a *Attempt) bool {
	if a.Started != 0 && a.Started < c.earliest {
		c.offend(Early, "attempt %d began %d ms before it was due, by the store's books", a.Number, c.earliest-a.Started)
		return false
	}
	kinds := map[string]Op{"acked": Ack, "failed": Nack, "released": Release}
	if kind := kinds[a.Outcome]; kind != "" {
		if !slices.ContainsFunc(c.s.settles, func(o *op) bool {
			return o.Op == kind && o.may() && o.settled != nil && o.settled.Attempt == a.Number
		}) {
			c.offend(Wrong, "the history has attempt %d as %s, and no worker said so", a.Number, a.Outcome)
			return false
		}
	}
	if a.Outcome == "cancelled" && !slices.ContainsFunc(c.s.cancels, (*op).may) {
		c.offend(Wrong, "the history has attempt %d as cancelled, and nobody asked for it", a.Number)
		return false
	}
	return true
}

// chosen: a due time that the server may choose is within the bounds, and stays as it
// was answered first.
func (c *checker) chosen() {
	first := int64(0)
	for _, o := range c.s.enqueues {
		if o.Latest == 0 || !o.did() {
			continue
		}
		due := o.answer.Due
		if due < o.Due || due > o.Latest {
			c.offend(Wrong, "due %d ms after the earliest time, of %d", due-o.Due, o.Latest-o.Due)
			return
		}
		if first != 0 && due != first && len(c.s.moves) == 0 {
			c.offend(Wrong, "the enqueue was answered with two due times")
			return
		}
		first = due
	}
}

// The reason of a cancel that was refused.
const notRunning = "TASK_NOT_RUNNING"

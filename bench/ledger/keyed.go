package ledger

import "slices"

// What an enqueue with an idempotency key does when it is taken.
const (
	Return  = "return"  // with a window, within a ledger
	Reject  = "reject"  // so, too
	Replace = "replace" // while its task is live
)

// KeyTaken is the reason of a refusal.
const KeyTaken = "KEY_TAKEN"

// conflict is what the enqueues of a key do when it is taken; empty for a task without
// one.
func (s *story) conflict() string {
	if len(s.enqueues) == 0 {
		return ""
	}
	return s.enqueues[0].Conflict
}

// keyLives is how many tasks a key may have had, more than one of them as 2.
func (s *story) keyLives() (n int) {
	for _, o := range s.enqueues {
		if o.result == OK || o.result == Unknown {
			n = min(2, n+1)
		}
	}
	return n
}

// keyed holds an idempotency key to its promise.
func (c *checker) keyed() {
	switch c.s.conflict() {
	case Return, Reject:
		if c.s.creations() < 2 {
			c.oneTask()
		}
	case Replace:
		if c.h.Audited {
			c.lastOne()
		}
	}
}

// oneTask: within its window all enqueues of a key name one task, which is that of the
// first of them.
func (c *checker) oneTask() {
	var first *op
	unknown := false
	for _, o := range c.s.enqueues {
		switch {
		case o.result == OK && first != nil:
			c.offend(Twinned, "two enqueues were told that the key was free")
			return
		case o.result == OK:
			first = o
		}
		unknown = unknown || o.result == Unknown
	}
	for _, o := range c.s.enqueues {
		if taken := o.result == Already || o.result == Refused && o.answer.Reason == KeyTaken; taken && c.nobodyBefore(o) {
			c.offend(Wrong, "an enqueue was told that the key was taken, and nobody had it")
			return
		}
	}
	ids := c.s.ids()
	if len(ids) > 1 {
		c.offend(Twinned, "the tasks %s and %s have one key", ids[0], ids[1])
		return
	}
	for _, d := range c.s.deliveries {
		if first != nil && !unknown && d.Sum != first.Sum {
			c.offend(Garbled, "attempt %d has not the payload of the enqueue that got the key", d.Attempt)
			return
		}
	}
}

// nobodyBefore reports whether no other enqueue can have got the key before o was answered.
func (c *checker) nobodyBefore(o *op) bool {
	return !slices.ContainsFunc(c.s.enqueues, func(other *op) bool {
		return other != o && (other.result == OK || other.result == Unknown) && other.Mono < o.to
	})
}

// ids are those of all tasks that the key is known to have had.
func (s *story) ids() (ids []string) {
	note := func(e *Event) {
		if e != nil && e.ID != "" && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	for _, o := range s.enqueues {
		note(o.answer)
	}
	for _, d := range s.deliveries {
		note(d.Event)
	}
	for _, f := range s.allFound {
		note(f)
	}
	return ids
}

// lastOne: an enqueue that replaces is delivered, or one is that may have replaced it.
func (c *checker) lastOne() {
	for _, o := range c.s.enqueues {
		if !o.did() {
			continue
		}
		sums := map[string]bool{o.Sum: true}
		for _, later := range c.s.enqueues {
			if later.may() && later.to > o.Mono {
				sums[later.Sum] = true
			}
		}
		got := slices.ContainsFunc(c.s.deliveries, func(d *delivery) bool { return sums[d.Sum] }) ||
			slices.ContainsFunc(c.s.allFound, func(f *Event) bool { return sums[f.Sum] })
		if !got {
			c.offend(Lost, "neither enqueue #%d nor a later one of the key was delivered", o.Call)
			return
		}
	}
}

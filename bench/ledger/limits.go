package ledger

import (
	"cmp"
	"slices"
)

// The rules of limits, which are about all tasks of a topic, or of a key of it.
//
// A hold is seen twice. From the worker's side it lasts from when the delivery was
// received until the worker asked to settle it, or until the earliest moment at which it can have run
// out. In the store's own books, which the audit reads, it lasts from the millisecond after the
// attempt began until the one in which it ended, or until what was left of the hold when it
// was sent would have been over. Either is
// shorter than the hold was, so that what overlaps did so.

// interval is a part of the time in which a task was held, on one clock.
type interval struct {
	s        *story
	attempt  int
	from, to int64
}

// books are the holds of some tasks, and when the store says that they began.
type books struct {
	inHand []interval // mono
	booked []interval // the store's milliseconds
}

// limits checks every topic that has some.
func (c *checker) limits() {
	byTopic := map[string]map[string]*books{} // and key
	for _, s := range c.h.stories {
		if t := c.h.topics[s.topic]; t == nil || !t.limited() {
			continue
		}
		if byTopic[s.topic] == nil {
			byTopic[s.topic] = map[string]*books{}
		}
		key := s.key()
		if byTopic[s.topic][key] == nil {
			byTopic[s.topic][key] = &books{}
		}
		c.enter(byTopic[s.topic][key], s)
	}
	for name, keys := range byTopic {
		t, all := c.h.topics[name], &books{}
		for key, b := range keys {
			all.inHand, all.booked = append(all.inHand, b.inHand...), append(all.booked, b.booked...)
			if key == "" {
				continue
			}
			c.atMost(b, t.KeyCap, "of its key")
			c.inTime(b, t.KeyRate, "its key's rate")
		}
		c.atMost(all, t.Cap, "of its topic")
		c.inTime(all, t.Rate, "its topic's rate")
	}
}

// limited reports whether a topic has limits.
func (e *Event) limited() bool { return e.Cap > 0 || e.KeyCap > 0 || e.Rate != nil || e.KeyRate != nil }

// key is what the task counts for under the limits of its topic.
func (s *story) key() string { return s.said(func(o *op) string { return o.Key }) }

// said is what the first of the task's enqueues says that says anything of it.
func (s *story) said(what func(*op) string) string {
	for _, o := range s.enqueues {
		if it := what(o); it != "" {
			return it
		}
	}
	return ""
}

// enter adds the holds of one task.
func (c *checker) enter(b *books, s *story) {
	c.s, c.earliest = s, s.earliestDue(&c.h.clock)
	for _, d := range s.deliveries {
		if !d.loose {
			b.inHand = append(b.inHand, interval{s, d.Attempt, d.Mono, c.handedBack(d)})
		}
	}
	if s.found == nil {
		return
	}
	for _, a := range s.found.History {
		if a.Started == 0 || c.undone(a.Started) {
			continue
		}
		over := a.Started + s.heldFor(&a)
		if a.Ended != 0 {
			over = min(over, a.Ended)
		}
		b.booked = append(b.booked, interval{s, a.Number, a.Started, over})
	}
}

// heldFor is how long an attempt was held at least, ms, unless it ended before: 0 when
// nobody received it.
func (s *story) heldFor(a *Attempt) int64 {
	least := int64(0)
	for _, d := range s.deliveries {
		if d.Attempt == a.Number && d.Client == a.Worker && (least == 0 || d.HoldMS < least) {
			least = d.HoldMS
		}
	}
	return least
}

// handedBack is the earliest moment at which a hold can have been over.
func (c *checker) handedBack(d *delivery) int64 {
	end := int64(never)
	for _, o := range d.settles {
		if o.Op != Extend && o.may() {
			end = min(end, o.Mono)
		}
	}
	for _, o := range c.s.removals {
		if o.Op == Drop && o.may() && o.to > d.Mono {
			end = min(end, o.Mono)
		}
	}
	return min(end, c.until(d, end))
}

// atMost complains when more than a number of holds were alive at one moment.
func (c *checker) atMost(b *books, most int, of string) {
	if most == 0 {
		return
	}
	c.together(b.inHand, most, 0, "in the hands of workers", of)
	c.together(b.booked, most, 1, "by the store's books", of)
}

// together looks for a moment at which more than most of some intervals overlap, each of
// them begun shorter by slack. One offence is enough.
func (c *checker) together(all []interval, most int, slack int64, where, of string) {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var alive []interval
	for _, x := range all {
		x.from += slack
		if x.to <= x.from {
			continue
		}
		alive = slices.DeleteFunc(alive, func(a interval) bool { return a.to <= x.from })
		if alive = append(alive, x); len(alive) > most {
			c.s = x.s
			c.offend(Crowded, "attempt %d made %d tasks %s that were held at once %s, of %d; another is %s", x.attempt, len(alive), of, where, most, alive[0].s.id)
			return
		}
	}
}

// Tokens of a bucket may be used half a second late, and times are cut to milliseconds.
const (
	tokenLife = 500
	cut       = 1
)

// inTime complains when more holds began in some time than a rate lets through: of a
// bucket more than burst + rate x (time + half a second), in a window more than its count.
func (c *checker) inTime(b *books, r *Rate, what string) {
	if r == nil {
		return
	}
	slices.SortFunc(b.booked, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var run []interval // between faults that may have lost tokens
	lowest := 0        // of run: since when there is the least room
	for _, x := range b.booked {
		if len(run) > 0 && c.tokensLost(run[len(run)-1].from, x.from) {
			run, lowest = nil, 0
		}
		run = append(run, x)
		if r.spent(run, len(run)-1) < r.spent(run, lowest) {
			lowest = len(run) - 1
		}
		first := lowest
		if r.Window {
			first = max(0, len(run)-1-r.Count)
		}
		if n, took := len(run)-first, x.from-run[first].from; r.exceeded(n, took) {
			c.s = x.s
			c.offend(Rushed, "attempt %d is the last of %d within %d ms, which is above %s", x.attempt, n, took, what)
			return
		}
	}
}

// spent is how far the i-th of some holds is ahead of the rate of a bucket.
func (r *Rate) spent(run []interval, i int) int64 {
	return int64(i)*r.PeriodMS - int64(r.Count)*run[i].from
}

// exceeded reports whether n holds in that many ms are too many.
func (r *Rate) exceeded(n int, took int64) bool {
	if r.Window {
		return n > r.Count && took < r.PeriodMS-cut
	}
	return int64(n-max(1, r.Burst))*r.PeriodMS > int64(r.Count)*(took+tokenLife+cut)
}

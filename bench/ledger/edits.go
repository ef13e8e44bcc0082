package ledger

import (
	"cmp"
	"slices"
)

// The rules of edits. A task has version 1 when it is enqueued, and one more with every
// edit that was accepted; a delivery tells the version that it is of. Edits that are not
// answered, and those of many tasks at a time, may have made a version that nobody told.

// versions holds every version that was told to those before and after it.
func (c *checker) versions() {
	known := c.numbered()
	for i, o := range known {
		if i > 0 && known[i-1].answer.Version == o.answer.Version {
			c.offend(Wrong, "%s and %s both made version %d", known[i-1].Op, o.Op, o.answer.Version)
			return
		}
		if o.IfVersion != 0 && o.answer.Version != o.IfVersion+1 {
			c.offend(Wrong, "%s of version %d made version %d", o.Op, o.IfVersion, o.answer.Version)
			return
		}
		c.reachable(o.answer, string(o.Op))
	}
	for _, o := range c.s.edits {
		if o.result == Refused && o.answer.Reason == Mismatch {
			c.mismatch(o)
		}
	}
	for _, d := range c.s.deliveries {
		if !d.loose {
			c.reachable(d.Event, "a delivery")
			c.seen(d)
		}
	}
	if f := c.s.found; f != nil {
		c.reachable(f, "the store")
	}
}

// numbered are the accepted edits whose version is known, in its order.
func (c *checker) numbered() []*op {
	var known []*op
	for _, o := range c.s.edits {
		if o.did() && o.answer.Version != 0 {
			known = append(known, o)
		}
	}
	slices.SortStableFunc(known, func(a, b *op) int { return cmp.Compare(a.answer.Version, b.answer.Version) })
	return known
}

// ordinary is how long, in ns, an edit takes at least that a node made again because the
// store's answer was lost.
const ordinary = 10 * millisecond

// mayBeRepeated reports whether the store may have made an edit more than once, each time
// with another version. One that asks for a version it makes once.
func (o *op) mayBeRepeated() bool {
	return o.may() && o.IfVersion == 0 && o.to-o.Mono >= ordinary
}

// reachable complains of a version that e tells when the edits until then cannot have
// made it: there were too few, or one that was accepted before is not in it.
func (c *checker) reachable(e *Event, who string) {
	if e.Version == 0 {
		return
	}
	most, least, repeated := int64(1), int64(1), false
	asked := e.Mono // by who told
	for _, o := range c.s.edits {
		if o.answer == e {
			asked = o.Mono
		}
	}
	if e.Kind == Delivered {
		asked = never // what it was at the hold, see seen
	}
	for _, o := range c.s.edits {
		if o.may() && o.Mono <= e.Mono {
			most++
		}
		repeated = repeated || o.Mono <= e.Mono && o.mayBeRepeated()
		if o.did() && o.to < asked && e.Kind != Delivered {
			least = max(least, o.answer.Version)
		}
	}
	switch {
	case e.Version > most && !repeated:
		c.offend(Wrong, "%s tells version %d, and there were %d edits at most", who, e.Version, most-1)
	case e.Version < least && e.Kind == Found:
		c.offend(Outdated, "version %d in the store at the end, though version %d was accepted", e.Version, least)
	case e.Version < least:
		c.offend(Wrong, "%s tells version %d after version %d was accepted", who, e.Version, least)
	}
}

// mismatch holds a refusal because of the version to the versions there were.
func (c *checker) mismatch(o *op) {
	if o.IfVersion == 0 || o.answer.Version == o.IfVersion {
		c.offend(Wrong, "%s was refused because of its version, which was the one asked for", o.Op)
		return
	}
	c.reachable(o.answer, string(o.Op))
}

// seen holds the version of a delivery to the edits that were accepted: the hold was
// granted between its own edit and the next, so an edit that it does not show came when
// the hold was over, and one that it shows was asked for before.
func (c *checker) seen(d *delivery) {
	if d.Version == 0 {
		return
	}
	for _, o := range c.s.edits {
		switch {
		case !o.did() || o.answer.Version == 0:
		case o.answer.Version <= d.Version && d.Mono < o.Mono:
			c.offend(Wrong, "attempt %d had version %d before the %s that made it", d.Attempt, d.Version, o.Op)
			return
		case o.answer.Version > d.Version && c.granted(d) > o.to:
			c.offend(Outdated, "attempt %d has version %d, though the %s to version %d had been accepted", d.Attempt, d.Version, o.Op, o.answer.Version)
			return
		case o.answer.Version > d.Version && !d.settledBefore(o.to) && c.until(d, o.Mono) > o.to:
			c.offend(Wrong, "%s to version %d was accepted while attempt %d was held", o.Op, o.answer.Version, d.Attempt)
			return
		}
	}
	for _, before := range c.s.deliveries {
		if !before.loose && before.Attempt < d.Attempt && before.Version > d.Version {
			c.offend(Outdated, "attempt %d has version %d after attempt %d had %d", d.Attempt, d.Version, before.Attempt, before.Version)
			return
		}
	}
}

// contents asks whether what was delivered, or lies in the store, is the payload of its
// version.
func (c *checker) contents() {
	for _, d := range c.s.deliveries {
		if !d.loose && d.Version != 0 && !c.payloadsOf(d.Version)[d.Sum] {
			c.offend(Garbled, "attempt %d has not the payload of version %d", d.Attempt, d.Version)
			return
		}
	}
	if f := c.s.found; f != nil && f.Version != 0 && f.Sum != "" && !c.payloadsOf(f.Version)[f.Sum] {
		c.offend(Garbled, "not the payload of version %d is in the store at the end", f.Version)
	}
}

// payloadsOf are the payloads that a version may have: that of the last edit to it or
// to one before, and those of edits whose version nobody knows.
func (c *checker) payloadsOf(version int64) map[string]bool {
	sums := map[string]bool{}
	last := int64(0)
	for _, o := range c.s.edits {
		switch {
		case o.Sum == "" || !o.may():
		case !o.did() || o.answer.Version == 0:
			sums[o.Sum] = true
		case o.answer.Version <= version && o.answer.Version > last:
			last = o.answer.Version
		}
	}
	for _, o := range c.s.edits {
		if last != 0 && o.did() && o.answer.Version == last {
			sums[o.Sum] = true
		}
	}
	if last == 0 {
		for _, o := range c.s.enqueues {
			sums[o.Sum] = sums[o.Sum] || o.may()
		}
	}
	return sums
}

// group is a call about many tasks, as each of them has it.
type group struct {
	stories []*story
	ops     []*op
}

// gather adds what a story has of calls about many tasks.
func (h *History) gather(s *story) {
	for _, o := range slices.Concat(s.removals, s.edits) {
		if o.Group == "" {
			continue
		}
		g := h.groups[o.Group]
		if g == nil {
			g = &group{}
			h.groups[o.Group] = g
		}
		g.stories, g.ops = append(g.stories, s), append(g.ops, o)
	}
}

// group complains when more tasks went on as before than a call about all of them says
// that it left alone. Which ones it changed, it does not say.
func (c *checker) group(g *group) {
	if o := g.ops[0]; o.answer == nil || o.answer.Result == Refused && o.answer.Changed == 0 {
		return
	}
	untouched := 0
	for i, s := range g.stories {
		if s.creations() != 1 || g.ops[i].excused {
			return
		}
		c.s, c.earliest = s, s.earliestDue(&c.h.clock)
		if c.untouched(g.ops[i]) {
			untouched++
		}
	}
	if changed := g.ops[0].answer.Changed; int(changed)+untouched > len(g.ops) {
		c.offend(Wrong, "%s of %s says that it changed %d of %d tasks, and %d went on as before", g.ops[0].Op, g.ops[0].Group, changed, len(g.ops), untouched)
	}
}

// untouched reports whether a task shows that a call about many has not changed it.
func (c *checker) untouched(o *op) bool {
	for _, d := range c.s.deliveries {
		if !d.loose && c.granted(d) > o.to && (o.Op == Delete || d.Version == 1) {
			return true
		}
	}
	f := c.s.found
	return f != nil && (o.Op == Delete || f.Version == 1)
}

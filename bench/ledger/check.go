package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Violation is the name of a broken promise.
type Violation string

// The violations, each a promise of ddq that did not hold for one task. All are
// certain: what a lost answer, a late frame or a paused client could explain is none.
const (
	Lost        Violation = "lost"        // acknowledged, and neither settled, dead, deleted nor stored
	Phantom     Violation = "phantom"     // delivered or stored, though no enqueue was accepted
	Garbled     Violation = "garbled"     // delivered with another payload
	Early       Violation = "early"       // delivered before it was due on the store's clock
	Overlap     Violation = "overlap"     // delivered while an earlier hold was alive and unsettled
	Repeated    Violation = "repeated"    // the same attempt twice
	Skipped     Violation = "skipped"     // an attempt is missing that had no time to happen
	Stale       Violation = "stale"       // a settlement was accepted for a hold that was over
	Resurrected Violation = "resurrected" // delivered or stored after it was acked or deleted
	Twinned     Violation = "twinned"     // two tasks of one idempotency key
	Outdated    Violation = "outdated"    // delivered or stored as it was before an edit that was accepted
	Crowded     Violation = "crowded"     // held with more others at a time than a cap or an ordering key allows
	Rushed      Violation = "rushed"      // delivered sooner than a rate allows
	Overtaken   Violation = "overtaken"   // a later task of its ordering key went first
	Paused      Violation = "paused"      // delivered although deliveries were paused
	Missed      Violation = "missed"      // it happened, and the log or a watcher was not told
	Mistold     Violation = "mistold"     // the log or a watcher was told twice, out of order, or what did not happen
	Wrong       Violation = "wrong"       // an answer, or a cause of death, that is not true
	Stuck       Violation = "stuck"       // due for long at the end, and still not delivered
)

// Violations lists all kinds, in the order of reports.
func Violations() []Violation {
	return []Violation{Lost, Phantom, Garbled, Early, Overlap, Repeated, Skipped, Stale, Resurrected, Twinned, Outdated, Crowded, Rushed, Overtaken, Paused, Missed, Mistold, Wrong, Stuck}
}

// Offence is a violation by one task, with all that is known about the task.
type Offence struct {
	Violation Violation `json:"violation"`
	Topic     string    `json:"topic"`
	Task      string    `json:"task"`
	Why       string    `json:"why"`
	Timeline  []*Event  `json:"timeline"`
}

// Allowance is what a fault may cost: whatever was answered from Before ahead of its
// start until its end may have been undone, as by a power cut or a failover to a
// replica that lagged behind. Nothing else is excused.
type Allowance struct {
	Fault  string
	Before time.Duration
}

// Rules are what a history is checked against.
type Rules struct {
	Allowances []Allowance
	// StuckAfter is how long after its due time a task may lie in the store at the
	// end. Defaults to 10s.
	StuckAfter time.Duration
	// TokensLost names the faults that may undo what was taken of rates, as a failover
	// to a replica does.
	TokensLost []string
}

// Check tells what of the promises a history breaks.
func Check(h *History, r Rules) *Verdict {
	if r.StuckAfter <= 0 {
		r.StuckAfter = 10 * time.Second
	}
	c := &checker{h: h, stuckAfter: r.StuckAfter.Milliseconds(), excused: h.excused(&r), verdict: &Verdict{
		Events: h.Events, Clients: len(h.Clients), Tasks: len(h.stories), Audited: h.Audited,
		Counts: map[Violation]int{},
	}}
	for _, s := range h.stories {
		if s.stored() != nil {
			c.verdict.Acknowledged++
		}
		c.excuse(s)
		c.check(s)
		c.count(s)
	}
	for _, g := range h.groups {
		c.group(g)
	}
	c.limits()
	c.tokens()
	c.lines()
	c.lanes()
	c.topics()
	c.logs()
	c.watches()
	slices.SortFunc(c.verdict.Offences, func(a, b Offence) int {
		return cmp.Or(cmp.Compare(a.Timeline[0].Mono, b.Timeline[0].Mono), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Why, b.Why))
	})
	for _, o := range c.verdict.Offences {
		c.verdict.Counts[o.Violation]++
	}
	c.verdict.Phases = c.phases()
	return c.verdict
}

// checker goes through the stories of a history.
type checker struct {
	h          *History
	stuckAfter int64 // ms
	excused    []excuse
	verdict    *Verdict

	s        *story // under check
	earliest int64  // due, see story.earliestDue
}

func (c *checker) offend(v Violation, why string, args ...any) {
	c.verdict.Offences = append(c.verdict.Offences, Offence{v, c.s.topic, c.s.id, fmt.Sprintf(why, args...), c.s.events})
}

// excuse is a time in which a fault may have undone what was answered, or only what was
// taken of rates, on the monotonic clock.
type excuse struct {
	from, to int64
	tokens   bool // only those
}

// forgotten is how long before a fault tokens may be lost.
const forgotten = 2 * time.Second

// excused are the times in which the rules let the faults of a history undo things.
func (h *History) excused(r *Rules) (all []excuse) {
	for _, f := range h.faults {
		for _, a := range r.Allowances {
			if f.name == a.Fault {
				all = append(all, excuse{f.from - a.Before.Nanoseconds(), f.to, false})
			}
		}
		if slices.Contains(r.TokensLost, f.name) {
			all = append(all, excuse{f.from - forgotten.Nanoseconds(), f.to, true})
		}
	}
	return all
}

// excuse takes what a fault may have undone for unknown.
func (c *checker) excuse(s *story) {
	for _, x := range c.excused {
		if x.tokens {
			continue
		}
		for _, ops := range [][]*op{s.enqueues, s.removals, s.edits, s.settles, s.waits, s.cancels} {
			for _, o := range ops {
				if o.did() && o.to >= x.from && o.Mono <= x.to {
					o.result, o.excused = Unknown, true
				}
			}
		}
		for _, d := range s.deliveries {
			d.loose = d.loose || d.Mono >= x.from && d.Mono <= x.to
		}
	}
}

// undone reports whether what happened at a time of the store, ms, may have been undone.
func (c *checker) undone(ms int64) bool {
	return slices.ContainsFunc(c.excused, func(x excuse) bool { return !x.tokens && c.h.clock.within(ms, x.from, x.to) })
}

// tokensLost reports whether tokens may have been lost between two times of the store, ms.
func (c *checker) tokensLost(from, to int64) bool {
	return slices.ContainsFunc(c.excused, func(x excuse) bool {
		return c.h.clock.within(from, x.from, x.to) || c.h.clock.within(to, x.from, x.to) ||
			c.h.clock.reached(from) < x.from && c.h.clock.reached(to) > x.from
	})
}

// check applies every rule to one story. A task that may have lived twice, because an
// enqueue with an unknown outcome may have come after its end, is not asked what only
// one life can tell.
func (c *checker) check(s *story) {
	c.s, c.earliest = s, s.earliestDue(&c.h.clock)
	lives := s.creations()
	c.keyed()
	if lives == 0 {
		c.phantom()
		return
	}
	c.garbled()
	c.early()
	c.doubled()
	if lives == 1 {
		c.overlaps()
		c.attempts()
		c.stale()
		c.resurrected()
		c.answers()
		c.refusals()
		c.versions()
		c.contents()
		c.chosen()
		c.cancels()
		c.results()
		c.history()
	}
	if c.h.Audited {
		c.lost()
		c.left()
	}
}

// count adds a story to the figures of the verdict.
func (c *checker) count(s *story) {
	v := c.verdict
	v.Deliveries += len(s.deliveries)
	if s.creations() > 1 {
		v.Ambiguous++
	}
	for _, o := range slices.Concat(s.enqueues, s.deletes(), s.edits, s.settles, s.waits, s.cancels) {
		v.Calls++
		if o.result == Unknown {
			v.Unknown++
		}
		if o.Op != Enqueue && o.result == Refused {
			v.Refused++
		}
	}
	if s.found != nil && s.found.State == "dead" {
		v.Dead++
	}
}

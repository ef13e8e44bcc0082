package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

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
	// Prompt names the faults that keep no task waiting that no worker has, as the end of a worker does not.
	Prompt []string
	// Serving names the faults during which tasks that are due are delivered, within StuckAfter.
	Serving []string
}

// evidence is what rules judge by, and what they found: a history, and the times in which
// faults may have undone something.
type evidence struct {
	*History
	stuckAfter int64    // ms
	prompt     []string // names of faults
	serving    []string // the same
	excused    []excuse
	offences   []verdict.Offence
	told       int // changes, to watchers
}

// newEvidence makes ready what rules look at. What a fault may have undone becomes unknown
// in the history.
func newEvidence(h *History, r *Rules) *evidence {
	ev := &evidence{
		History: h, stuckAfter: cmp.Or(max(r.StuckAfter, 0), 10*time.Second).Milliseconds(), excused: h.excused(r),
		prompt: r.Prompt, serving: r.Serving,
	}
	for _, s := range h.stories {
		ev.excuse(s)
	}
	for _, d := range h.schedules {
		ev.excuseCalls(d.calls())
		ev.excuseTakenBack(d)
	}
	for _, r := range h.registers {
		ev.excuseCalls(r.calls())
	}
	for _, c := range h.workflows {
		ev.excuseCalls(c.calls())
	}
	return ev
}

// offend keeps a violation, with the events that show it.
func (ev *evidence) offend(v verdict.Violation, topic, task string, shown []*ledger.Event, why string, args ...any) {
	ev.offences = append(ev.offences, verdict.Offence{Violation: v, Topic: topic, Task: task, Why: fmt.Sprintf(why, args...), Timeline: shown})
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
			if f.Name == a.Fault {
				all = append(all, excuse{f.From - a.Before.Nanoseconds(), f.To, false})
			}
		}
		if slices.Contains(r.TokensLost, f.Name) {
			all = append(all, excuse{f.From - forgotten.Nanoseconds(), f.To, true})
		}
	}
	return all
}

// excuse takes what a fault may have undone for unknown.
func (ev *evidence) excuse(s *story) {
	ev.excuseCalls(slices.Concat(s.enqueues, s.removals, s.edits, s.settles, s.waits, s.cancels, s.checkpoints))
	for _, x := range ev.excused {
		if x.tokens {
			continue
		}
		for _, d := range s.deliveries {
			d.loose = d.loose || d.Mono >= x.from && d.Mono <= x.to
		}
	}
}

// excuseTakenBack lets a pause or an edit take back runs that have begun: when the clock was
// set back they are to come again, as the edit has them and without what they remember.
func (ev *evidence) excuseTakenBack(d *diary) {
	if !ev.clock.WasSet() || !d.changed() {
		return
	}
	for _, s := range d.runs {
		ask := &ledger.Event{Kind: ledger.Call, Op: ledger.Delete, Topic: s.topic, Task: s.id, Mono: s.begin(), Schedule: s.schedule}
		s.removals = append(s.removals, &op{Event: ask, result: ledger.Unknown, to: never})
		s.takenBack = s.takenBack || d.changedAfter(s.begin())
	}
}

// excuseCalls takes those of some calls for unknown that a fault may have undone.
func (ev *evidence) excuseCalls(ops []*op) {
	for _, o := range ops {
		if o.did() && ev.mayBeUndone(o) {
			o.result, o.excused = ledger.Unknown, true
		}
	}
}

// undone reports whether what happened at a time of the store, ms, may have been undone.
func (ev *evidence) undone(ms int64) bool {
	return slices.ContainsFunc(ev.excused, func(x excuse) bool { return !x.tokens && ev.clock.Within(ms, x.from, x.to) })
}

// tokensLost reports whether tokens may have been lost between two times of the store, ms.
func (ev *evidence) tokensLost(from, to int64) bool {
	return slices.ContainsFunc(ev.excused, func(x excuse) bool {
		return ev.clock.Within(from, x.from, x.to) || ev.clock.Within(to, x.from, x.to) ||
			ev.clock.Reached(from) < x.from && ev.clock.Reached(to) > x.from
	})
}

// mayUndo reports whether a fault may have undone what was answered.
func (ev *evidence) mayUndo() bool {
	return slices.ContainsFunc(ev.excused, func(x excuse) bool { return !x.tokens })
}

// mayBeUndone reports whether a fault may have undone a call.
func (ev *evidence) mayBeUndone(o *op) bool {
	for _, x := range ev.excused {
		if !x.tokens && o.to >= x.from && o.Mono <= x.to {
			return true
		}
	}
	return false
}

// effective is how long a change of a topic may take to be so on all nodes.
const effective = 2 * time.Second

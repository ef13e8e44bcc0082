package workflow

import (
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// Apply returns what becomes of a workflow when events happen to it, in order, and what it takes:
// all of them are one commit. It changes nothing of w. An event of a user may be refused; then
// nothing is to be changed.
func Apply(w *Workflow, events []Event, env Env) (*Workflow, Effects, *refusal.Error) {
	p := &transition{Env: env, w: w.clone()}
	for _, e := range events {
		if err := p.happened(e); err != nil {
			return w, Effects{}, err
		}
	}
	(&settling{transition: p, first: w.Serial, woke: len(events) == 0}).settle()
	p.sweep()
	return p.w, p.out, nil
}

// transition is one Apply in flight. It applies events; see retrying for those that make units
// anew, and settling for what follows from all of them.
type transition struct {
	Env
	w   *Workflow
	out Effects

	ids   map[string]int // of what was made and is open, by the ids of tasks; nil: not yet looked for
	owned bool           // the plan is of this step, and may be grown

	traces traces
}

// settling is the end of a transition: it does all that follows from what is.
type settling struct {
	*transition

	first int64 // what has a higher number is of this step
	woke  bool  // nothing has happened but that its time came
	made  int   // pieces of the commit, about, for what is made
	bytes int   // of that
	anew  bool  // all steps are to be visited, those behind the present one at once
}

func (p *transition) happened(e Event) *refusal.Error {
	switch e := e.(type) {
	case Ended:
		p.ended(e)
	case Ordered:
		p.ordered(e)
	case Signal:
		p.signal(e)
	case Cancel:
		return p.cancel(e)
	case Pause:
		return p.pause(e)
	case Resume:
		return p.resume(e)
	case Retry:
		return (&retrying{transition: p}).retry(e)
	case Skip:
		return (&retrying{transition: p}).skip(e)
	case Delete:
		return p.delete()
	}
	return nil
}

// settle runs once, when all events are applied.
func (p *settling) settle() {
	switch {
	case p.out.Gone:
		return
	case !p.w.Phase.Open():
		p.expire()
		return
	}
	p.timeOut()
	p.passWaits()
	p.withdrawAll()
	for {
		p.askAll()
		p.visitAll()
		if !p.close() {
			break
		}
	}
	p.setWake()
}

// visitAll makes and skips steps until nothing follows any more. It goes through them in their
// order, those that grew last, and again through those of which something may have changed: so a
// step has its turn once before any has a second one. What cancelRest does follows from that order.
func (p *settling) visitAll() {
	due := make([]bool, len(p.w.of().steps))
	for p.anew = true; p.anew; {
		p.anew = false
		for i := range due {
			due[i] = true
		}
		for p.visitDue(due) && !p.anew {
		}
	}
}

// visitDue goes through the steps that are due once, and reports whether some are due that it has
// gone past. It goes on to the end when all are to be visited anew, as all behind are due then.
func (p *settling) visitDue(due []bool) (again bool) {
	g := p.w.of()
	for i := range due {
		if !due[i] && !p.anew {
			continue
		}
		due[i] = false
		if !p.visit(i) {
			continue
		}
		for at := i; at >= 0; at = g.steps[at].parent { // those who wait for what grew, too
			due[at], again = due[at] || at != i, again || at != i
			for _, next := range g.steps[at].before {
				due[next], again = true, again || next <= i
			}
		}
	}
	return again
}

// visit makes or skips what waits of a step, and reports whether any of it has ended.
func (p *settling) visit(i int) bool {
	p.goOn(i)
	n := &p.w.of().steps[i]
	if !slices.ContainsFunc(n.unitsIn(p.w), func(u Unit) bool { return u.State == UnitWaiting }) {
		return false
	}
	rules := conditions{p.w}
	if why := rules.forbids(n); why != WhyNone {
		return p.skipWaiting(n, why, "")
	}
	switch met, unmet := rules.weigh(n); met {
	case isMet:
		return !p.w.IsPaused && !p.w.early(p.Now) && p.make(i)
	case isNever:
		return p.skipWaiting(n, WhyUnmet, unmet)
	}
	return false
}

func (p *transition) skipWaiting(n *node, why Why, unmet string) bool {
	units := n.unitsIn(p.w)
	for i := range units {
		if u := &units[i]; u.State == UnitWaiting {
			u.State, u.Why, u.WhyStep, u.Ended = UnitSkipped, why, unmet, p.Now
		}
	}
	return true
}

// setWake finds when the workflow has something to do by itself.
func (p *settling) setWake() {
	w := p.w
	p.out.Wake = 0
	wakeAt := func(at store.Millis) {
		if at != 0 && (p.out.Wake == 0 || at < p.out.Wake) {
			p.out.Wake = at
		}
	}
	switch {
	case !w.Phase.Open():
		wakeAt(p.expires())
		return
	case p.out.More:
		wakeAt(p.Now)
		return
	}
	if w.early(p.Now) {
		wakeAt(w.Started)
	}
	for i := range w.Units {
		if u := &w.Units[i]; u.State == UnitMade {
			wakeAt(u.Until)
		}
	}
	if p.timesOut() {
		wakeAt(w.timeoutAt())
	}
	wakeAt(p.withdrawsAt())
}

package workflow

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// A workflow that timed out waits for attempts that run, for as long as they are held, and for nothing else: a
// task that no worker has is deleted, however long none comes. One that runs may be pending again, so that is
// looked for again and again.

// withdrawEvery is how often, and withdrawSoon where one step cannot ask all of them.
const (
	withdrawEvery = time.Minute
	withdrawSoon  = time.Second
)

// timesOut reports whether a timeout changes anything now.
func (p *settling) timesOut() bool {
	w := p.w
	return w.Def.Timeout > 0 && (w.Phase == Running || w.Phase == Failing && w.Cause == CauseStep)
}

func (w *Workflow) timeoutAt() store.Millis {
	if w.Def.Timeout == 0 {
		return 0
	}
	return w.Started.Add(w.Def.Timeout)
}

func (p *settling) timeOut() {
	if p.timesOut() && p.Now >= p.w.timeoutAt() {
		p.fail(CauseTimedOut, "")
		p.woke = true
	}
}

// timedOut reports whether a workflow ends because of its timeout, and does not ask all that runs to end.
func timedOut(w *Workflow) bool {
	return w.Phase == Failing && w.Cause == CauseTimedOut && w.AskTo == 0
}

// withdrawAll has units end that no worker has. Of a task in another topic, and of a child, that is not known here:
// they are asked to end.
func (p *settling) withdrawAll() {
	if !p.woke || !timedOut(p.w) {
		return
	}
	var here []TaskRef
	for unit := range p.w.Units {
		u := &p.w.Units[unit]
		switch task := (TaskRef{}); {
		case u.State != UnitMade || u.Asked:
		case p.w.of().find(unit).Task != nil && !u.Suspended:
			if task = (tasks{p.w}).of(unit); task.Topic == "" {
				here = append(here, task)
				continue
			}
			fallthrough
		default:
			if len(p.out.Ask)+len(p.out.Orders) >= asksAStep {
				p.out.More = true
				continue
			}
			p.ask(unit, WhyWorkflowFailed)
		}
	}
	if n := len(here); n > asksAStep { // others each time
		first := int(int64(p.Now-p.w.timeoutAt())/withdrawSoon.Milliseconds()*asksAStep) % n
		here = slices.Concat(here[first:], here[:first])[:asksAStep]
	}
	p.out.Withdraw = here
}

// withdrawsAt is when that is looked for again; 0: there is nothing of it.
func (p *settling) withdrawsAt() store.Millis {
	if !timedOut(p.w) {
		return 0
	}
	n := 0
	for unit := range p.w.Units {
		if u := &p.w.Units[unit]; u.State == UnitMade && !u.Asked {
			n++
		}
	}
	every := store.Millis(withdrawEvery.Milliseconds())
	switch {
	case n == 0:
		return 0
	case n > asksAStep:
		every = store.Millis(withdrawSoon.Milliseconds())
	}
	since := p.w.timeoutAt()
	return since + ((p.Now-since)/every+1)*every
}

// isWithdrawn reports whether an end is that of a task which was deleted because nobody had it.
func (p *transition) isWithdrawn(e *Ended) bool { return timedOut(p.w) && e.Why == WhyDeleted }

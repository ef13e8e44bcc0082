package workflow

import (
	"strings"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

// suspend has a unit wait for what the ack of its task grew. It goes on in another task then, with
// the journal of this one.
func (p *transition) suspend(unit int, e Ended) {
	journal, before := p.value(e.Growth.Journal), len(p.w.Grown)
	p.grow(unit, e.Growth)
	u := &p.w.Units[unit]
	u.Begun = timeOf(u.Begun, timeOf(e.Begun, p.Now))
	if journal.Size < len(e.Growth.Journal) || len(p.w.Grown) == before { // it would wait for nothing, again and again
		p.forget(journal)
		u.Error = "the workflow does not take what the step is to wait for"
		p.failed(unit)
		return
	}
	p.forget(u.Journal)
	u.Suspended, u.Journal = true, journal
}

// goOn makes the next task of units that are suspended, and have nothing more to wait for. What
// is to be asked to end does not go on.
func (p *settling) goOn(i int) {
	n := &p.w.of().steps[i]
	if len(n.grew) == 0 {
		return
	}
	for unit := n.first; unit < n.first+n.units; unit++ {
		u := &p.w.Units[unit]
		switch {
		case !u.Suspended, u.Serial <= p.w.AskTo, p.w.IsPaused, conditions{p.w}.calls(n, unit):
			continue
		case p.made >= makesAStep || p.bytes >= bytesAStep:
			p.out.More = true
			return
		}
		u.Suspended, u.Serial = false, p.w.number()
		p.makeTask(unit, n)
	}
}

// stop ends a unit that is suspended, and with it what it waits for, where nobody else ends that.
func (p *settling) stop(unit int, n *node, why Why) {
	p.end(unit, UnitCancelled)
	p.anew = true
	if why != WhyRest {
		return
	}
	for _, child := range n.grew {
		if p.w.of().grewFrom(child, n, unit) {
			p.endRest(child)
		}
	}
}

// calls reports whether something is open of what a unit grew.
func (c conditions) calls(n *node, unit int) bool { return c.w.awaited(n, unit) != "" }

// awaited is the first step of those that a unit grew which has not ended, with all that grew from it;
// empty: there is none.
func (w *Workflow) awaited(n *node, unit int) string {
	c, g := conditions{w}, w.of()
	for _, child := range n.grew {
		if g.grewFrom(child, n, unit) && (c.outcomeOf(child) == isOpen || c.outcomeOfGrown(child) == isOpen) {
			return g.steps[child].name
		}
	}
	return ""
}

// grewFrom reports whether a step that grew from another one did so from this unit of it.
func (g *plan) grewFrom(child int, n *node, unit int) bool {
	return n.units == 1 && n.Copies == nil || strings.HasPrefix(g.steps[child].name, graph.GrownName(n.name, n.copyOf(unit), ""))
}

// forgetUnit deletes the parts of a unit.
func (p *transition) forgetUnit(u *Unit) {
	p.forget(u.Value)
	p.forget(u.Journal)
}

// forgetJournal deletes that of a unit which needs it no more.
func (p *transition) forgetJournal(u *Unit) {
	p.forget(u.Journal)
	u.Journal = Value{}
}

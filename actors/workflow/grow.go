package workflow

import (
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors/workflow/graph"
)

// grow takes what the ack of a unit changes. It was checked when the ack came; how large the
// workflow is by now only its cells know.
func (p *transition) grow(unit int, g *graph.Growth) {
	if g == nil {
		return
	}
	if g.Again != nil {
		if p.w.Again != nil {
			p.forget(*p.w.Again)
		}
		v := p.value(*g.Again)
		p.w.Again = &v
	}
	p.addSteps(unit, g.Steps)
	for _, name := range g.Skip {
		p.leaveOut(name)
	}
}

func (p *transition) addSteps(unit int, steps []graph.Step) {
	if len(steps) == 0 {
		return
	}
	w := p.w
	if topic := (tasks{w}).topicOf(unit); topic != "" { // what its ack names no topic for is where it was
		steps = graph.To(steps, topic)
	}
	if p.Topic != "" {
		steps = (&graph.Definition{Steps: steps}).In(p.Topic).Steps
	}
	units, longest := 0, 0
	for i := range steps {
		units, longest = units+steps[i].Units(), max(longest, len(steps[i].Name))
	}
	parent := w.of().unitNamed(unit)
	if slices.ContainsFunc(steps, func(s graph.Step) bool { _, there := w.of().byID[parent+"."+s.Name]; return there }) {
		return // its ack would not have been let through
	}
	body := graph.EncodeSteps(steps)
	switch {
	case len(w.Units)+units > graph.MaxUnits || len(parent)+1+longest > graph.MaxStepName:
		p.fail(CauseTooManySteps, "")
		return
	case w.Bytes+int64(len(body)) > MaxCells || len(body) > graph.MaxGrowth || !graph.ChildrenFit(steps, len(w.ID)+1+len(parent), w.Depth),
		!graph.AddressesFit(steps, len(p.Topic), len(w.ID), 1+len(parent)):
		p.fail(CauseTooLarge, "")
		return
	}
	w.Grown = append(w.Grown, Grown{Parent: parent, Part: p.part(body, true), Size: len(body), Steps: steps})
	w.Units = append(w.Units, make([]Unit, units)...)
	if !p.owned {
		w.plan, p.owned = nil, true
		w.of()
		return
	}
	w.plan.grow(&w.Grown[len(w.Grown)-1])
}

// leaveOut skips a step that is not made yet. One that is not there is left out already.
func (p *transition) leaveOut(name string) {
	i, there := p.w.of().byID[name]
	if !there {
		return
	}
	n := &p.w.of().steps[i]
	for _, u := range n.unitsIn(p.w) {
		if u.State != UnitWaiting {
			return
		}
	}
	p.skipWaiting(n, WhyLeftOut, "")
}

// dropGrown removes growth, and all that grew from it.
func (p *transition) dropGrown(which func(*Grown) bool) {
	w := p.w
	g := w.of()
	var units []Unit
	var kept []Grown
	var gone []string
	at := 0
	for ; at < len(w.Def.Steps); at++ {
		units = append(units, g.steps[at].unitsIn(p.w)...)
	}
	for i := range w.Grown {
		grown := &w.Grown[i]
		drop := which(grown) || below(grown.Parent, gone)
		if drop {
			gone = append(gone, grown.Parent+".")
			p.drop(Dropped{Number: grown.Part, Growth: true}, grown.Size)
		} else {
			kept = append(kept, *grown)
		}
		for range grown.Steps {
			for _, u := range g.steps[at].unitsIn(p.w) {
				if drop {
					p.forgetUnit(&u)
				} else {
					units = append(units, u)
				}
			}
			at++
		}
	}
	if len(gone) > 0 {
		w.Units, w.Grown, w.plan, p.owned, p.ids = units, kept, nil, true, nil
	}
}

func below(name string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

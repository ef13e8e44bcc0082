package checker

import (
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/flow"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// workflow is a course under check, with the flow through its graph and its tasks sorted by what
// they were made for.
type workflow struct {
	*course
	*evidence
	flow     *flow.Flow
	timeline []*ledger.Event
	makings  map[making][]*story
}

// making is which copy of which step a task is of, in which start of the workflow.
type making struct {
	step         string
	copy, starts int
	undo         bool
}

// workflow is a course, as rules look at it.
func (ev *evidence) workflow(c *course) *workflow {
	w := &workflow{course: c, evidence: ev, timeline: c.events, makings: map[making][]*story{}}
	w.flow = flow.New(ev.graph(c.topic, c.id), &ev.clock, facts{w})
	for _, s := range c.tasks {
		m := s.making
		of := making{m.Step, m.Copy, m.Starts, m.Undo}
		w.makings[of] = append(w.makings[of], s)
		w.timeline = append(w.timeline, s.events...)
	}
	slices.SortStableFunc(w.timeline, func(a, b *ledger.Event) int { return int(a.Mono - b.Mono) })
	return w
}

// offend complains of the workflow.
func (w *workflow) offend(v verdict.Violation, why string, args ...any) {
	if len(w.timeline) > 0 {
		w.evidence.offend(v, w.topic, w.id, w.timeline, why, args...)
	}
}

// mayBeUndone reports whether a fault may have undone anything of the workflow.
func (w *workflow) mayBeUndone() bool {
	return slices.ContainsFunc(w.root(w.course).calls(), func(o *op) bool { return o.excused }) || slices.ContainsFunc(w.tasks, (*story).loose)
}

// facts are what the flow of a workflow asks for.
type facts struct{ *workflow }

// Began is when the first start of the workflow can have begun.
func (w facts) Began() int64 {
	if parent, step, ok := cutLast(w.id); ok {
		return w.evidence.workflow(w.History.course(w.topic, parent)).flow.Beginable(step, 1)
	}
	if len(w.submits) == 0 {
		return w.from
	}
	return w.submits[0].Mono
}

// cutLast cuts the id of a child into that of its parent and the name of its step.
func cutLast(id string) (parent, step string, ok bool) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return "", "", false
	}
	return id[:i], id[i+1:], true
}

// Grown are the steps that acks of a step add, or may have added.
func (w facts) Grown(step string) (all []ledger.Step) {
	for of, tasks := range w.makings {
		if of.step != step || of.undo {
			continue
		}
		for _, s := range tasks {
			for _, g := range grown(s) {
				if !slices.ContainsFunc(all, func(other ledger.Step) bool { return other.Name == g.Name }) {
					all = append(all, g)
				}
			}
		}
	}
	return all
}

// Grew is when an ack of a step can have added one of those in a start.
func (w facts) Grew(step, name string, starts int) int64 {
	first := int64(never)
	for of, tasks := range w.makings {
		if of.step != step || of.starts != starts || of.undo {
			continue
		}
		for _, s := range tasks {
			if slices.ContainsFunc(grown(s), func(g ledger.Step) bool { return g.Name == name }) {
				first = min(first, s.ackable((*op).may))
			}
		}
	}
	return first
}

// Worked is when a worker first had a task of a step in a start.
func (w facts) Worked(step string, starts int) int64 {
	first := int64(never)
	for of, tasks := range w.makings {
		if of.step != step || of.starts != starts || of.undo {
			continue
		}
		for _, task := range tasks {
			first = min(first, task.begin())
		}
	}
	return first
}

// Acked is when a copy of a step can have been acked in a start.
func (w facts) Acked(step string, number, starts int) int64 {
	first := int64(never)
	for _, task := range w.makings[making{step, number, starts, false}] {
		first = min(first, task.ackable((*op).ends))
	}
	return first
}

// Signalled is when a signal can have come.
func (w facts) Signalled(name string) int64 {
	return asked(slices.DeleteFunc(slices.Clone(w.signals), func(o *op) bool { return o.Signal != name }))
}

// Skipped is when somebody can have skipped a step.
func (w facts) Skipped(step string) int64 {
	return asked(slices.DeleteFunc(slices.Clone(w.redos), func(o *op) bool { return o.Op != ledger.SkipStep || o.Step != step }))
}

// Changed reports whether somebody cancelled the workflow, or retried or skipped steps.
func (w facts) Changed() bool { return len(w.cancels)+len(w.redos) > 0 }

// Child is the flow of the workflow that a step is.
func (w facts) Child(step string) *flow.Flow {
	return w.evidence.workflow(w.History.course(w.topic, w.id+"/"+step)).flow
}

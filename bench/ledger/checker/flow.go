package checker

import (
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
)

// workflow is a course under check, with its graph and its tasks sorted by what they were made
// for. What it knows of moments are bounds: the earliest at which something can have been so, on
// the monotonic clock, whatever nobody was answered.
type workflow struct {
	*course
	*evidence
	graph    *ledger.Workflow
	timeline []*ledger.Event
	makings  map[making][]*story
	bounds   map[place]int64 // of steps that were looked at
}

// making is which copy of which step a task is of, in which start of the workflow.
type making struct {
	step         string
	copy, starts int
	undo         bool
}

// place is a step of a start, and whether it is its begin or its end that is asked for.
type place struct {
	step   string
	starts int
	what   string
}

// workflow is a course, as rules look at it.
func (ev *evidence) workflow(c *course) *workflow {
	w := &workflow{course: c, evidence: ev, graph: ev.History.graph(c.topic, c.id), timeline: c.events, makings: map[making][]*story{}, bounds: map[place]int64{}}
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
func (w *workflow) offend(v Violation, why string, args ...any) {
	if len(w.timeline) > 0 {
		w.evidence.offend(v, w.topic, w.id, w.timeline, why, args...)
	}
}

// mayBeUndone reports whether a fault may have undone anything of the workflow.
func (w *workflow) mayBeUndone() bool {
	return slices.ContainsFunc(w.root(w.course).calls(), func(o *op) bool { return o.excused }) || slices.ContainsFunc(w.tasks, (*story).loose)
}

// step returns a step of the graph, or one that grew, and where its conditions are named from: the
// step that it grew from and a dot, or nothing.
func (w *workflow) step(name string) (s *ledger.Step, within string) {
	if s = w.graph.Step(name); s != nil {
		return s, ""
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil, ""
	}
	for _, grown := range w.grown(name[:dot]) {
		if grown.Name == name[dot+1:] {
			return &grown, name[:dot+1]
		}
	}
	return nil, ""
}

// grown are the steps that an ack of a step adds, or may have added.
func (w *workflow) grown(step string) []ledger.Step {
	for of, tasks := range w.makings {
		if of.step != step || of.undo {
			continue
		}
		for _, s := range tasks {
			for _, o := range s.settles {
				if o.Op == ledger.Ack && o.may() && len(o.Grow) > 0 {
					return o.Grow
				}
			}
		}
	}
	return nil
}

// bound keeps what was found out of a step; 0 at first, against circles.
func (w *workflow) bound(what, step string, starts int, find func() int64) int64 {
	at := place{step, starts, what}
	if known, ok := w.bounds[at]; ok {
		return known
	}
	w.bounds[at] = 0
	known := find()
	w.bounds[at] = known
	return known
}

// begin is when a start of the workflow can have begun.
func (w *workflow) begin(starts int) int64 {
	if starts > 1 {
		return w.bound("start", "", starts, func() (last int64) {
			for i := range w.graph.Steps {
				last = max(last, w.endable(w.graph.Steps[i].Name, starts-1))
			}
			return last
		})
	}
	if parent, step, ok := cutLast(w.id); ok {
		return w.evidence.workflow(w.History.course(w.topic, parent)).beginable(step, 1)
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

// beginable is when a step can have been made.
func (w *workflow) beginable(name string, starts int) int64 {
	return w.bound("begin", name, starts, func() int64 {
		s, within := w.step(name)
		if s == nil {
			return 0
		}
		var met []int64
		for _, c := range s.After {
			met = append(met, w.metBy(within+c.Step, c, starts))
		}
		slices.Sort(met)
		first := w.begin(starts)
		if within != "" {
			first = max(first, w.doable(strings.TrimSuffix(within, "."), starts))
		}
		switch need := s.Need; {
		case len(met) == 0:
			return first
		case need > 0:
			return max(first, met[need-1])
		}
		return max(first, met[len(met)-1])
	})
}

// metBy is when a condition can have been met.
func (w *workflow) metBy(step string, c ledger.Condition, starts int) int64 {
	switch c.On {
	case ledger.OnFailed:
		return w.failable(step, starts)
	case ledger.OnEnded:
		return w.endable(step, starts)
	}
	at := w.doable(step, starts)
	if c.Grown {
		for _, g := range w.grown(step) {
			at = max(at, w.metBy(step+"."+g.Name, c, starts))
		}
	}
	return at
}

// reckoned is how far a node's idea of the store's clock may be behind it on a busy machine: waits
// count from there.
const reckoned = 20 * millisecond

// doable is when a step can have been done.
func (w *workflow) doable(name string, starts int) int64 {
	return w.bound("done", name, starts, func() int64 {
		s, _ := w.step(name)
		if s == nil {
			return 0
		}
		at, begin := int64(0), w.beginable(name, starts)
		switch {
		case s.Child != nil:
			at = w.childDoable(name)
		case s.Signal != "":
			at = w.signalled(s, begin)
		case s.DelayMS > 0:
			at = w.clock.After(begin, s.DelayMS*millisecond-reckoned)
		default:
			at = w.acked(name, s, starts)
		}
		at = max(at, begin)
		for _, o := range w.redos { // one that is not made yet may be skipped, too
			if o.Op == ledger.SkipStep && o.Step == name && o.may() {
				at = min(at, o.Mono)
			}
		}
		return at
	})
}

// acked is when all copies of a step can have been acked.
func (w *workflow) acked(name string, s *ledger.Step, starts int) (last int64) {
	for _, n := range s.Numbers() {
		first := int64(never)
		for _, task := range w.makings[making{name, n, starts, false}] {
			first = min(first, task.ackable())
		}
		last = max(last, first)
	}
	return last
}

// signalled is when a wait for a signal can have been done.
func (w *workflow) signalled(s *ledger.Step, begin int64) int64 {
	at := int64(never)
	for _, o := range w.signals {
		if o.Signal == s.Signal && o.may() {
			at = min(at, o.Mono)
		}
	}
	if s.OtherwiseMS > 0 {
		at = min(at, w.clock.After(begin, s.OtherwiseMS*millisecond-reckoned))
	}
	return at
}

// childDoable is when a child can have been done: all of its steps were.
func (w *workflow) childDoable(name string) (last int64) {
	child := w.evidence.workflow(w.History.course(w.topic, w.id+"/"+name))
	if child.graph == nil {
		return 0
	}
	for i := range child.graph.Steps {
		last = max(last, child.doable(child.graph.Steps[i].Name, 1))
	}
	return last
}

// failable is when a step can have failed: a worker had its task at least.
func (w *workflow) failable(name string, starts int) int64 {
	first := int64(never)
	for of, tasks := range w.makings {
		if of.step != name || of.starts != starts || of.undo {
			continue
		}
		for _, task := range tasks {
			first = min(first, task.begin())
		}
	}
	return max(first, w.beginable(name, starts))
}

// endable is when a step can have ended in any way.
func (w *workflow) endable(name string, starts int) int64 {
	return w.bound("end", name, starts, func() int64 {
		s, within := w.step(name)
		if s == nil || len(w.cancels)+len(w.redos) > 0 || !s.IsTask() {
			return 0
		}
		at := min(w.doable(name, starts), w.failable(name, starts))
		for _, c := range s.After {
			at = min(at, w.skippable(within+c.Step, c, starts))
		}
		return at
	})
}

// skippable is when what waits for a step can have been skipped because of it.
func (w *workflow) skippable(step string, c ledger.Condition, starts int) int64 {
	if c.On != "" {
		return w.endable(step, starts)
	}
	if s, within := w.step(step); s != nil {
		at := w.failable(step, starts)
		for _, before := range s.After {
			at = min(at, w.skippable(within+before.Step, before, starts))
		}
		return at
	}
	return 0
}

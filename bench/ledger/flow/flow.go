package flow

import (
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/clock"
)

// Facts are what clients wrote down of a workflow. Moments are the earliest at which it can
// have been so, on the monotonic clock; math.MaxInt64 where it cannot.
type Facts interface {
	// Began is when the first start of the workflow can have begun.
	Began() int64
	// Grown are the steps that an ack of a step adds, or may have added.
	Grown(step string) []ledger.Step
	// Grew is when an ack of a step can have added one of those in a start.
	Grew(step, name string, starts int) int64
	// Worked is when a worker first had a task of a step in a start.
	Worked(step string, starts int) int64
	// Acked is when a copy of a step can have been acked in a start, for good.
	Acked(step string, number, starts int) int64
	// Signalled is when a signal can have come.
	Signalled(name string) int64
	// Skipped is when somebody can have skipped a step.
	Skipped(step string) int64
	// Changed reports whether somebody cancelled the workflow, or retried or skipped steps.
	Changed() bool
	// Child is the flow of the workflow that a step is.
	Child(step string) *Flow
}

// Flow is the graph of a workflow, and what is known of how it went.
type Flow struct {
	Graph *ledger.Workflow // nil: nobody submitted it, and only its facts can be asked for
	Clock *clock.Clock
	Facts

	bounds map[place]int64 // of steps that were looked at
}

// New is a flow of which nothing was asked yet.
func New(graph *ledger.Workflow, c *clock.Clock, facts Facts) *Flow {
	return &Flow{Graph: graph, Clock: c, Facts: facts, bounds: map[place]int64{}}
}

const millisecond = 1_000_000 // in ns

// place is a step of a start, and whether it is its begin or its end that is asked for.
type place struct {
	step   string
	starts int
	what   string
}

// Step returns a step of the graph, or one that grew, and where its conditions are named from: the
// step that it grew from and a dot, or nothing.
func (f *Flow) Step(name string) (s *ledger.Step, within string) {
	if s = f.Graph.Step(name); s != nil {
		return s, ""
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return nil, ""
	}
	for _, grown := range f.Grown(name[:dot]) {
		if grown.Name == name[dot+1:] {
			return &grown, name[:dot+1]
		}
	}
	return nil, ""
}

// bound keeps what was found out of a step; 0 at first, against circles.
func (f *Flow) bound(what, step string, starts int, find func() int64) int64 {
	at := place{step, starts, what}
	if known, ok := f.bounds[at]; ok {
		return known
	}
	f.bounds[at] = 0
	known := find()
	f.bounds[at] = known
	return known
}

// begin is when a start of the workflow can have begun.
func (f *Flow) begin(starts int) int64 {
	if starts > 1 {
		return f.bound("start", "", starts, func() (last int64) {
			for i := range f.Graph.Steps {
				last = max(last, f.endable(f.Graph.Steps[i].Name, starts-1))
			}
			return last
		})
	}
	return f.Began()
}

// Beginable is when a step can have been made.
func (f *Flow) Beginable(name string, starts int) int64 {
	return f.bound("begin", name, starts, func() int64 {
		s, within := f.Step(name)
		if s == nil {
			return 0
		}
		var met []int64
		for _, c := range s.After {
			met = append(met, f.metBy(within+c.Step, c, starts))
		}
		slices.Sort(met)
		first := f.begin(starts)
		if within != "" {
			parent := strings.TrimSuffix(within, ".")
			first = max(first, f.Beginable(parent, starts), f.Grew(parent, s.Name, starts))
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
func (f *Flow) metBy(step string, c ledger.Condition, starts int) int64 {
	switch c.On {
	case ledger.OnFailed:
		return f.failable(step, starts)
	case ledger.OnEnded:
		return f.endable(step, starts)
	}
	at := f.doable(step, starts)
	if c.Grown {
		for _, g := range f.Grown(step) {
			at = max(at, f.metBy(step+"."+g.Name, c, starts))
		}
	}
	return at
}

// reckoned is how far a node's idea of the store's clock may be behind it on a busy machine: waits
// count from there.
const reckoned = 20 * millisecond

// doable is when a step can have been done.
func (f *Flow) doable(name string, starts int) int64 {
	return f.bound("done", name, starts, func() int64 {
		s, _ := f.Step(name)
		if s == nil {
			return 0
		}
		at, begin := int64(0), f.Beginable(name, starts)
		switch {
		case s.Child != nil:
			at = f.childDoable(name)
		case s.Signal != "":
			at = f.signalled(s, begin)
		case s.DelayMS > 0:
			at = f.Clock.After(begin, s.DelayMS*millisecond-reckoned)
		default:
			at = f.acked(name, s, starts)
		}
		at = max(at, begin)
		return min(at, f.Skipped(name)) // one that is not made yet may be skipped, too
	})
}

// acked is when all copies of a step can have been acked.
func (f *Flow) acked(name string, s *ledger.Step, starts int) (last int64) {
	for _, n := range s.Numbers() {
		last = max(last, f.Acked(name, n, starts))
	}
	return last
}

// signalled is when a wait for a signal can have been done.
func (f *Flow) signalled(s *ledger.Step, begin int64) int64 {
	at := f.Signalled(s.Signal)
	if s.OtherwiseMS > 0 {
		at = min(at, f.Clock.After(begin, s.OtherwiseMS*millisecond-reckoned))
	}
	return at
}

// childDoable is when a child can have been done: all of its steps were.
func (f *Flow) childDoable(name string) (last int64) {
	child := f.Child(name)
	if child.Graph == nil {
		return 0
	}
	for i := range child.Graph.Steps {
		last = max(last, child.doable(child.Graph.Steps[i].Name, 1))
	}
	return last
}

// failable is when a step can have failed: a worker had its task at least.
func (f *Flow) failable(name string, starts int) int64 {
	return max(f.Worked(name, starts), f.Beginable(name, starts))
}

// Called is when a step can have ended that another one waits for in its middle. A wait of such a
// kind ends as it is asked to, unless somebody changes the workflow.
func (f *Flow) Called(name string, starts int) int64 {
	if f.Graph == nil {
		return 0
	}
	s, _ := f.Step(name)
	if s == nil || f.Changed() || s.IsTask() {
		return f.endable(name, starts)
	}
	return f.doable(name, starts)
}

// endable is when a step can have ended in any way.
func (f *Flow) endable(name string, starts int) int64 {
	return f.bound("end", name, starts, func() int64 {
		s, within := f.Step(name)
		if s == nil || f.Changed() || !s.IsTask() {
			return 0
		}
		at := min(f.doable(name, starts), f.failable(name, starts))
		for _, c := range s.After {
			at = min(at, f.skippable(within+c.Step, c, starts))
		}
		return at
	})
}

// skippable is when what waits for a step can have been skipped because of it.
func (f *Flow) skippable(step string, c ledger.Condition, starts int) int64 {
	if c.On != "" {
		return f.endable(step, starts)
	}
	if s, within := f.Step(step); s != nil {
		at := f.failable(step, starts)
		for _, before := range s.After {
			at = min(at, f.skippable(within+before.Step, before, starts))
		}
		return at
	}
	return 0
}

package calls

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// Part is one task of a function. Moments are of the monotonic clock.
type Part struct {
	Task  string
	Began int64           // when a worker first had it
	Kept  []Kept          // names whose checkpoints were answered
	Ran   []*ledger.Event // what its handlers did once
	// Calls are the steps that an ack added which suspended the task, or may have; nil: none may.
	Calls []ledger.Step
	Told  [][]ledger.Input // what each delivery was told of other steps
}

// Kept is a name that the server said it remembers.
type Kept struct {
	Name            string
	Asked, Answered int64
}

// Function is one try of a step.
type Function struct {
	Step string
	Try  int
	// Endable is the earliest that a step which it called can have ended, by its whole name.
	Endable func(step string) int64
}

// Check returns what is wrong with the tasks of the function, which it sorts; why is empty when nothing
// is. A step that never waits has one task.
func (f *Function) Check(parts []Part) (v verdict.Violation, why string, args []any) {
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Or(cmp.Compare(a.Began, b.Began), cmp.Compare(a.Task, b.Task)) })
	var called []ledger.Step
	for i := range parts {
		p := &parts[i]
		if i > 0 && parts[i-1].Calls == nil {
			return verdict.Redone, "try %d of %s has the tasks %s and %s", []any{f.Try, f.Step, parts[i-1].Task, p.Task}
		}
		for _, s := range called {
			name := f.Step + "." + s.Name
			switch {
			case p.Began < f.Endable(name):
				return verdict.Untimely, "%s went on before %s had ended", []any{f.Step, name}
			case !p.wasTold(name, len(s.Numbers())):
				return verdict.Misled, "%s went on, and was told of %s a wrong number of times", []any{f.Step, name}
			}
		}
		if name := p.runsAgain(parts[:i]); name != "" {
			return verdict.Forgotten, "%q of %s ran in %s after its checkpoint was answered in a task before", []any{name, f.Step, p.Task}
		}
		called = append(called, p.Calls...)
	}
	return "", "", nil
}

// wasTold reports whether each delivery was told of a step as often as that has copies.
func (p *Part) wasTold(step string, copies int) bool {
	for _, inputs := range p.Told {
		n := 0
		for _, in := range inputs {
			if in.Step == step {
				n++
			}
		}
		if n != copies {
			return false
		}
	}
	return true
}

// runsAgain returns a name that ran in this task though one before it keeps it; empty: none did. A
// checkpoint that was asked for after this task began does not count: the order of the two is in doubt.
func (p *Part) runsAgain(before []Part) string {
	for i := range before {
		for _, k := range before[i].Kept {
			if k.Asked > p.Began {
				continue
			}
			for _, e := range p.Ran {
				if e.Name == k.Name && e.Mono > k.Answered {
					return k.Name
				}
			}
		}
	}
	return ""
}

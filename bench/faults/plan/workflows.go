package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
)

// Flowed is the topic of the workflows, and of the chains of tasks that acks enqueue. It keeps what
// is done. Next is where the last task of a chain goes, and some steps of workflows.
const (
	Flowed = "faults-flows"
	Next   = "faults-next"
)

// The shapes of workflows: every one of a round is of one of them, in turn.
const (
	Chain     = "chain"     // one step after the other
	Fanout    = "fanout"    // one, many copies, and one that joins them
	Growing   = "growing"   // its acks add steps, and these add more
	Saga      = "saga"      // its last step fails, and all are undone
	Signalled = "signalled" // it waits for a signal, which may come early
	Either    = "either"    // it waits for a signal or for a time, whichever is first
	Nested    = "nested"    // a step of it is a workflow, and another one of another topic
	Stopped   = "stopped"   // it is cancelled while it runs, and undone
	Circling  = "circling"  // it begins again, and is paused meanwhile
	Repaired  = "repaired"  // a step fails, and is made anew
	Passed    = "passed"    // a wait that would last for ever is skipped
	Hopping   = "hopping"   // every other step is in another topic
	Calling   = "calling"   // a step waits in its middle for two tasks, and then for a signal
)

// Shapes are all of them.
func Shapes() []string {
	return []string{Chain, Fanout, Growing, Saga, Signalled, Either, Nested, Stopped, Circling, Repaired, Passed, Hopping, Calling}
}

// Workflow is one of the plan.
type Workflow struct {
	ID    string
	Shape string
	Send  time.Duration // from the start of the plan
	Act   time.Duration // when something is done to it, if anything is
	Graph ledger.Workflow
}

// Workflows decides everything about the workflows of a round.
func Workflows(c *Config) []Workflow {
	r := rand.New(rand.NewPCG(c.Seed, Draw(c.Seed, c.Name, "workflows")))
	all := make([]Workflow, c.Workflows)
	for i := range all {
		shape := Shapes()[i%len(Shapes())]
		send := time.Duration(r.Int64N(int64(c.For) * 3 / 4))
		all[i] = Workflow{ID: fmt.Sprint(shape, "-", i), Shape: shape, Send: send, Act: send + time.Duration(r.Int64N(int64(time.Second)))}
		all[i].Graph = graph(shape, 2+r.IntN(12))
	}
	return all
}

// Chained is how many tasks a chain has, and ChainID what the first of one is called.
const Chained = 5

// ChainID is what the first task of a chain is called.
func ChainID(i int) string { return fmt.Sprint("link-", i) }

// graph is that of a shape.
func graph(shape string, n int) ledger.Workflow {
	switch shape {
	case Fanout:
		return steps(ledger.Step{Name: "start"}, ledger.Step{Name: "part", After: after("start"), Copies: new(4 * n)}, ledger.Step{Name: "join", After: after("part")})
	case Growing:
		return steps(ledger.Step{Name: "start"}, ledger.Step{Name: "join", After: []ledger.Condition{{Step: "start", Grown: true}}})
	case Saga:
		g := chain(4)
		g.Undo = true
		g.Steps = append(g.Steps, ledger.Step{Name: "fails", After: after(g.Steps[3].Name)})
		return g
	case Signalled:
		return steps(ledger.Step{Name: "start"}, ledger.Step{Name: "approve", Signal: "go"}, ledger.Step{Name: "end", After: after("start", "approve")})
	case Either:
		g := steps(ledger.Step{Name: "approve", Signal: "go"}, ledger.Step{Name: "late", DelayMS: 400}, ledger.Step{Name: "end", After: after("approve", "late"), Need: 1})
		g.Cancels = true
		return g
	case Nested:
		inner := chain(2)
		return steps(ledger.Step{Name: "start"}, ledger.Step{Name: "inner", After: after("start"), Child: &inner},
			ledger.Step{Name: "there", Topic: Next, After: after("inner"), Child: &inner}, ledger.Step{Name: "end", After: after("there")})
	case Stopped:
		g := chain(5)
		g.Undo = true
		return g
	case Circling:
		return chain(2)
	case Repaired:
		return steps(ledger.Step{Name: "start"}, ledger.Step{Name: "once", After: after("start")}, ledger.Step{Name: "end", After: after("once")})
	case Hopping:
		g := chain(5)
		for i := 1; i < len(g.Steps); i += 2 {
			g.Steps[i].Topic = Next
		}
		return g
	case Calling:
		return steps(ledger.Step{Name: Function}, ledger.Step{Name: "end", After: after(Function)})
	case Passed:
		return steps(ledger.Step{Name: "start"}, ledger.Step{Name: "never", Signal: "never", After: after("start")}, ledger.Step{Name: "end", After: after("never")})
	}
	return chain(5)
}

func steps(all ...ledger.Step) ledger.Workflow { return ledger.Workflow{Steps: all} }

// chain is n steps one after the other, which can be undone.
func chain(n int) (g ledger.Workflow) {
	for i := range n {
		s := ledger.Step{Name: fmt.Sprint("s", i), Undo: true}
		if i > 0 {
			s.After = after(g.Steps[i-1].Name)
		}
		g.Steps = append(g.Steps, s)
	}
	return g
}

func after(names ...string) (all []ledger.Condition) {
	for _, name := range names {
		all = append(all, ledger.Condition{Step: name})
	}
	return all
}

// GrownBy are the steps that the ack of a step adds to a growing workflow.
func GrownBy(step string) []ledger.Step {
	switch step {
	case "start":
		return []ledger.Step{{Name: "a"}, {Name: "b"}, {Name: "c", After: after("a")}, {Name: "d", After: after("b", "c")}}
	case "start.b":
		return []ledger.Step{{Name: "a"}, {Name: "part", Copies: new(3)}, {Name: "z", After: after("a", "part")}}
	}
	return nil
}

// Function is the step of a calling workflow that waits in its middle.
const Function = "function"

// Rounds is how often a circling workflow begins.
const Rounds = 3

// StepFate is what becomes of an attempt of a task of a workflow.
func StepFate(c *Config, id, shape, step string, number, try int, undo bool) Fate {
	switch {
	case undo && shape == Saga && step == "s1" && Draw(c.Seed, id, "undo")%2 == 0:
		return Permanent
	case step == "fails" || step == "once" && try == 1:
		return Permanent
	}
	return c.Mix.FateOf(c.Seed, fmt.Sprint(id, "/", step, "#", number, ".", try, undo))
}

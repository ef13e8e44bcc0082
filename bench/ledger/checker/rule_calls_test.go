package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// suspended is the ack of a task of the step "f", which calls "x" and waits for the signal "go".
func (p *tape) suspended(at int64, id string, r ledger.Result) {
	p.stepAcked(at, id, r, func(e *ledger.Event) {
		e.Output, e.Suspends, e.Grow = "", true, []ledger.Step{{Name: "x"}, {Name: "go", Signal: "go"}}
	})
}

// called is what a task of "f" is told of its calls.
func called(result string) ledger.Making {
	return ledger.Making{Step: "f", Inputs: []ledger.Input{{Step: "f.x", State: ledger.StepDone, Sum: result}, {Step: "f.go", State: ledger.StepDone}}}
}

// remembers is a name that a task of a step remembers, when it ran.
func (p *tape) remembers(at int64, id, name string, r ledger.Result) {
	p.at(at).put(ledger.Event{Kind: ledger.Ran, Task: id, Attempt: 1, Token: id, Name: name})
	p.call(ledger.Event{Op: ledger.Checkpoint, Task: id, Token: id, Name: name}, r, "", func(e *ledger.Event) { e.Task = id })
}

// stored is how the task of a step was found that was done in one attempt, which began at a moment.
func (p *tape) stored(began int64, id, output string) {
	p.put(ledger.Event{Kind: ledger.Found, Task: id, State: "done", Output: output, History: []ledger.Attempt{{Number: 1, Started: epoch + began, Outcome: "acked"}}})
}

func TestCheckerFindsWrongCalls(t *testing.T) {
	graph := ledger.Workflow{Steps: []ledger.Step{{Name: "f"}, {Name: "z", After: []ledger.Condition{{Step: "f"}}}}}
	first := func(p *tape, r ledger.Result) {
		p.submitted(graph)
		p.stepBegun(10, "f1", ledger.Making{Step: "f"})
		p.remembers(11, "f1", "a", ledger.OK)
		p.suspended(15, "f1", r)
		p.stored(10, "f1", "")
	}
	signal := func(p *tape) { p.at(18).ofFlow(ledger.Event{Op: ledger.Signal, Signal: "go"}, ledger.OK) }
	rest := func(p *tape) {
		p.stepOf(50, "z", told("f", "of f2"))
		p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "f", "f.x", "f.go", "z")...)
	}
	playScenes(t, []scene{
		{"it goes on when both have ended", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepOf(40, "f2", called("of x"))
			rest(p)
		}, ""},
		{"it goes on, and nobody was answered", func(p *tape) {
			first(p, "")
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepOf(40, "f2", called("of x"))
			rest(p)
		}, ""},
		{"a call before the ack that calls", func(p *tape) {
			p.submitted(graph)
			p.stepBegun(10, "f1", ledger.Making{Step: "f"})
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.suspended(30, "f1", ledger.OK)
			p.stored(10, "f1", "")
			p.stepOf(40, "f2", called("of x"))
			rest(p)
		}, verdict.Untimely},
		{"it goes on before its call has ended", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepBegun(20, "x", ledger.Making{Step: "f.x"})
			p.at(21).put(ledger.Event{Kind: ledger.Delivered, Task: "f2", Making: func() *ledger.Making {
				m := called("of x")
				m.Workflow, m.Try, m.Starts = "w", 1, 1
				return &m
			}(), Attempt: 1, Token: "f2", HoldMS: 1000, Sum: "f2", Due: epoch + 21})
			p.stepAcked(25, "x", ledger.OK)
			p.stepAcked(40, "f2", ledger.OK)
			rest(p)
		}, verdict.Misled},
		{"it goes on before its signal", func(p *tape) {
			first(p, ledger.OK)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepOf(40, "f2", called("of x"))
			p.at(48).ofFlow(ledger.Event{Op: ledger.Signal, Signal: "go"}, ledger.OK)
			rest(p)
		}, verdict.Untimely},
		{"it goes on, and is told of one of two", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepOf(40, "f2", ledger.Making{Step: "f", Inputs: called("of x").Inputs[:1]})
			rest(p)
		}, verdict.Misled},
		{"it goes on twice", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepOf(30, "f3", called("of x"))
			p.stepOf(40, "f2", called("of x"))
			rest(p)
		}, verdict.Redone},
		{"it is done, and what was called is not", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepOf(40, "f2", called("of x"))
			p.stepOf(50, "z", told("f", "of f2"))
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "f", "z")...)
		}, verdict.Half},
		{"what it remembers runs again behind the call", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepBegun(40, "f2", called("of x"))
			p.remembers(41, "f2", "a", ledger.OK)
			p.stepAcked(45, "f2", ledger.OK)
			p.stored(40, "f2", "of f2")
			rest(p)
		}, verdict.Forgotten},
		{"another name runs behind the call", func(p *tape) {
			first(p, ledger.OK)
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepBegun(40, "f2", called("of x"))
			p.remembers(41, "f2", "b", ledger.OK)
			p.stepAcked(45, "f2", ledger.OK)
			p.stored(40, "f2", "of f2")
			rest(p)
		}, ""},
		{"a name whose checkpoint was not answered runs again behind the call", func(p *tape) {
			p.submitted(graph)
			p.stepBegun(10, "f1", ledger.Making{Step: "f"})
			p.remembers(11, "f1", "a", "")
			p.suspended(15, "f1", ledger.OK)
			p.stored(10, "f1", "")
			signal(p)
			p.stepOf(20, "x", ledger.Making{Step: "f.x"})
			p.stepBegun(40, "f2", called("of x"))
			p.remembers(41, "f2", "a", ledger.OK)
			p.stepAcked(45, "f2", ledger.OK)
			p.stored(40, "f2", "of f2")
			rest(p)
		}, ""},
	})
}

package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// ofFlow is a call about the workflow "w", or how it stands.
func (p *tape) ofFlow(e ledger.Event, r ledger.Result) {
	e.Task, e.Flow = "-", "w"
	if e.Kind == ledger.Found {
		p.put(e)
	} else {
		p.call(e, r, "", func(a *ledger.Event) { a.Flow, a.Task = "w", "-" })
	}
	for i := range p.events {
		if p.events[i].Task == "-" {
			p.events[i].Task = ""
		}
	}
}

// submitted begins the story of a workflow, in a topic that keeps what is done.
func (p *tape) submitted(w ledger.Workflow) {
	p.at(1).put(ledger.Event{Kind: ledger.Topic, HoldMS: 1000, KeepMS: 1000})
	p.ofFlow(ledger.Event{Op: ledger.Submit, Workflow: &w}, ledger.OK)
}

// stepBegun is the delivery of a step's task.
func (p *tape) stepBegun(at int64, id string, m ledger.Making) {
	m.Workflow, m.Try, m.Starts = "w", max(m.Try, 1), 1
	p.at(at).put(ledger.Event{Kind: ledger.Delivered, Task: id, Making: &m, Attempt: 1, Token: id, HoldMS: 1000, Sum: id, Due: epoch + at})
}

// stepAcked is its ack, which is in the books of the store.
func (p *tape) stepAcked(at int64, id string, r ledger.Result, add ...func(*ledger.Event)) {
	e := ledger.Event{Op: ledger.Ack, Task: id, Token: id, Output: "of " + id}
	for _, do := range add {
		do(&e)
	}
	p.at(at).call(e, r, "", func(a *ledger.Event) { a.Task = id })
}

func (p *tape) stepOf(at int64, id string, m ledger.Making) {
	if m.Step == "" {
		m.Step = id
	}
	p.stepBegun(at, id, m)
	p.stepAcked(at+5, id, ledger.OK)
	p.put(ledger.Event{Kind: ledger.Found, Task: id, State: "done", Output: "of " + id, History: []ledger.Attempt{{Number: 1, Started: epoch + at, Outcome: "acked"}}})
}

// flowStands is how the workflow was found.
func (p *tape) flowStands(state string, steps ...ledger.StepStanding) {
	p.at(5000).ofFlow(ledger.Event{Kind: ledger.Found, State: state, Steps: steps}, "")
}

// childStands is how the child "c" of the workflow was found.
func (p *tape) childStands(state string, steps ...ledger.StepStanding) {
	p.at(4000).put(ledger.Event{Kind: ledger.Found, Task: "-", Flow: "w/c", State: state, Steps: steps})
	p.events[len(p.events)-1].Task = ""
}

func told(step, sum string) ledger.Making {
	return ledger.Making{Inputs: []ledger.Input{{Step: step, State: ledger.StepDone, Sum: sum}}}
}

func standing(state string, steps ...string) (all []ledger.StepStanding) {
	for _, s := range steps {
		all = append(all, ledger.StepStanding{Step: s, State: state})
	}
	return all
}

func TestCheckerFindsWrongWorkflows(t *testing.T) {
	line := ledger.Workflow{Undo: true, Steps: []ledger.Step{{Name: "a", Undo: true}, {Name: "b", Undo: true, After: []ledger.Condition{{Step: "a"}}}}}
	fan := ledger.Workflow{Steps: []ledger.Step{{Name: "a", Copies: new(2)}, {Name: "b", After: []ledger.Condition{{Step: "a"}}}}}
	nested := ledger.Workflow{Steps: []ledger.Step{{Name: "c", Child: &ledger.Workflow{Steps: []ledger.Step{{Name: "x"}}}}}}
	both := func(p *tape) {
		p.submitted(line)
		p.stepOf(10, "a", ledger.Making{})
		p.stepOf(20, "b", told("a", "of a"))
	}
	undoOf := func(step string) ledger.Making { return ledger.Making{Step: step, Undo: true} }
	retried := func(p *tape, at int64) { // a step that failed once, and a cancel of 20
		p.submitted(ledger.Workflow{Steps: []ledger.Step{{Name: "a"}}})
		p.stepBegun(10, "a", ledger.Making{Step: "a"})
		p.at(12).call(ledger.Event{Op: ledger.Nack, Task: "a", Token: "a"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "a" })
		p.at(20).ofFlow(ledger.Event{Op: ledger.CancelWorkflow}, ledger.OK)
		m := ledger.Making{Step: "a", Workflow: "w", Try: 1, Starts: 1}
		p.at(at).put(ledger.Event{Kind: ledger.Delivered, Task: "a", Making: &m, Attempt: 2, Token: "again", HoldMS: 1000, Sum: "a", Due: epoch + at})
		p.at(at+5).call(ledger.Event{Op: ledger.Ack, Task: "a", Token: "again", Output: "of a"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "a" })
		p.put(ledger.Event{Kind: ledger.Found, Task: "a", State: "done", Output: "of a", History: []ledger.Attempt{
			{Number: 1, Started: epoch + 10, Outcome: "failed"}, {Number: 2, Started: epoch + at, Outcome: "acked"},
		}})
		p.flowStands(ledger.FlowCancelled, standing(ledger.StepDone, "a")...)
	}
	playScenes(t, []scene{
		{"one step after the other", func(p *tape) {
			both(p)
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "b")...)
		}, ""},
		{"open at the end", func(p *tape) {
			both(p)
			p.flowStands("running", standing(ledger.StepDone, "a", "b")...)
		}, verdict.Stranded},
		{"open at the end, with a task that is due when the clock is there again", func(p *tape) {
			p.submitted(line)
			p.at(2).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 3_600_002})
			p.stepOf(10, "a", ledger.Making{})
			p.at(20).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 20})
			p.put(ledger.Event{Kind: ledger.Found, Task: "b", Making: &ledger.Making{Workflow: "w", Step: "b", Try: 1, Starts: 1}, State: "scheduled", Due: epoch + 3_600_010})
			p.flowStands("running", standing(ledger.StepDone, "a")...)
		}, ""},
		{"open at the end, with a child that begins when the clock is there again", func(p *tape) {
			p.submitted(nested)
			p.at(2).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 3_600_002})
			p.at(20).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 20})
			p.childStands("running", standing("waiting", "x")...)
			p.flowStands("running", standing("made", "c")...)
		}, ""},
		{"open at the end, with a child that does not begin", func(p *tape) {
			p.submitted(nested)
			p.childStands("running", standing("waiting", "x")...)
			p.flowStands("running", standing("made", "c")...)
		}, verdict.Stranded},
		{"a step of a child in another topic before the one that the child waits for was acked", func(p *tape) {
			p.submitted(ledger.Workflow{Steps: []ledger.Step{{Name: "a"}, {Name: "c", Topic: "away", After: []ledger.Condition{{Step: "a"}}, Child: &ledger.Workflow{Steps: []ledger.Step{{Name: "x"}}}}}})
			p.stepBegun(10, "a", ledger.Making{Step: "a"})
			m := ledger.Making{Workflow: "w/c:4xg9xgm", Step: "x", Try: 1, Starts: 1}
			p.at(12).put(ledger.Event{Kind: ledger.Delivered, Topic: "away", Task: "x", Making: &m, Attempt: 1, Token: "x", HoldMS: 1000, Sum: "x", Due: epoch + 12})
			p.stepAcked(20, "a", ledger.OK)
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "c")...)
		}, verdict.Untimely},
		{"submitted, and gone", both, verdict.Stranded},
		{"cancelled by nobody", func(p *tape) {
			p.submitted(line)
			p.flowStands(ledger.FlowCancelled)
		}, verdict.Wrong},
		{"a step before the one that it waits for was acked", func(p *tape) {
			p.submitted(line)
			p.stepBegun(10, "a", ledger.Making{Step: "a"})
			p.stepOf(20, "b", told("a", "of a"))
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "b")...)
		}, verdict.Untimely},
		{"a join when one of two copies was acked", func(p *tape) {
			p.submitted(fan)
			p.stepOf(10, "a1", ledger.Making{Step: "a", Copy: 1})
			p.stepOf(20, "b", ledger.Making{Inputs: []ledger.Input{{Step: "a", Copy: 1, State: ledger.StepDone, Sum: "of a1"}, {Step: "a", Copy: 2, State: ledger.StepDone, Sum: "of a2"}}})
			p.stepOf(30, "a2", ledger.Making{Step: "a", Copy: 2})
			p.flowStands(ledger.FlowDone, ledger.StepStanding{Step: "a", Copy: 1, State: ledger.StepDone}, ledger.StepStanding{Step: "a", Copy: 2, State: ledger.StepDone}, ledger.StepStanding{Step: "b", State: ledger.StepDone})
		}, verdict.Untimely},
		{"a signalled step before the signal", func(p *tape) {
			p.submitted(ledger.Workflow{Steps: []ledger.Step{{Name: "w", Signal: "go"}, {Name: "b", After: []ledger.Condition{{Step: "w"}}}}})
			p.stepOf(20, "b", told("w", "s"))
			p.at(40).ofFlow(ledger.Event{Op: ledger.Signal, Signal: "go"}, ledger.OK)
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "w", "b")...)
		}, verdict.Untimely},
		{"two tasks of one try", func(p *tape) {
			both(p)
			p.stepOf(40, "b again", ledger.Making{Step: "b", Inputs: told("a", "of a").Inputs})
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "b")...)
		}, verdict.Redone},
		{"two tries", func(p *tape) {
			both(p)
			p.stepOf(40, "b again", ledger.Making{Step: "b", Try: 2, Inputs: told("a", "of a").Inputs})
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "b")...)
		}, ""},
		{"acked, and not taken in", func(p *tape) {
			both(p)
			p.flowStands(ledger.FlowFailed, append(standing(ledger.StepUndone, "a"), standing("failed", "b")...)...)
		}, verdict.Half},
		{"acked, and about to be undone", func(p *tape) {
			both(p)
			p.stepOf(40, "b undo", undoOf("b"))
			p.flowStands("undoing", append(standing(ledger.StepUndone, "b"), standing(ledger.StepUndoing, "a")...)...)
		}, verdict.Stranded},
		{"acked, and what it adds is not there", func(p *tape) {
			p.submitted(ledger.Workflow{Steps: []ledger.Step{{Name: "a"}}})
			p.stepBegun(10, "a", ledger.Making{Step: "a"})
			p.stepAcked(15, "a", ledger.OK, func(e *ledger.Event) { e.Grow = []ledger.Step{{Name: "more"}} })
			p.put(ledger.Event{Kind: ledger.Found, Task: "a", State: "done", Output: "of a", History: []ledger.Attempt{{Number: 1, Started: epoch + 10, Outcome: "acked"}}})
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a")...)
		}, verdict.Half},
		{"told what nobody returned", func(p *tape) {
			p.submitted(line)
			p.stepOf(10, "a", ledger.Making{})
			p.stepOf(20, "b", told("a", "of another"))
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "b")...)
		}, verdict.Misled},
		{"told nothing", func(p *tape) {
			p.submitted(line)
			p.stepOf(10, "a", ledger.Making{})
			p.stepOf(20, "b", ledger.Making{})
			p.flowStands(ledger.FlowDone, standing(ledger.StepDone, "a", "b")...)
		}, verdict.Misled},
		{"undone, the last first", func(p *tape) {
			both(p)
			p.stepOf(40, "b undo", undoOf("b"))
			p.stepOf(60, "a undo", undoOf("a"))
			p.flowStands(ledger.FlowFailed, standing(ledger.StepUndone, "a", "b")...)
		}, ""},
		{"undone, the first first", func(p *tape) {
			both(p)
			p.stepOf(40, "a undo", undoOf("a"))
			p.stepOf(60, "b undo", undoOf("b"))
			p.flowStands(ledger.FlowFailed, standing(ledger.StepUndone, "a", "b")...)
		}, verdict.Unwound},
		{"undone, the last first, whose ack was repeated", func(p *tape) {
			p.submitted(line)
			p.stepBegun(10, "a", ledger.Making{Step: "a"})
			p.stepAcked(15, "a", ledger.Unknown)
			p.stepOf(20, "b", told("a", "of a"))
			p.stepOf(40, "b undo", undoOf("b"))
			p.stepOf(60, "a undo", undoOf("a"))
			p.stepAcked(80, "a", ledger.Already)
			p.put(ledger.Event{Kind: ledger.Found, Task: "a", State: "done", Output: "of a", History: []ledger.Attempt{{Number: 1, Started: epoch + 10, Outcome: "acked"}}})
			p.flowStands(ledger.FlowFailed, standing(ledger.StepUndone, "a", "b")...)
		}, ""},
		{"one is not undone", func(p *tape) {
			both(p)
			p.stepOf(40, "b undo", undoOf("b"))
			p.flowStands(ledger.FlowFailed, append(standing(ledger.StepUndone, "b"), standing(ledger.StepDone, "a")...)...)
		}, verdict.Unwound},
		{"a step that begins after a cancel was answered", func(p *tape) {
			p.submitted(line)
			p.stepOf(10, "a", ledger.Making{})
			p.at(20).ofFlow(ledger.Event{Op: ledger.CancelWorkflow}, ledger.OK)
			p.stepOf(100, "b", told("a", "of a"))
			p.flowStands(ledger.FlowCancelled, standing(ledger.StepUndone, "a", "b")...)
		}, verdict.Zombie},
		{"a retry that was held ahead of the cancel", func(p *tape) { retried(p, 20+heldAhead) }, ""},
		{"a retry that was not", func(p *tape) { retried(p, 25+heldAhead) }, verdict.Zombie},
	})
}

func TestCheckerFindsWrongEnqueuesOfAcks(t *testing.T) {
	first := func(p *tape, r ledger.Result) {
		p.enqueue(0, ledger.OK)
		p.at(10).deliver(1, "x")
		p.at(12).call(ledger.Event{Op: ledger.Ack, Token: "x", Next: []string{"n"}}, r, "")
	}
	second := func(p *tape, id string) {
		p.at(20).put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "n", Cause: "t"})
		p.at(22).call(ledger.Event{Op: ledger.Ack, Task: id, Token: id}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
	}
	playScenes(t, []scene{
		{"acked, and there", func(p *tape) {
			first(p, ledger.OK)
			second(p, "u")
		}, ""},
		{"not answered, and there", func(p *tape) {
			first(p, ledger.Unknown)
			second(p, "u")
		}, ""},
		{"acked, and nowhere", func(p *tape) { first(p, ledger.OK) }, verdict.Half},
		{"acked, and there twice", func(p *tape) {
			first(p, ledger.OK)
			second(p, "u")
			second(p, "v")
		}, verdict.Redone},
	})
}

package graph

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Definition is what the author of a workflow decides. Its zero values are the defaults.
type Definition struct {
	Name      string // what kind it is, for lists and metrics
	Input     []byte // for the steps that ask for it
	Steps     []Step
	Failure   Failure
	Undo      bool          // done steps are undone when the workflow fails or is cancelled
	Timeout   time.Duration // from the start; 0: none
	Retention time.Duration // how long it is kept after its end; 0: as its topic says
	Labels    []store.Attribute
	ResultOf  string // the step whose result is that of the workflow; empty: the one that ended last
}

// Step is one named part of a workflow. It has one of Task, Wait and Child.
type Step struct {
	Name       string
	After      []After
	Need       int  // how many of After must be met; 0: all
	CancelRest bool // the others of After are cancelled when the step is made

	Task  *Template
	Wait  *Wait
	Child *Child

	Copies        *int // nil: one, which has no number
	AtATime       int  // copies that are open at a time; 0: all
	IgnoreFailure bool // what comes after goes on
	Undo          *Template
	Input         bool // its tasks get the input of the workflow
}

// After is a condition of a step.
type After struct {
	Step  string
	On    On
	Grown bool // what grew from the step is to have ended as well
}

// On says which end of a step meets a condition.
type On uint8

const (
	OnDone   On = iota // done, or failed where that is ignored
	OnFailed           // failed
	OnEnded            // any end; skipped and cancelled are such, too
)

// Failure says what becomes of the rest of a workflow when a step failed.
type Failure uint8

const (
	FinishRunning Failure = iota // what runs is finished
	CancelRunning                // what runs is cancelled
	CarryOn                      // steps that do not depend on the failed one are made
)

// Template is a task without an id and a due time.
type Template struct {
	Topic string // empty: the workflow's

	// Task has payload, attributes, visibility, handler timeout, retries, backoff and
	// traits. The rest of it is not looked at.
	Task        store.Task
	Delay       time.Duration // from when the step is made
	ExpireAfter time.Duration // from the due time; 0: never
}

// Wait is a step without a task: it has one of Delay, Until and Signal.
type Wait struct {
	Delay     time.Duration // from when the step is made
	Until     store.Millis
	Signal    string
	Timeout   time.Duration // of a signal; 0: none
	Otherwise []byte        // the result when the timeout is over; nil: the step fails then
}

// Child is a workflow that is a step of another one.
type Child struct {
	Topic string // empty: the parent's
	Definition
}

// copies is how often a step is made.
func (s *Step) copies() int {
	if s.Copies == nil {
		return 1
	}
	return *s.Copies
}

// Units is how many units a step has in a workflow: one for each copy, and one where there is none.
func (s *Step) Units() int { return max(s.copies(), 1) }

// Kind is what the step is made of.
func (s *Step) Kind() Kind {
	switch {
	case s.Wait != nil:
		return KindWait
	case s.Child != nil:
		return KindChild
	}
	return KindTask
}

// Kind is what a step is made of.
type Kind uint8

const (
	KindTask Kind = iota + 1
	KindWait
	KindChild
)

// Size is about how many bytes a definition has.
func (d *Definition) Size() int {
	n := len(d.Input)
	for i := range d.Steps {
		s := &d.Steps[i]
		n += 128 + 32*len(s.After)
		for _, t := range [...]*Template{s.Task, s.Undo} {
			if t != nil {
				n += t.Task.BodySize()
			}
		}
		if s.Child != nil {
			n += s.Child.Size()
		}
	}
	return n
}

// First is how many tasks a workflow of it begins with.
func (d *Definition) First() (n int) {
	for i := range d.Steps {
		s := &d.Steps[i]
		switch {
		case len(s.After) > 0, s.Wait != nil:
		case s.Child != nil:
			n += s.Child.First()
		case s.AtATime > 0:
			n += min(s.AtATime, s.copies())
		default:
			n += s.copies()
		}
	}
	return n
}

// Weight is about how many bytes a workflow of it begins with.
func (d *Definition) Weight() int { return d.Size() + bytesOfUnit*d.Units() }

// bytesOfUnit is about how many bytes a unit has that waits.
const bytesOfUnit = 4

// Units is how many units a workflow of it begins with.
func (d *Definition) Units() (n int) {
	for i := range d.Steps {
		n += d.Steps[i].Units()
	}
	return n
}

// depth is how deep workflows of it are in each other.
func (d *Definition) depth() int {
	deepest := 0
	for i := range d.Steps {
		if c := d.Steps[i].Child; c != nil {
			deepest = max(deepest, c.depth())
		}
	}
	return 1 + deepest
}

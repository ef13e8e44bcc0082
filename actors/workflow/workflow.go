package workflow

import (
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// Workflow is the whole of what is stored of a workflow.
type Workflow struct {
	ID     string
	Life   uint64            // random, of this creation: ids and the keys of cells follow from it
	Def    *graph.Definition // it never changes
	Parent *Parent           // nil: it is nobody's child
	Run    *Run              // nil: no schedule started it
	Depth  int               // 1; more for a child

	Record
	Units []Unit  // of the steps of the definition, then of those that grew
	Grown []Grown // in the order in which they were taken
	Kept  []Kept  // signals that no wait has taken, in order
	Known []string
	Late  []LateSignal
	Trash []Dropped // parts that nothing refers to any more

	plan *plan // of the definition and what grew; nil: it is to be built
}

// Record is what a workflow remembers beside its units.
type Record struct {
	Phase     State // never Paused
	IsPaused  bool
	PausedBy  string
	Note      string
	Cancelled bool // it ends as such
	Cause     Cause
	Failed    string // CauseStep: the first step that failed

	Created store.Millis
	Started store.Millis // of this start, or the last retry behind an end: the timeout counts from then
	Ended   store.Millis
	Starts  int

	Serial int64  // the last number that was given to a making or a part
	Ends   int64  // of units so far: the order in which they are undone
	AskTo  int64  // units that were made up to this number are asked to end
	Taken  int64  // number of the last parcel that was taken
	Bytes  int64  // of all parts
	Input  Value  // of this start
	Again  *Value // the input of the next one; nil: there is none
	Doomed bool   // it is being deleted

	Ordered int64 // number of the last order of its parent that a child followed
}

// Parent is who is told of the end of a child.
type Parent struct {
	ID    string
	Topic string // empty: it is in the shard of the child
	Task  string // by what it knows the child
}

// Unit is a copy of a step, or a step without copies.
type Unit struct {
	State   UnitState
	Try     int   // from 1; 0: it was never made
	Serial  int64 // of the last making: of its undo, once there is one
	Asked   bool  // to end
	Marked  bool  // a child whose id another workflow had: its own has a mark
	Why     Why
	WhyStep string
	Made    store.Millis
	Begun   store.Millis
	Ended   store.Millis
	Until   store.Millis // a wait: when it is over; 0: never by itself
	Order   int64        // of its end
	Error   string
	Value   Value

	Suspended bool  // made, and without a task until what it grew has ended
	Journal   Value // that its next task gets, of the one that suspended it last
}

// hasTask reports whether a task, a wait or a child of a unit is open.
func (u *Unit) hasTask() bool { return u.State == UnitMade && !u.Suspended || u.State == UnitUndoing }

// Value is a result or an input. A long one is a part of its own.
type Value struct {
	Bytes []byte
	Part  int64 // its number; 0: it is in Bytes
	Size  int
}

// Grown is what an ack added.
type Grown struct {
	Parent string // name of the unit
	Part   int64
	Size   int
	Steps  []graph.Step // as they came: without the name of their parent
}

// Kept is a signal that came before its wait.
type Kept struct {
	Name  string
	Value Value
}

// New returns a workflow of which nothing is made yet. Its definition was checked.
func New(id string, life uint64, d *graph.Definition, now store.Millis) *Workflow {
	w := &Workflow{ID: id, Life: life, Def: d, Depth: 1, Record: Record{Phase: Running, Created: now, Started: now, Starts: 1}}
	w.Units = make([]Unit, w.of().units())
	return w
}

// State is the workflow's as it is shown.
func (w *Workflow) State() State {
	if w.IsPaused && w.Phase.Open() {
		return Paused
	}
	return w.Phase
}

func (w *Workflow) clone() *Workflow {
	c := *w
	c.Units, c.Grown, c.Kept = slices.Clone(w.Units), slices.Clone(w.Grown), slices.Clone(w.Kept)
	c.Known, c.Late, c.Trash = slices.Clone(w.Known), slices.Clone(w.Late), slices.Clone(w.Trash)
	return &c
}

// number gives out the next number.
func (w *Workflow) number() int64 {
	w.Serial++
	return w.Serial
}

// input is what the steps of this start get that ask for it.
func (w *Workflow) input() Value {
	if w.Starts > 1 {
		return w.Input
	}
	return Value{Bytes: w.Def.Input, Size: len(w.Def.Input)}
}

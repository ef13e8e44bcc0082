package workflow

import (
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// Event is something that happens to a workflow; nil is that its time to wake came.
type Event interface{ event() }

// Ended says that the task of a unit, or of its undo, ended for good.
type Ended struct {
	Task    string // its id
	Outcome UnitState
	Why     Why
	At      store.Millis
	Begun   store.Millis // when the last attempt began; 0: none did
	Error   string
	Result  []byte
	Growth  *graph.Growth // of an ack; nil: none
	Trace   *store.Trace  // in which the worker recorded the attempt that ended it; nil: in none
}

// Ordered is what a child is asked by its parent.
type Ordered struct {
	What   Asked
	Number int64 // see Order; 0: it has none, and is followed
}

// Signal is a named message from outside. One with an ID that is known changes nothing.
type Signal struct {
	Name    string
	Payload []byte
	ID      string // of its sender; empty: it is not known again
	At      store.Millis
}

// Cancel ends the workflow: what is pending is deleted, and what runs is asked to end.
type Cancel struct{ Note string }

// Pause stops the workflow from making units.
type Pause struct{ By, Note string }

// Resume lets it go on.
type Resume struct{ Note string }

// Retry makes units anew that failed or were cancelled, and has those wait again that were
// skipped because of them.
type Retry struct {
	Steps []string // empty: all that failed
	From  string   // a step that is made anew with everything behind it, done or not
}

// Skip makes a step done that failed or waits, with a result.
type Skip struct {
	Step   string
	Copy   int // 0: all copies that are not done
	Result []byte
}

// Delete removes a workflow that has ended. It may take several steps.
type Delete struct{}

func (Delete) event()  {}
func (Ended) event()   {}
func (Ordered) event() {}
func (Signal) event()  {}
func (Cancel) event()  {}
func (Pause) event()   {}
func (Resume) event()  {}
func (Retry) event()   {}
func (Skip) event()    {}

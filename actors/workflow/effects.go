package workflow

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	makesAStep = 500             // units that one step makes
	asksAStep  = 500             // that one step asks to end
	bytesAStep = 4 << 20         // of the tasks that one step makes, about
	dropsAStep = 1000            // parts that one step deletes
	inline     = 1 << 10         // bytes of a value that is no part of its own
	soon       = 2 * time.Minute // owners look at cells that wake later by themselves
)

// Env is what a step knows besides the workflow.
type Env struct {
	Now       store.Millis    // the store's clock
	Topic     string          // of the workflow
	Retention time.Duration   // of the topic; 0: DefaultRetention
	Avoid     map[string]bool // ids under which there are tasks, and children, that the workflow did not make
}

// Effects are what is to be changed in the commit that stores the workflow.
type Effects struct {
	Make   []Make
	Begin  []Begin
	Ask    []TaskRef // that are to end: pending ones are deleted, running ones asked
	Orders []Order   // to children

	Withdraw []TaskRef // that are deleted when they are pending
	Parts    []Part    // that are new
	Drop     []Dropped
	Wake     store.Millis // 0: only an event wakes it
	Gone     bool         // all cells are deleted
	Ended    bool         // in this step: its parent is to be told
	Trace    *store.Trace // Ended: of the attempt by whose end it ended; nil: it is not known
	More     bool         // there is more to do than fits into one step
}

// TaskRef names a task.
type TaskRef struct {
	Topic string // empty: that of the workflow
	ID    string
}

// Make is a task that is to be made for a unit, or for its undo.
type Make struct {
	Unit int
	TaskRef
	Undo  bool
	Trace *store.Trace // of the attempt whose end started it; nil: it is not known
}

// ChildRef names a child.
type ChildRef struct {
	Topic string // empty: that of the workflow
	ID    string
	Task  string // by what its parent knows it
}

// Begin is a child that is to begin.
type Begin struct {
	Unit int
	ChildRef
}

// Order is what a child is told.
type Order struct {
	ChildRef
	What   Asked
	Number int64 // rises with the orders of a workflow
}

// Asked is what a workflow asks of its children: what was asked of itself.
type Asked uint8

const (
	AskedToEnd Asked = iota + 1
	AskedToPause
	AskedToResume
)

// Dropped is a part that is deleted.
type Dropped struct {
	Number int64
	Growth bool
}

// Part is a value, or growth, that has a cell of its own.
type Part struct {
	Number int64
	Growth bool
	Body   []byte
}

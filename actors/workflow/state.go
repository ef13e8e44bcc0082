package workflow

import (
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// State is where a workflow is in its life.
type State uint8

const (
	Running State = iota + 1
	Paused
	Failing    // a step failed, and others are open
	Cancelling // others are open
	Undoing
	Done
	Failed
	Cancelled
)

var stateNames = [...]string{"unknown", "running", "paused", "failing", "cancelling", "undoing", "done", "failed", "cancelled"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[0]
}

// Open reports whether a workflow has not ended.
func (s State) Open() bool { return s < Done }

// UnitState is where a unit is in its life: a copy of a step, or a step without copies.
type UnitState uint8

const (
	UnitWaiting UnitState = iota // its conditions are not met yet
	UnitMade                     // its task exists, or it is a wait or a child that is open
	UnitDone
	UnitFailed
	UnitCancelled
	UnitSkipped
	UnitUndoing
	UnitUndone
	UnitUndoFailed

	unitStates = int(UnitUndoFailed) + 1
)

var unitStateNames = [...]string{"waiting", "made", "done", "failed", "cancelled", "skipped", "undoing", "undone", "undo_failed"}

func (s UnitState) String() string {
	if int(s) < len(unitStateNames) {
		return unitStateNames[s]
	}
	return "unknown"
}

// Open reports whether a unit may yet get into another state by itself.
func (s UnitState) Open() bool { return s == UnitWaiting || s == UnitMade || s == UnitUndoing }

// Why says why a unit was skipped, failed or was cancelled.
type Why uint8

const (
	WhyNone           Why = iota
	WhyUnmet              // what it waits for ended in another way; WhyStep is the first such
	WhyWorkflowFailed     // the workflow failed before it was made
	WhyCancelled          // the workflow was cancelled
	WhyLeftOut            // an ack skipped it
	WhyRest               // another step had no need of it any more
	WhyTimedOut           // a wait: no signal came
	WhyDead               // its task is a dead letter
	WhyExpired            // its task expired
	WhyDeleted            // its task was deleted
	WhyChild              // its child failed
	WhyRefused            // its topic does not take its task
	WhySkipped            // done: somebody gave it a result
	WhySuspended          // made: it waits for what it grew; WhyStep is the first of that. Not stored

	lastWhy = WhySkipped
)

var whyNames = [...]string{
	"", "unmet", "workflow_failed", "cancelled", "left_out", "rest", "timed_out", "dead", "expired", "deleted", "child", "refused", "skipped", "suspended",
}

func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return "unknown"
}

// Cause says why a workflow failed.
type Cause uint8

const (
	CauseNone     Cause = iota
	CauseStep           // a step failed
	CauseTimedOut       // it took longer than its timeout
	CauseTooManySteps
	CauseTooLarge
)

var causeNames = [...]string{"", "STEP_FAILED", "TIMED_OUT", refusal.TooManySteps, refusal.WorkflowTooLarge}

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "UNKNOWN"
}

// Status is a workflow as it stands.
type Status struct {
	ID      string
	Topic   string
	Version int64 // rises with every transition
	Name    string
	Labels  []store.Attribute

	State      State
	Cause      Cause
	FailedStep string // CauseStep: the first that failed
	Error      string // of that step
	PausedBy   string
	Note       string // of the last pause, resume or cancel

	Created store.Millis
	Started store.Millis // of this start
	Ended   store.Millis // 0: it is open
	Expires store.Millis // when it is deleted; 0: it is open
	Timeout store.Millis // when it times out; 0: never
	Starts  int          // from 1; more when it began again
	Run     *Run         // of a schedule; nil: none

	Units       [unitStates]int // by state
	UndoFailed  []string        // steps that could not be undone
	LateSignals []LateSignal
	ResultSize  int
	Result      []byte // of a finished workflow, where the call asks for it
}

// LateSignal is one that came when the workflow had ended.
type LateSignal struct {
	Name string
	ID   string
	At   store.Millis
}

// StepStatus is a unit as it stands.
type StepStatus struct {
	Name  string
	Copy  int // from 1; 0: the step has no copies
	Kind  graph.Kind
	After []graph.After
	Topic string // of its task or child
	Grew  string // the step that it grew from

	State   UnitState
	Try     int // from 1; 0: it was never made
	Why     Why
	WhyStep string
	Error   string

	Made, Begun, Ended store.Millis

	Task       string       // id of its task, child or undo, when there is one
	Signal     string       // that it waits for
	Until      store.Millis // until when it waits; 0: for ever
	ResultSize int
	Result     []byte // up to 1 KiB; longer ones are read by Results
}

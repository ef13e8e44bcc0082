package refusal

import "fmt"

// The reasons of an Error. They are a part of the protocol.
const (
	// Of a request that can never succeed.
	BadGraph         = "BAD_GRAPH"
	BadWait          = "BAD_WAIT"
	BadName          = "BAD_NAME"
	BadWorkflow      = "BAD_WORKFLOW" // labels, neither of the kinds of a step
	OutOfRangeField  = "OUT_OF_RANGE_FIELD"
	TooManySteps     = "TOO_MANY_STEPS"
	WorkflowTooLarge = "WORKFLOW_TOO_LARGE"
	SignalTooLarge   = "SIGNAL_TOO_LARGE"
	ResultTooLarge   = "RESULT_TOO_LARGE"

	// Of a workflow that is not as the request has it.
	NoWorkflow       = "NO_WORKFLOW"       // not found
	NoStep           = "NO_STEP"           // not found
	IDConflict       = "ID_CONFLICT"       // exists
	ChildWorkflow    = "CHILD_WORKFLOW"    // precondition, as are the following
	WorkflowFinished = "WORKFLOW_FINISHED" //
	WorkflowOpen     = "WORKFLOW_OPEN"     //
	NothingToRetry   = "NOTHING_TO_RETRY"  //
	StepRunning      = "STEP_RUNNING"      //
	StepDone         = "STEP_DONE"         // of a skip: it has a result
	TooManySignals   = "TOO_MANY_SIGNALS"  // exhausted
	WorkflowBusy     = "WORKFLOW_BUSY"     // unavailable: others change it all the time
)

// Error is why something is refused.
type Error struct {
	Reason  string
	Field   string // of the request, in wire spelling; may be empty
	Message string
	State   string // of the workflow, where it is in the way; else empty
}

func (e *Error) Error() string { return e.Message }

// New is an Error with its message.
func New(reason, field, format string, args ...any) *Error {
	return &Error{Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

package client

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// WorkflowState is where a workflow is in its life.
type WorkflowState int32

// The states of a workflow.
const (
	WorkflowRunning    WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_RUNNING)
	WorkflowPaused     WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_PAUSED)
	WorkflowFailing    WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_FAILING)    // a step failed, and others are not over
	WorkflowCancelling WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLING) // steps are not over
	WorkflowUndoing    WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_UNDOING)
	WorkflowDone       WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_DONE)
	WorkflowFailed     WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_FAILED)
	WorkflowCancelled  WorkflowState = WorkflowState(ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED)
)

// String returns the state in lower case, such as "running".
func (s WorkflowState) String() string {
	return wire.Word(ddqv1.WorkflowState(s).String(), "WORKFLOW_STATE_")
}

// Ended reports whether the workflow is over.
func (s WorkflowState) Ended() bool { return s >= WorkflowDone }

// StepState is where a step is in its life.
type StepState int32

// The states of a step.
const (
	StepWaiting    StepState = StepState(ddqv1.StepState_STEP_STATE_WAITING) // for other steps
	StepMade       StepState = StepState(ddqv1.StepState_STEP_STATE_MADE)    // its task exists; or it is a wait or a child that is not over
	StepDone       StepState = StepState(ddqv1.StepState_STEP_STATE_DONE)
	StepFailed     StepState = StepState(ddqv1.StepState_STEP_STATE_FAILED)
	StepCancelled  StepState = StepState(ddqv1.StepState_STEP_STATE_CANCELLED)
	StepSkipped    StepState = StepState(ddqv1.StepState_STEP_STATE_SKIPPED)
	StepUndoing    StepState = StepState(ddqv1.StepState_STEP_STATE_UNDOING)
	StepUndone     StepState = StepState(ddqv1.StepState_STEP_STATE_UNDONE)
	StepUndoFailed StepState = StepState(ddqv1.StepState_STEP_STATE_UNDO_FAILED)
)

// String returns the state in lower case, such as "waiting".
func (s StepState) String() string { return wire.Word(ddqv1.StepState(s).String(), "STEP_STATE_") }

// WorkflowStatus is how a workflow stands. Times that do not apply are zero.
type WorkflowStatus struct {
	Topic      string            `json:"topic"`
	ID         string            `json:"id"`
	Name       string            `json:"name,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	State      WorkflowState     `json:"state"`
	Cause      string            `json:"cause,omitempty"`       // why it fails: "step_failed", "timed_out"
	FailedStep string            `json:"failed_step,omitempty"` // the first that failed
	Error      string            `json:"error,omitempty"`       // of that step
	PausedBy   string            `json:"paused_by,omitempty"`
	Note       string            `json:"note,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	EndedAt    time.Time         `json:"ended_at,omitempty"`
	TimesOutAt time.Time         `json:"timeout_time,omitempty"`
	Starts     int               `json:"starts"` // more than 1 when it began again
	UndoFailed []string          `json:"undo_failed,omitempty"`
	Result     []byte            `json:"result,omitempty"` // GetWorkflow and WaitWorkflow only
	Version    int64             `json:"version"`          // rises with every change
	Schedule   string            `json:"schedule,omitempty"`
	Occurrence time.Time         `json:"occurrence_time,omitempty"` // that Schedule started it for
	StepCounts
}

// StepCounts are how many steps, and copies of steps, are in each state.
type StepCounts struct {
	Waiting   int `json:"waiting,omitempty"`
	Made      int `json:"made,omitempty"`
	Done      int `json:"done,omitempty"`
	Failed    int `json:"failed,omitempty"`
	Cancelled int `json:"cancelled,omitempty"`
	Skipped   int `json:"skipped,omitempty"`
	Undone    int `json:"undone,omitempty"`
}

// MarshalJSON writes the form that `ddq workflow get -o json` prints.
func (s WorkflowStatus) MarshalJSON() ([]byte, error) { return fields.Write(s) }

// UnmarshalJSON reads it.
func (s *WorkflowStatus) UnmarshalJSON(b []byte) error { return fields.Read(b, s) }

// StepStatus is how a step stands, or a copy of a step.
type StepStatus struct {
	Name       string    `json:"name"`
	Copy       int       `json:"copy,omitempty"` // from 1; 0: the step has no copies
	Kind       string    `json:"kind"`           // "task", "wait" or "child"
	After      []string  `json:"after,omitempty"`
	GrownFrom  string    `json:"grown_from,omitempty"`
	State      StepState `json:"state"`
	Try        int       `json:"try,omitempty"`        // which making of it; 0: it was not made
	Reason     string    `json:"reason,omitempty"`     // why it failed, was skipped or cancelled
	BecauseOf  string    `json:"because_of,omitempty"` // "unmet": the step that ended in another way
	Error      string    `json:"error,omitempty"`
	Topic      string    `json:"topic,omitempty"`
	ID         string    `json:"id,omitempty"`     // of its task, its undo or its child
	Signal     string    `json:"signal,omitempty"` // that it waits for
	Until      time.Time `json:"until,omitempty"`
	MadeAt     time.Time `json:"made_at,omitempty"`
	BegunAt    time.Time `json:"begun_at,omitempty"`
	EndedAt    time.Time `json:"ended_at,omitempty"`
	ResultSize int64     `json:"result_size,omitempty"`
	Result     []byte    `json:"result,omitempty"` // up to 1 KiB, of GetWorkflow; see StepResults
}

// MarshalJSON writes the form that `ddq workflow steps -o json` prints.
func (s StepStatus) MarshalJSON() ([]byte, error) { return fields.Write(s) }

// UnmarshalJSON reads it.
func (s *StepStatus) UnmarshalJSON(b []byte) error { return fields.Read(b, s) }

// StepResult is how a step, or a copy of one, ended, and what it returned.
type StepResult struct {
	Step   string    `json:"step"`
	Copy   int       `json:"copy,omitempty"`
	State  StepState `json:"state"`
	Size   int64     `json:"size"`
	Result []byte    `json:"result,omitempty"`
}

// MarshalJSON writes the form that `ddq workflow results -o json` prints.
func (r StepResult) MarshalJSON() ([]byte, error) { return fields.Write(r) }

func workflowFrom(w *ddqv1.WorkflowStatus) WorkflowStatus {
	n := w.GetSteps()
	s := WorkflowStatus{
		Topic: w.GetTopic(), ID: w.GetId(), Name: w.GetName(), Labels: wire.AttributesFrom(w.GetLabels()), State: WorkflowState(w.GetState()),
		FailedStep: w.GetFailedStep(), Error: w.GetError(), PausedBy: w.GetPausedBy(), Note: w.GetNote(), CreatedAt: wire.Time(w.GetCreatedAt()),
		EndedAt: wire.Time(w.GetEndedAt()), TimesOutAt: wire.Time(w.GetTimeoutTime()), Starts: int(w.GetStarts()), UndoFailed: w.GetUndoFailed(),
		Result: w.GetResult(), Version: w.GetVersion(), Schedule: w.GetSchedule(), Occurrence: wire.Time(w.GetOccurrenceTime()),
		StepCounts: StepCounts{
			Waiting: int(n.GetWaiting()), Made: int(n.GetMade()), Done: int(n.GetDone()), Failed: int(n.GetFailed()),
			Cancelled: int(n.GetCancelled()), Skipped: int(n.GetSkipped()), Undone: int(n.GetUndone()),
		},
	}
	if w.GetCause() != 0 {
		s.Cause = wire.Word(w.GetCause().String(), "WORKFLOW_CAUSE_")
	}
	return s
}

func stepsFrom(all []*ddqv1.StepStatus) []StepStatus {
	out := make([]StepStatus, len(all))
	for i, w := range all {
		out[i] = StepStatus{
			Name: w.GetName(), Copy: int(w.GetCopy()), Kind: wire.Word(w.GetKind().String(), "STEP_KIND_"), GrownFrom: w.GetGrownFrom(),
			State: StepState(w.GetState()), Try: int(w.GetTry()), BecauseOf: w.GetBecauseOf(), Error: w.GetError(), Topic: w.GetTopic(), ID: w.GetId(),
			Signal: w.GetSignal(), Until: wire.Time(w.GetUntil()), MadeAt: wire.Time(w.GetMadeAt()), BegunAt: wire.Time(w.GetBegunAt()), EndedAt: wire.Time(w.GetEndedAt()),
			ResultSize: w.GetResultSize(), Result: w.GetResult(),
		}
		if w.GetReason() != 0 {
			out[i].Reason = wire.Word(w.GetReason().String(), "STEP_REASON_")
		}
		for _, a := range w.GetAfter() {
			out[i].After = append(out[i].After, a.GetStep())
		}
	}
	return out
}

package workflows

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

var (
	stateToWire = [...]ddqv1.WorkflowState{
		workflow.Running: ddqv1.WorkflowState_WORKFLOW_STATE_RUNNING, workflow.Paused: ddqv1.WorkflowState_WORKFLOW_STATE_PAUSED,
		workflow.Failing: ddqv1.WorkflowState_WORKFLOW_STATE_FAILING, workflow.Cancelling: ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLING,
		workflow.Undoing: ddqv1.WorkflowState_WORKFLOW_STATE_UNDOING, workflow.Done: ddqv1.WorkflowState_WORKFLOW_STATE_DONE,
		workflow.Failed: ddqv1.WorkflowState_WORKFLOW_STATE_FAILED, workflow.Cancelled: ddqv1.WorkflowState_WORKFLOW_STATE_CANCELLED,
	}
	unitToWire = [...]ddqv1.StepState{
		workflow.UnitWaiting: ddqv1.StepState_STEP_STATE_WAITING, workflow.UnitMade: ddqv1.StepState_STEP_STATE_MADE,
		workflow.UnitDone: ddqv1.StepState_STEP_STATE_DONE, workflow.UnitFailed: ddqv1.StepState_STEP_STATE_FAILED,
		workflow.UnitCancelled: ddqv1.StepState_STEP_STATE_CANCELLED, workflow.UnitSkipped: ddqv1.StepState_STEP_STATE_SKIPPED,
		workflow.UnitUndoing: ddqv1.StepState_STEP_STATE_UNDOING, workflow.UnitUndone: ddqv1.StepState_STEP_STATE_UNDONE,
		workflow.UnitUndoFailed: ddqv1.StepState_STEP_STATE_UNDO_FAILED,
	}
	causeToWire = [...]ddqv1.WorkflowCause{
		workflow.CauseStep: ddqv1.WorkflowCause_WORKFLOW_CAUSE_STEP_FAILED, workflow.CauseTimedOut: ddqv1.WorkflowCause_WORKFLOW_CAUSE_TIMED_OUT,
		workflow.CauseTooManySteps: ddqv1.WorkflowCause_WORKFLOW_CAUSE_TOO_MANY_STEPS,
		workflow.CauseTooLarge:     ddqv1.WorkflowCause_WORKFLOW_CAUSE_WORKFLOW_TOO_LARGE,
	}
	whyToWire = [...]ddqv1.StepReason{
		workflow.WhyUnmet: ddqv1.StepReason_STEP_REASON_UNMET, workflow.WhyWorkflowFailed: ddqv1.StepReason_STEP_REASON_WORKFLOW_FAILED,
		workflow.WhyCancelled: ddqv1.StepReason_STEP_REASON_CANCELLED, workflow.WhyLeftOut: ddqv1.StepReason_STEP_REASON_LEFT_OUT,
		workflow.WhyRest: ddqv1.StepReason_STEP_REASON_NOT_NEEDED, workflow.WhyTimedOut: ddqv1.StepReason_STEP_REASON_TIMED_OUT,
		workflow.WhyDead: ddqv1.StepReason_STEP_REASON_DEAD, workflow.WhyExpired: ddqv1.StepReason_STEP_REASON_EXPIRED,
		workflow.WhyDeleted: ddqv1.StepReason_STEP_REASON_DELETED, workflow.WhyChild: ddqv1.StepReason_STEP_REASON_CHILD,
		workflow.WhyRefused: ddqv1.StepReason_STEP_REASON_REFUSED, workflow.WhySkipped: ddqv1.StepReason_STEP_REASON_SKIPPED,
		workflow.WhySuspended: ddqv1.StepReason_STEP_REASON_SUSPENDED,
	}
	kindToWire = [...]ddqv1.StepKind{
		graph.KindTask: ddqv1.StepKind_STEP_KIND_TASK, graph.KindWait: ddqv1.StepKind_STEP_KIND_WAIT, graph.KindChild: ddqv1.StepKind_STEP_KIND_CHILD,
	}
)

func statusWire(s *workflow.Status) *ddqv1.WorkflowStatus {
	w := &ddqv1.WorkflowStatus{
		Topic: s.Topic, Id: s.ID, Name: wire.Text(s.Name), Labels: wire.PutAttributes(s.Labels), State: wire.Enum(stateToWire[:], s.State),
		Cause: wire.Enum(causeToWire[:], s.Cause), FailedStep: s.FailedStep, Error: wire.Text(s.Error),
		PausedBy: wire.Text(s.PausedBy), Note: wire.Text(s.Note),
		CreatedAt: wire.StampOrNil(s.Created), StartedAt: wire.StampOrNil(s.Started), EndedAt: wire.StampOrNil(s.Ended),
		DeleteTime: wire.StampOrNil(s.Expires), TimeoutTime: wire.StampOrNil(s.Timeout), Starts: int32(s.Starts), Steps: countsWire(s),
		UndoFailed: s.UndoFailed, ResultSize: int64(s.ResultSize), Result: s.Result, Version: s.Version,
	}
	if r := s.Run; r != nil {
		w.Schedule, w.OccurrenceTime = r.Schedule, wire.StampOrNil(r.Occurrence)
	}
	for _, l := range s.LateSignals {
		w.LateSignals = append(w.LateSignals, &ddqv1.LateSignal{Signal: l.Name, SignalId: wire.Text(l.ID), Time: wire.StampOrNil(l.At)})
	}
	return w
}

func countsWire(s *workflow.Status) *ddqv1.StepCounts {
	n := func(state workflow.UnitState) int32 { return int32(s.Units[state]) }
	return &ddqv1.StepCounts{
		Waiting: n(workflow.UnitWaiting), Made: n(workflow.UnitMade), Done: n(workflow.UnitDone), Failed: n(workflow.UnitFailed),
		Cancelled: n(workflow.UnitCancelled), Skipped: n(workflow.UnitSkipped), Undoing: n(workflow.UnitUndoing),
		Undone: n(workflow.UnitUndone), UndoFailed: n(workflow.UnitUndoFailed),
	}
}

func stepsWire(all []workflow.StepStatus) []*ddqv1.StepStatus {
	out := make([]*ddqv1.StepStatus, len(all))
	for i := range all {
		s := &all[i]
		out[i] = &ddqv1.StepStatus{
			Name: s.Name, Copy: int32(s.Copy), Kind: wire.Enum(kindToWire[:], s.Kind), After: afterWire(s.After), Topic: s.Topic, GrownFrom: s.Grew,
			State: wire.Enum(unitToWire[:], s.State), Try: int32(s.Try), Reason: wire.Enum(whyToWire[:], s.Why), BecauseOf: s.WhyStep,
			Error: wire.Text(s.Error), MadeAt: wire.StampOrNil(s.Made), BegunAt: wire.StampOrNil(s.Begun), EndedAt: wire.StampOrNil(s.Ended),
			Id: s.Task, Signal: s.Signal, Until: wire.StampOrNil(s.Until), ResultSize: int64(s.ResultSize), Result: s.Result,
		}
	}
	return out
}

func resultsWire(all []access.Result) []*ddqv1.StepInput {
	out := make([]*ddqv1.StepInput, len(all))
	for i := range all {
		r := &all[i]
		out[i] = &ddqv1.StepInput{Step: r.Step, Copy: int32(r.Copy), State: wire.Enum(unitToWire[:], r.State), Size: int64(len(r.Value)), Result: r.Value}
	}
	return out
}

// leaveOutResults is for those who may not see payloads.
func leaveOutResults(status *ddqv1.WorkflowStatus, steps []*ddqv1.StepStatus) {
	if status != nil {
		status.Result = nil
	}
	for _, s := range steps {
		s.Result = nil
	}
}

// spanWire leaves out 0.
func spanWire(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

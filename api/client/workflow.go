package client

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Workflow is steps that belong together: what to submit. Only Topic and Steps are required.
type Workflow struct {
	// Topic is where its state is, and the tasks of its steps.
	Topic string

	// ID makes the submit repeatable: the same workflow again is answered with the one that is
	// there. At most 128 characters of visible ASCII without '/'. Defaults to a new UUIDv7.
	ID string

	Name  string // what kind it is, for lists; at most 64 bytes
	Input []byte // for the steps with Step.Input; at most 256 KiB
	Steps []Step // 1 to 10,000 with their copies

	Failure   Failure           // what becomes of the other steps when one fails
	Undo      bool              // done steps are undone when it fails or is cancelled, the last one first
	Timeout   time.Duration     // from its start; then it fails. 0: no limit
	Retention time.Duration     // how long it is kept after its end; 0: 7 days
	Labels    map[string]string // at most 8, by which workflows are listed
	ResultOf  string            // the step whose result is the workflow's; empty: the one that ended last
}

// Step is one unit of a workflow: a task, or a wait, or a child workflow.
type Step struct {
	Name  string      // 1 to 64 letters, digits, '_' and '-'; unique in the workflow
	After []Condition // what it waits for; see After

	Need       int  // how many of After must be met; 0: all, 1: any
	CancelRest bool // the others of After are cancelled when it is made

	// Task is what it does, unless it is a Wait or a Child: a task without ID, Due, Expires,
	// Latest, Slack, OrderingKey and Idempotency. Its Topic is empty, or the workflow's; Delay
	// counts from when the step is made.
	Task  Task
	Wait  Wait
	Child *Workflow // without ID; its Topic is the parent's when empty

	Copies        *int  // equal tasks, each with its number; one without a number when nil
	AtATime       int   // copies that are open at a time; 0: all
	IgnoreFailure bool  // the workflow goes on when it fails
	Undo          *Task // compensates it, see Workflow.Undo
	Input         bool  // its task gets Workflow.Input
}

// Condition is a step that another one waits for.
type Condition struct {
	Step  string
	On    On   // OnDone when zero
	Grown bool // and all that grew from it, see worker.Task.Grow
}

// After is conditions that the steps of these names are done.
func After(steps ...string) []Condition {
	all := make([]Condition, len(steps))
	for i, name := range steps {
		all[i].Step = name
	}
	return all
}

// On is which end of a step is waited for.
type On int32

// The ends of a step.
const (
	OnDone   On = On(ddqv1.On_ON_DONE)
	OnFailed On = On(ddqv1.On_ON_FAILED)
	OnEnded  On = On(ddqv1.On_ON_ENDED) // any end, also without having begun
)

// Failure is what becomes of the other steps of a workflow when one fails.
type Failure int32

// What may become of them.
const (
	FinishRunning Failure = Failure(ddqv1.FailurePolicy_FAILURE_POLICY_FINISH_RUNNING) // those that run are finished; also the zero Failure
	CancelRunning Failure = Failure(ddqv1.FailurePolicy_FAILURE_POLICY_CANCEL_RUNNING) // they are asked to cancel
	CarryOn       Failure = Failure(ddqv1.FailurePolicy_FAILURE_POLICY_CARRY_ON)       // steps that do not depend on it go on
)

// Wait is a step without a task: it has one of Delay, Until and Signal.
type Wait struct {
	Delay  time.Duration // from when the step is made
	Until  time.Time
	Signal string // the name of a signal, see SignalWorkflow

	// Timeout is of a signal; 0: none. When it is over the step fails, or is done with Otherwise
	// when that is not nil.
	Timeout   time.Duration
	Otherwise []byte
}

func (w *Workflow) wire() (*ddqv1.Workflow, *Error) {
	out := &ddqv1.Workflow{
		Topic: w.Topic, Id: w.ID, Name: w.Name, Input: w.Input, Failure: ddqv1.FailurePolicy(w.Failure), Undo: w.Undo,
		TimeoutMs: wire.Millis(w.Timeout), Labels: wire.Attributes(w.Labels), ResultOf: w.ResultOf,
	}
	if w.Retention != 0 {
		out.RetentionMs = new(wire.Millis(w.Retention))
	}
	steps, err := wireSteps(w.Steps)
	out.Steps = steps
	return out, err
}

func wireSteps(steps []Step) ([]*ddqv1.Step, *Error) {
	out := make([]*ddqv1.Step, len(steps))
	for i := range steps {
		w, err := steps[i].wire()
		if err != nil {
			err.Field = "steps." + steps[i].Name + "." + err.Field
			return nil, err
		}
		out[i] = w
	}
	return out, nil
}

// Wire returns the step as it is sent, for package worker.
func (s *Step) Wire() (*ddqv1.Step, error) {
	w, err := s.wire()
	return w, plain(err)
}

func (s *Step) wire() (w *ddqv1.Step, err *Error) {
	w = &ddqv1.Step{
		Name: s.Name, Need: wire.Int32(s.Need), CancelRest: s.CancelRest, AtATime: wire.Int32(s.AtATime), IgnoreFailure: s.IgnoreFailure, Input: s.Input,
	}
	for _, a := range s.After {
		w.After = append(w.After, &ddqv1.After{Step: a.Step, On: ddqv1.On(a.On), Grown: a.Grown})
	}
	if s.Copies != nil {
		w.Copies = new(wire.Int32(*s.Copies))
	}
	if s.Undo != nil {
		if w.Undo, err = s.Undo.template(); err != nil {
			return nil, err
		}
	}
	switch {
	case s.Child != nil:
		child, err := s.Child.wire()
		w.Does = &ddqv1.Step_Child{Child: child}
		return w, err
	case s.waits():
		w.Does = &ddqv1.Step_Wait{Wait: s.Wait.wire()}
		return w, nil
	}
	task, err := s.Task.template()
	w.Does = &ddqv1.Step_Task{Task: task}
	return w, err
}

func (s *Step) waits() bool {
	return s.Wait.Delay != 0 || !s.Wait.Until.IsZero() || s.Wait.Signal != ""
}

func (w *Wait) wire() *ddqv1.Wait {
	out := &ddqv1.Wait{TimeoutMs: wire.Millis(w.Timeout), Otherwise: w.Otherwise}
	switch {
	case w.Signal != "":
		out.What = &ddqv1.Wait_Signal{Signal: w.Signal}
	case !w.Until.IsZero():
		out.What = &ddqv1.Wait_Until{Until: wire.Stamp(w.Until)}
	default:
		out.What = &ddqv1.Wait_DelayMs{DelayMs: wire.Millis(w.Delay)}
	}
	return out
}

// template is what the task of a step is made of.
func (t *Task) template() (*ddqv1.TaskTemplate, *Error) {
	if t.ID != "" || !t.Due.IsZero() || !t.Expires.IsZero() || !t.Latest.IsZero() || t.Slack != 0 || t.OrderingKey != "" || t.Idempotency != nil {
		return nil, invalid("task", "the task of a step has no id, times, slack, ordering key and idempotency key of its own")
	}
	w := &ddqv1.TaskTemplate{
		Topic: t.Topic, Payload: t.Payload, Attributes: wire.Attributes(t.Attributes), Backoff: t.Backoff.wire(),
		VisibilityTimeoutMs: wire.Millis(t.VisibilityTimeout), HandlerTimeoutMs: wire.Millis(t.HandlerTimeout),
		Priority: wire.Int32(t.Priority), FairnessKey: t.FairnessKey, FairnessWeight: wire.Int32(t.FairnessWeight), RateKey: t.RateKey, ConcurrencyKey: t.ConcurrencyKey,
	}
	if t.MaxRetries != nil {
		w.MaxRetries = new(wire.Int32(*t.MaxRetries))
	}
	if t.Delay != 0 {
		w.Delay = durationpb.New(t.Delay)
	}
	if t.ExpireAfter != 0 {
		w.ExpireAfter = durationpb.New(t.ExpireAfter)
	}
	return w, nil
}

package worker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Step says which step of which workflow a task is.
type Step struct {
	Workflow      string // its id
	WorkflowTopic string // its topic; empty: that of the task
	WorkflowName  string // what kind it is; may be empty
	Name          string
	Copy          int    // from 1; 0: the step has no copies
	Try           int    // which making of the step it is, from 1
	Starts        int    // 1, and one more each time that the workflow began again
	Undo          bool   // the task compensates the step
	Input         []byte // of the workflow, if the step asks for it

	// Inputs are how the steps ended that this one waited for. With InputsCut their results are
	// left out, because they have more than 1 MiB together: client.StepResults has them.
	Inputs    []Input
	InputsCut bool
}

// Input is how a step ended that this one waited for, and what it returned. Of an undo it is the
// step that is undone.
type Input struct {
	Step   string
	Copy   int // from 1; 0: the step has no copies
	State  client.StepState
	Result []byte // nil when Step.InputsCut
	Size   int64  // of the result, also when that was left out
	Error  string // why it failed, of one that did: the beginning of its last error, or another reason
}

// stepOf is nil of a task that is no step.
func stepOf(t *ddqv1.Task) *Step {
	s := t.GetStep()
	if s == nil {
		return nil
	}
	step := &Step{
		Workflow: s.GetWorkflow(), WorkflowTopic: s.GetWorkflowTopic(), WorkflowName: s.GetWorkflowName(), Name: s.GetName(), Copy: int(s.GetCopy()), Try: int(s.GetTry()),
		Starts: int(s.GetStarts()), Undo: s.GetUndo(), Input: s.GetInput(),
		InputsCut: t.GetInputsCut(),
	}
	for _, in := range t.GetInputs() {
		step.Inputs = append(step.Inputs, Input{Step: in.GetStep(), Copy: int(in.GetCopy()), State: client.StepState(in.GetState()), Result: in.GetResult(), Size: in.GetSize(), Error: in.GetError()})
	}
	return step
}

// ResultOf returns what a step returned that this one waited for, or its first copy; nil when it
// returned nothing, or is not among the inputs.
func (t Task) ResultOf(step string) []byte {
	if t.Step == nil {
		return nil
	}
	for i := range t.Step.Inputs {
		if t.Step.Inputs[i].Step == step {
			return t.Step.Inputs[i].Result
		}
	}
	return nil
}

// stepPause is how long a task waits whose step has no handler here.
const stepPause = 5 * time.Second

// errNoHandler is of a task whose step has no handler.
var errNoHandler = errors.New("no handler for the step")

// Steps hands the tasks of workflows to the handler of their step: under its name, and of an undo
// under its name and " undo". A task whose step has no handler is released for 5s, perhaps for a
// worker that knows it, and logged; so is a task that is no step.
type Steps map[string]HandlerFunc

// Handle calls the handler of t's step. A step that grew is called "parent.name": without a handler
// of its own it is handled as the last part of its name says, and then, for the tasks of a Call, as that
// says without the numbers behind it: "page-2-1" as "page-2", or as "page".
func (s Steps) Handle(ctx context.Context, t Task) error {
	for _, name := range t.Step.names() {
		if h := s[name]; h != nil {
			return h(ctx, t)
		}
	}
	return &verdict{err: errNoHandler, delay: new(stepPause), release: true}
}

// name is empty of a task that is no step.
func (s *Step) name() string {
	if s == nil {
		return ""
	}
	return s.Name
}

// names are those under which the handler of a step is looked for: none of a task that is no step.
func (s *Step) names() []string {
	if s == nil {
		return nil
	}
	suffix := ""
	if s.Undo {
		suffix = " undo"
	}
	last := s.Name[strings.LastIndexByte(s.Name, '.')+1:]
	names := []string{s.Name + suffix, last + suffix}
	for last != s.Name {
		at := strings.LastIndexByte(last, '-')
		if at <= 0 || !isNumber(last[at+1:]) {
			break
		}
		last = last[:at]
		names = append(names, last+suffix)
	}
	return names
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// MaxCallName is how many characters the name of a Call has: letters, digits, '_' and '-'. That of an
// Await has as many as a signal, which is 64.
const MaxCallName = maxStepName - len("-1000")

const maxStepName = 64

// What Call and Await return.
var (
	// ErrSuspended is for the handler to return: the task ends, and the step goes on when what it
	// waits for has ended.
	ErrSuspended = errors.New("suspended")
	// ErrBadCall: there are no tasks, or too many of them or of their bytes, or one that no step has.
	ErrBadCall = errors.New("bad call")
	// ErrInsideOnce: the function of a Once waits for others, and would be called again.
	ErrInsideOnce = errors.New("Call and Await are not for the function of a Once")
	// ErrTimedOut: the signal of an Await did not come in time.
	ErrTimedOut = errors.New("no signal came in time")
	// ErrWaitCancelled: the wait of an Await was cancelled or skipped, because the workflow fails.
	ErrWaitCancelled = errors.New("the wait was cancelled")
)

// Outcome is how a task of a Call ended.
type Outcome struct {
	Step   string           // its name in the workflow
	State  client.StepState // done, failed, cancelled or skipped
	Result []byte           // of one that is done
	Error  string           // the beginning of it, of one that failed; or why it failed
}

// Err is nil of a task that is done. A handler that returns it fails for good: the outcome stays.
func (o *Outcome) Err() error {
	switch {
	case o.State == client.StepDone:
		return nil
	case o.Error == "":
		return Permanent(fmt.Errorf("%s is %v", o.Step, o.State))
	}
	return Permanent(fmt.Errorf("%s is %v: %s", o.Step, o.State, o.Error))
}

// Call has tasks done, and returns how each of them ended, in order: a task that fails is no error.
// They are steps of the workflow below the one that t is of, called "parent.name-1" and so on, and
// handlers for the step "name" get them. The first Call under a name returns ErrSuspended, for the
// handler to return: the task ends with that, and holds no worker. When all tasks have ended, and all
// that grew from them, the handler is called again, in another task of the same step and try, with
// fresh attempts. It comes to the same Call then, which returns; what Once, Sleep, Call and Await
// returned before is remembered. The tasks are those of the first Call, also if the handler was
// changed meanwhile.
//
// The step is done when the handler returns nil in the end. What SetResult, Enqueue, Grow, Skip and
// Again were given counts then only.
//
// A name is for one Call or Await, with the letters of a step's and MaxCallName of them; ErrNameUsed and
// ErrBadName otherwise. ErrNoStep is of a task that is no step, or an undo, ErrBadCall of no tasks and of
// more than MaxGrow or MaxGrowBytes. What the server refuses of a task, such as its topic, fails the
// attempt.
func (t Task) Call(ctx context.Context, name string, tasks ...client.Task) ([]Outcome, error) {
	if err := t.begin(ctx, name, MaxCallName); err != nil {
		return nil, err
	}
	ended, err := t.outcomes(ctx, func(step string) bool {
		number, is := strings.CutPrefix(step, name+"-")
		return is && isNumber(number)
	})
	if err != nil || len(ended) > 0 {
		return ended, err
	}
	if len(tasks) == 0 || len(tasks) > MaxGrow {
		return nil, fmt.Errorf("%w: %q has %d tasks; 1 to %d are allowed", ErrBadCall, name, len(tasks), MaxGrow)
	}
	steps := make([]client.Step, len(tasks))
	for i := range tasks {
		steps[i] = client.Step{Name: name + "-" + strconv.Itoa(i+1), Task: tasks[i], IgnoreFailure: true}
	}
	return nil, t.suspend(name, steps)
}

// Await waits for the signal of a name to the workflow, and returns its payload. It suspends the step
// as Call does: the wait is a step "parent.name". ErrTimedOut when timeout has passed without one, 0
// being none. A handler that returns that fails for good.
func (t Task) Await(ctx context.Context, name string, timeout time.Duration) ([]byte, error) {
	if err := t.begin(ctx, name, maxStepName); err != nil {
		return nil, err
	}
	ended, err := t.outcomes(ctx, func(step string) bool { return step == name })
	switch {
	case err != nil:
		return nil, err
	case len(ended) == 0:
		wait := client.Wait{Signal: name, Timeout: timeout}
		return nil, t.suspend(name, []client.Step{{Name: name, Wait: wait, IgnoreFailure: true}})
	}
	switch ended[0].State {
	case client.StepDone:
		return ended[0].Result, nil
	case client.StepFailed:
		return nil, Permanent(fmt.Errorf("signal %q: %w", name, ErrTimedOut))
	}
	return nil, Permanent(fmt.Errorf("signal %q: %w", name, ErrWaitCancelled))
}

// GrowthOf returns what a handler waits for that returned ErrSuspended, for tests of handlers; nil for
// other errors. What ended goes into Step.Inputs of the task that goes on.
func GrowthOf(err error) *ddqv1.Growth {
	var v *verdict
	if !errors.As(err, &v) {
		return nil
	}
	return v.suspend
}

// begin takes a name for a Call or an Await.
func (t Task) begin(ctx context.Context, name string, longest int) error {
	switch {
	case t.Step == nil:
		return ErrNoStep
	case t.Step.Undo:
		return fmt.Errorf("%w: it undoes one", ErrNoStep)
	case ctx.Value(insideOnce{}) != nil:
		return fmt.Errorf("%w: %q", ErrInsideOnce, name)
	case !isStepName(name, longest):
		return fmt.Errorf("%w: %.200q must be 1 to %d letters, digits, _ or -", ErrBadName, name, longest)
	case t.journal == nil:
		return nil
	}
	_, _, err := t.journal.use(name)
	return err
}

// outcomes are those of what the step waited for before, under names below its own.
func (t Task) outcomes(ctx context.Context, of func(name string) bool) (ended []Outcome, err error) {
	below, names := t.Step.unitName()+".", []string(nil)
	for i := range t.Step.Inputs {
		in := &t.Step.Inputs[i]
		name, grew := strings.CutPrefix(in.Step, below)
		if !grew || !of(name) {
			continue
		}
		o := Outcome{Step: in.Step, State: in.State, Result: in.Result, Error: in.Error}
		if t.Step.InputsCut && in.Size > 0 && t.journal != nil && t.journal.at != nil {
			if o.Result, err = t.journal.at.stepResult(ctx, in.Step); err != nil {
				return nil, err
			}
		}
		ended, names = append(ended, o), append(names, name)
	}
	return ended, t.take(names)
}

// take takes names of steps, which no other Call or Await is for.
func (t Task) take(names []string) error {
	if t.journal == nil {
		return nil
	}
	return t.journal.take(names)
}

// suspend is the error that ends the task, and has its step wait for others.
func (t Task) suspend(name string, steps []client.Step) error {
	more, err := t.wireSteps(steps)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadCall, err)
	}
	names := make([]string, len(steps))
	for i := range steps {
		names[i] = steps[i].Name
	}
	if err := t.take(names); err != nil {
		return err
	}
	growth := &ddqv1.Growth{Steps: more, Suspend: true}
	if n := proto.Size(growth); n > MaxGrowBytes {
		return fmt.Errorf("%w: %q has %d bytes; at most %d are allowed", ErrBadCall, name, n, MaxGrowBytes)
	}
	return &verdict{err: fmt.Errorf("%w until %q has ended", ErrSuspended, name), suspend: growth}
}

// unitName is the name of a step with the number of its copy.
func (s *Step) unitName() string {
	if s.Copy == 0 {
		return s.Name
	}
	return s.Name + "#" + strconv.Itoa(s.Copy)
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isStepName reports whether a step may be called so.
func isStepName(name string, longest int) bool {
	if name == "" || len(name) > longest {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

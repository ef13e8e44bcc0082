package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// startStep is a task of the step "start", which waited for these.
func startStep(inputs ...Input) Task {
	return NewTask(Task{Step: &Step{Workflow: "w", Name: "start", Inputs: inputs}})
}

func TestCallSuspendsTheStep(t *testing.T) {
	outcomes, err := startStep().Call(t.Context(), "pages", client.Task{Payload: []byte("a")}, client.Task{Topic: "mail", Delay: time.Second})
	if !errors.Is(err, ErrSuspended) || outcomes != nil {
		t.Fatalf("%v, %v", outcomes, err)
	}
	g := GrowthOf(fmt.Errorf("wrapped: %w", err))
	if !g.GetSuspend() || len(g.GetSteps()) != 2 {
		t.Fatalf("it waits for %v", g)
	}
	for i, s := range g.GetSteps() {
		if s.GetName() != fmt.Sprintf("pages-%d", i+1) || !s.GetIgnoreFailure() {
			t.Errorf("step %d is %v", i, s)
		}
	}
	if first, second := g.GetSteps()[0].GetTask(), g.GetSteps()[1].GetTask(); string(first.GetPayload()) != "a" || second.GetTopic() != "mail" || second.GetDelay().AsDuration() != time.Second {
		t.Errorf("tasks %v and %v", first, second)
	}
	_, err = startStep().Await(t.Context(), "approve", time.Minute)
	if g := GrowthOf(err); len(g.GetSteps()) != 1 || g.GetSteps()[0].GetName() != "approve" || g.GetSteps()[0].GetWait().GetSignal() != "approve" || g.GetSteps()[0].GetWait().GetTimeoutMs() != 60_000 {
		t.Errorf("%v: it waits for %v", err, g)
	}
}

func TestCallReturnsHowItsTasksEnded(t *testing.T) {
	task := startStep(
		Input{Step: "before", State: client.StepDone, Result: []byte("other")},
		Input{Step: "start.pages-1", State: client.StepDone, Result: []byte("x")},
		Input{Step: "start.pages-2", State: client.StepFailed, Error: "boom"},
		Input{Step: "start.pages-1-1", State: client.StepSkipped},
		Input{Step: "start.approve", State: client.StepDone, Result: []byte("yes")},
		Input{Step: "start.late", State: client.StepFailed, Error: "timed_out"},
		Input{Step: "start.cut", State: client.StepCancelled},
	)
	pages, err := task.Call(t.Context(), "pages", client.Task{})
	if err != nil || len(pages) != 2 || string(pages[0].Result) != "x" || pages[0].Err() != nil || pages[1].Error != "boom" {
		t.Fatalf("%+v, %v", pages, err)
	}
	if err := pages[1].Err(); err == nil || err.Error() != "start.pages-2 is failed: boom" || !nackOf(t.Context(), err).GetPermanent() {
		t.Errorf("a task that failed is %v", err)
	}
	more, err := task.Call(t.Context(), "pages-1")
	if err != nil || len(more) != 1 || more[0].Err().Error() != "start.pages-1-1 is skipped" {
		t.Errorf("%+v, %v", more, err)
	}
	if yes, err := task.Await(t.Context(), "approve", 0); err != nil || string(yes) != "yes" {
		t.Errorf("the signal is %q, %v", yes, err)
	}
	if _, err := task.Await(t.Context(), "late", time.Minute); !errors.Is(err, ErrTimedOut) || !nackOf(t.Context(), err).GetPermanent() {
		t.Errorf("a signal that did not come: %v", err)
	}
	if _, err := task.Await(t.Context(), "cut", 0); !errors.Is(err, ErrWaitCancelled) {
		t.Errorf("a wait that was cancelled: %v", err)
	}
	copied := NewTask(Task{Step: &Step{Name: "start", Copy: 2, Inputs: []Input{{Step: "start#2.a-1", State: client.StepDone}, {Step: "start.b-1", State: client.StepDone}}}})
	if got, err := copied.Call(t.Context(), "a"); err != nil || len(got) != 1 {
		t.Errorf("a copy gets %v, %v", got, err)
	}
	if _, err := copied.Call(t.Context(), "b", client.Task{}); !errors.Is(err, ErrSuspended) {
		t.Errorf("a copy gets those of another: %v", err)
	}
}

func TestCallsThatCannotBe(t *testing.T) {
	one := client.Task{}
	call := func(name string, tasks ...client.Task) func(context.Context, Task) error {
		return func(ctx context.Context, task Task) error { _, err := task.Call(ctx, name, tasks...); return err }
	}
	await := func(name string) func(context.Context, Task) error {
		return func(ctx context.Context, task Task) error { _, err := task.Await(ctx, name, 0); return err }
	}
	after := func(first, then func(context.Context, Task) error) func(context.Context, Task) error {
		return func(ctx context.Context, task Task) error {
			if err := first(ctx, task); !errors.Is(err, ErrSuspended) {
				return fmt.Errorf("the first: %w", err)
			}
			return then(ctx, task)
		}
	}
	inside := func(f func(context.Context, Task) error) func(context.Context, Task) error {
		return func(ctx context.Context, task Task) error {
			_, err := task.Once(ctx, "once", func(ctx context.Context) ([]byte, error) { return nil, f(ctx, task) })
			return err
		}
	}
	for name, c := range map[string]struct {
		do   func(context.Context, Task) error
		want error
	}{
		"no tasks":                {call("a"), ErrBadCall},
		"too many tasks":          {call("a", make([]client.Task, MaxGrow+1)...), ErrBadCall},
		"too many bytes":          {call("a", client.Task{Payload: make([]byte, MaxGrowBytes)}), ErrBadCall},
		"a task with an id":       {call("a", client.Task{ID: "mine"}), ErrBadCall},
		"no name":                 {call("", one), ErrBadName},
		"a long name":             {call(strings.Repeat("n", MaxCallName+1), one), ErrBadName},
		"a name with a dot":       {call("a.b", one), ErrBadName},
		"a name that is no text":  {call("\xff", one), ErrBadName},
		"a name twice":            {after(call("a", one), call("a", one)), ErrNameUsed},
		"of a call and an await":  {after(call("a", one), await("a")), ErrNameUsed},
		"inside of Once":          {inside(call("a", one)), ErrInsideOnce},
		"an await without a name": {await(""), ErrBadName},
		"an await inside of Once": {inside(await("a")), ErrInsideOnce},
		"a long signal":           {await(strings.Repeat("n", 65)), ErrBadName},
		"longest":                 {call(strings.Repeat("n", MaxCallName), make([]client.Task, MaxGrow)...), ErrSuspended},
		"longest signal":          {await(strings.Repeat("n", 64)), ErrSuspended},
		"a step's name of a call": {after(call("a", one), await("a-1")), ErrNameUsed},
		"a call for an await":     {after(await("a-1"), call("a", one)), ErrNameUsed},
	} {
		if err := c.do(t.Context(), startStep()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	for name, task := range map[string]Task{"a task that is no step": NewTask(Task{}), "an undo": NewTask(Task{Step: &Step{Name: "start", Undo: true}})} {
		if err := call("a", one)(t.Context(), task); !errors.Is(err, ErrNoStep) || nackOf(t.Context(), err).GetPermanent() {
			t.Errorf("%s: %v", name, err)
		}
		if err := await("a")(t.Context(), task); !errors.Is(err, ErrNoStep) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A suspended step is acked with what it waits for, and with nothing else that its handler said. One
// that is refused fails the attempt.
func TestASuspendedStepIsAcked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		answer := func(_ *fakeStream, f *ddqv1.SubscribeRequest) *ddqv1.Settled {
			mu.Lock()
			defer mu.Unlock()
			settled := &ddqv1.Settled{Sequence: f.GetSequence()}
			for _, n := range f.GetNacks() {
				got = append(got, "nack of "+n.GetTaskId()+n.GetError())
			}
			for _, a := range f.GetAcks() {
				steps := a.GetGrow().GetSteps()
				got = append(got, fmt.Sprintf("ack of %s: suspend %t until %d steps, with %q and %d tasks", a.GetTaskId(), a.GetGrow().GetSuspend(), len(steps), a.GetResult(), len(a.GetEnqueue())))
				if a.GetTaskId() == "refused" {
					settled.Results = append(settled.Results, &ddqv1.SettleResult{TaskId: a.GetTaskId(), HoldToken: a.GetHoldToken(), Error: &ddqv1.Error{
						Code: 7, Reason: "PERMISSION_DENIED", Message: "may not enqueue on mail",
					}})
				}
			}
			return settled
		}
		x := start(t, &fakeServer{results: answer}, Config{}, HandlerFunc(func(ctx context.Context, task Task) error {
			task.Step = &Step{Workflow: "w", Name: "start"} // the fake server knows no steps
			if err := errors.Join(task.SetResult([]byte("early")), task.Enqueue(client.Task{Topic: "mail"}), task.Grow(client.Step{Name: "a"})); err != nil {
				return err
			}
			_, err := task.Call(ctx, "pages", client.Task{})
			return fmt.Errorf("pages: %w", err)
		}))
		st := <-x.streams
		synctest.Wait()
		for _, id := range []string{"good", "refused"} {
			st.deliver(id)
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{`ack of good: suspend true until 1 steps, with "" and 0 tasks`, `ack of refused: suspend true until 1 steps, with "" and 0 tasks`, "nack of refused: may not enqueue on mail"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestTasksOfCallsFindTheirHandler(t *testing.T) {
	for name, want := range map[string]string{
		"start.page-1": "page", "start.page-2-13": "page", "start.other-7-1": "other-7", "page-1": "", "start.-1": "", "start.sub.page-4": "page",
	} {
		got := ""
		handler := func(name string) HandlerFunc { return func(context.Context, Task) error { got = name; return nil } }
		_ = Steps{"page": handler("page"), "other": handler("other"), "other-7": handler("other-7")}.Handle(t.Context(), Task{Step: &Step{Name: name}})
		if got != want {
			t.Errorf("%s is handled as %q, want %q", name, got, want)
		}
	}
}

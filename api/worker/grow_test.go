package worker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// An ack brings what its handler adds to the workflow, and one that is refused for that fails the
// attempt.
func TestGrowthGoesWithTheAck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		answer := func(_ *fakeStream, f *ddqv1.SubscribeRequest) *ddqv1.Settled {
			mu.Lock()
			defer mu.Unlock()
			settled := &ddqv1.Settled{Sequence: f.GetSequence()}
			for _, a := range f.GetAcks() {
				words := []string{"ack of", a.GetTaskId()}
				for _, s := range a.GetGrow().GetSteps() {
					words = append(words, s.GetName())
				}
				words = append(words, "without", strings.Join(a.GetGrow().GetSkip(), " "), "again", string(a.GetGrow().GetAgain()))
				got = append(got, strings.Join(words, " "))
				if a.GetTaskId() == "refused" {
					settled.Results = append(settled.Results, &ddqv1.SettleResult{TaskId: a.GetTaskId(), HoldToken: a.GetHoldToken(), Error: &ddqv1.Error{
						Code: 3, Reason: "BAD_GRAPH", Field: "grow.steps[0].after[0]", Message: "there is no step",
					}})
				}
			}
			for _, n := range f.GetNacks() {
				got = append(got, "nack of "+n.GetTaskId()+": "+n.GetError())
			}
			return settled
		}
		x := start(t, &fakeServer{results: answer}, Config{}, HandlerFunc(func(_ context.Context, task Task) error {
			task.Step = &Step{Workflow: "w"} // the fake server knows no steps
			for _, err := range []error{task.Grow(client.Step{Name: "a"}), task.Grow(client.Step{Name: "b"}), task.Skip("c"), task.Again([]byte("x")), task.Again([]byte("y"))} {
				if err != nil {
					return err
				}
			}
			if task.ID == "failed" {
				return errBoom
			}
			return nil
		}))
		st := <-x.streams
		synctest.Wait()
		for _, id := range []string{"good", "failed", "refused"} {
			st.deliver(id)
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{"ack of good a b without c again y", "nack of failed: " + errBoom.Error(), "ack of refused a b without c again y",
			"nack of refused: grow.steps[0].after[0]: there is no step"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestHandlerIsToldWhatNoWorkflowTakes(t *testing.T) {
	task := NewTask(Task{Step: &Step{Workflow: "w", Name: "split"}})
	if err := task.Grow(client.Step{Name: "a"}, client.Step{Name: "b"}); err != nil || len(task.Growth().GetSteps()) != 2 {
		t.Fatalf("%v, %v", err, task.Growth())
	}
	for name, steps := range map[string][]client.Step{
		"too many":   make([]client.Step, MaxGrow-1),
		"too large":  {{Name: "c", Task: client.Task{Payload: make([]byte, MaxGrowBytes)}}},
		"with an id": {{Name: "c", Task: client.Task{ID: "mine"}}},
	} {
		if err := task.Grow(steps...); err == nil || len(task.Growth().GetSteps()) != 2 {
			t.Errorf("%s: %v, %d steps", name, err, len(task.Growth().GetSteps()))
		}
	}
	plain := NewTask(Task{})
	if err := plain.Grow(client.Step{Name: "a"}); err == nil || plain.Growth() != nil {
		t.Error("a task that is no step grows a workflow")
	}
}

package workflows

import (
	"cmp"
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// change has an event happen to a workflow.
func (s *Workflows) change(ctx context.Context, topic, id string, e workflow.Event) (status workflow.Status, err *problem.Error) {
	err = s.at(ctx, topic, id, func(t *store.Topic) (err error) {
		status, err = s.kept.Change(ctx, t, id, e)
		return err
	})
	return status, err
}

// Cancel ends a workflow: what is pending is deleted, and what runs is asked to end. It waits for
// the end of that, but no longer than wait. The wait also ends with waiting, and not the call:
// what was asked for is answered.
func (s *Workflows) Cancel(ctx, waiting context.Context, topic, id, note string, wait time.Duration) (workflow.Status, error) {
	if err := cmp.Or(checkText("note", note, maxNote), s.checkWait(wait)); err != nil {
		return workflow.Status{}, err
	}
	status, err := s.change(ctx, topic, id, workflow.Cancel{Note: note})
	if err != nil {
		return workflow.Status{}, err
	}
	if wait == 0 || !status.State.Open() {
		return status, nil
	}
	after, e := s.Wait(waiting, status.Topic, id, wait)
	switch {
	case ctx.Err() != nil:
		return workflow.Status{}, problem.FromStore(ctx.Err())
	case e != nil: // an error would say that nothing was done
		return status, nil
	}
	return after, nil
}

// Pause stops a workflow from making steps. One that is paused stays as it is.
func (s *Workflows) Pause(ctx context.Context, topic, id, by, note string) (workflow.Status, error) {
	if err := cmp.Or(checkText("by", by, maxBy), checkText("note", note, maxNote)); err != nil {
		return workflow.Status{}, err
	}
	return value(s.change(ctx, topic, id, workflow.Pause{By: by, Note: note}))
}

// Resume lets a workflow go on. One that is not paused stays as it is.
func (s *Workflows) Resume(ctx context.Context, topic, id, note string) (workflow.Status, error) {
	if err := checkText("note", note, maxNote); err != nil {
		return workflow.Status{}, err
	}
	return value(s.change(ctx, topic, id, workflow.Resume{Note: note}))
}

// Retry makes steps anew that failed, or one and all behind it.
func (s *Workflows) Retry(ctx context.Context, topic, id string, r workflow.Retry) (workflow.Status, error) {
	if r.From != "" && len(r.Steps) > 0 {
		return workflow.Status{}, problem.BadField("from", "BAD_WORKFLOW", "from is in place of steps, not beside them")
	}
	status, err := s.change(ctx, topic, id, r)
	if err != nil && r.From != "" && err.Field == "steps" {
		err.Field = "from"
	}
	return value(status, err)
}

// Skip makes a step done that failed or waits, with a result.
func (s *Workflows) Skip(ctx context.Context, topic, id string, e workflow.Skip) (workflow.Status, error) {
	switch {
	case e.Step == "":
		return workflow.Status{}, problem.BadField("step", refusal.BadName, "step is required")
	case e.Copy < 0:
		return workflow.Status{}, problem.BadField("copy", "OUT_OF_RANGE_FIELD", "copy must not be negative")
	case len(e.Result) > graph.MaxResult:
		return workflow.Status{}, problem.BadField("result", refusal.ResultTooLarge, "result has %d bytes; at most %d are allowed", len(e.Result), graph.MaxResult)
	}
	status, err := s.change(ctx, topic, id, e)
	if err != nil && err.Field == "steps" {
		err.Field = "step"
	}
	return value(status, err)
}

// value makes an error value of a *problem.Error.
func value(status workflow.Status, err *problem.Error) (workflow.Status, error) {
	if err != nil {
		return workflow.Status{}, err
	}
	return status, nil
}

// Signal leaves a signal for a workflow that is open, and returns its topic.
func (s *Workflows) Signal(ctx context.Context, topic, id string, sig workflow.Signal) (foundIn string, err error) {
	switch {
	case !graph.IsStepName(sig.Name):
		return "", problem.BadField("signal", refusal.BadName, "signal must be 1 to %d letters, digits, _ or -", graph.MaxName)
	case len(sig.Payload) > workflow.MaxSignal:
		return "", problem.BadField("payload", refusal.SignalTooLarge, "payload has %d bytes; at most %d are allowed", len(sig.Payload), workflow.MaxSignal)
	}
	if err := checkText("signal_id", sig.ID, maxSignal); err != nil {
		return "", err
	}
	if e := s.at(ctx, topic, id, func(t *store.Topic) error {
		foundIn = t.Name
		return s.kept.Signal(ctx, t, id, sig)
	}); e != nil {
		return "", e
	}
	return foundIn, nil
}

// Delete removes a workflow that has ended, and returns its topic.
func (s *Workflows) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	if e := s.at(ctx, topic, id, func(t *store.Topic) error {
		foundIn = t.Name
		return s.kept.Delete(ctx, t, id)
	}); e != nil {
		return "", e
	}
	return foundIn, nil
}

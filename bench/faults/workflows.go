package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// startWorkflows starts the process that submits the workflows.
func (r *round) startWorkflows() (err error) {
	r.conductor, err = r.join(party.Config{Role: "conductor", Config: plan.Config{Name: "conductor"}})
	return err
}

// finishWorkflows waits until every workflow has ended, or nothing happens any more. What a fault
// has undone of the signals, skips and resumes that they wait for is done again.
func (r *round) finishWorkflows(ctx context.Context) error {
	if err := r.finish(ctx, []*process{r.conductor}, "producer"); err != nil {
		return err
	}
	return r.Nodes[0].Ask(func(c *client.Client) error {
		return r.awaitNone(ctx, "workflows go on", 200*time.Millisecond, func() (left int64, err error) {
			for w, err := range c.ListWorkflows(ctx, client.WorkflowFilter{Topic: plan.Flowed}) {
				if err != nil {
					return 0, fmt.Errorf("list workflows: %w", err)
				}
				if w.State.Ended() {
					continue
				}
				left++
				if r.fault.mayUndo() {
					r.push(ctx, c, &w)
				}
			}
			return left, nil
		})
	})
}

// mayUndo reports whether the fault may undo what was answered.
func (f *Fault) mayUndo() bool { return len(f.Allow) > 0 }

// push does again what a workflow waits for. What is refused is not needed.
func (r *round) push(ctx context.Context, c *client.Client, w *client.WorkflowStatus) {
	do := func(call ledger.Event, it func() error) {
		call.Kind, call.Call, call.Topic, call.Flow = ledger.Call, r.ledger.NextCall(), plan.Flowed, w.ID
		r.ledger.Append(call)
		answer := ledger.Event{Kind: ledger.Answer, Op: call.Op, Call: call.Call, Topic: call.Topic, Flow: call.Flow, Result: ledger.OK}
		if err := it(); err != nil {
			answer.Result, answer.Reason = tap.Outcome(err)
		}
		r.ledger.Append(answer)
	}
	switch {
	case w.State == client.WorkflowPaused:
		do(ledger.Event{Op: ledger.ResumeWorkflow}, func() error {
			_, err := c.ResumeWorkflow(ctx, plan.Flowed, w.ID, "")
			return err
		})
	case w.Name == plan.Signalled || w.Name == plan.Either || w.Name == plan.Calling:
		do(ledger.Event{Op: ledger.Signal, Signal: "go"}, func() error {
			return c.SignalWorkflow(ctx, plan.Flowed, w.ID, client.Signal{Name: "go", ID: "the only one"})
		})
	case w.Name == plan.Passed:
		do(ledger.Event{Op: ledger.SkipStep, Step: "never"}, func() error {
			_, err := c.SkipStep(ctx, plan.Flowed, w.ID, "never", nil)
			return err
		})
	}
}

// workflows writes down how every workflow stands, and every child.
func (a *auditor) workflows(ctx context.Context, c *client.Client) error {
	if err := a.workflowsOf(ctx, c, plan.Flowed); err != nil {
		return err
	}
	return a.workflowsOf(ctx, c, plan.Next)
}

func (a *auditor) workflowsOf(ctx context.Context, c *client.Client, topic string) error {
	for w, err := range c.ListWorkflows(ctx, client.WorkflowFilter{Topic: topic}) {
		if err != nil {
			return err
		}
		_, steps, err := c.GetWorkflow(ctx, topic, w.ID)
		switch {
		case errors.Is(err, client.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		e := ledger.Event{Kind: ledger.Found, Topic: plan.Flowed, Flow: w.ID, State: w.State.String(), Reason: w.Cause}
		if topic == plan.Next { // a child: the ledger has it by its step, see checker
			e.Flow, _, _ = strings.Cut(w.ID, ":")
		}
		for i := range steps {
			s := &steps[i]
			e.Steps = append(e.Steps, ledger.StepStanding{Step: s.Name, Copy: s.Copy, State: s.State.String(), Try: s.Try})
		}
		a.ledger.Append(e)
	}
	return nil
}

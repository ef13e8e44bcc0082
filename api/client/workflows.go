package client

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/ids"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Workflows are the calls about workflows. A Client has them. Where a call names a workflow with
// an empty topic, every topic is searched.
type Workflows struct {
	*caller
	workflows ddqv1.WorkflowServiceClient
}

// Submitted is what became of a workflow that was submitted.
type Submitted struct {
	Topic        string        `json:"topic"`
	ID           string        `json:"id"`
	State        WorkflowState `json:"-"`
	Deduplicated bool          `json:"deduplicated,omitempty"` // the same was submitted before; this is that workflow
}

// Submit stores a workflow, and makes the tasks that it begins with. The same again, with the same
// ID, changes nothing. ErrExists when another workflow of the ID has not ended.
func (c *Workflows) Submit(ctx context.Context, w Workflow) (Submitted, error) {
	if e := c.checkSteps(w.Steps); e != nil {
		return Submitted{}, e
	}
	request, e := w.wire()
	if e != nil {
		return Submitted{}, e
	}
	return c.SubmitWire(ctx, request)
}

// SubmitWire is Submit for a workflow in the form of the wire, such as one that was read from a
// file.
func (c *Workflows) SubmitWire(ctx context.Context, w *ddqv1.Workflow) (done Submitted, err error) {
	if err := ids.Fill(&w.Id); err != nil {
		return done, err
	}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.workflows.SubmitWorkflow, &ddqv1.SubmitWorkflowRequest{Workflow: w})
	return Submitted{Topic: reply.GetTopic(), ID: reply.GetId(), State: WorkflowState(reply.GetState()), Deduplicated: reply.GetDeduplicated()}, err
}

// GetWorkflow returns a workflow and up to 1,000 of its steps, in the order in which they were
// submitted.
func (c *Workflows) GetWorkflow(ctx context.Context, topic, id string) (s WorkflowStatus, steps []StepStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.workflows.GetWorkflow, &ddqv1.GetWorkflowRequest{Topic: topic, Id: id, View: ddqv1.WorkflowView_WORKFLOW_VIEW_STEPS})
	return workflowFrom(reply.GetStatus()), stepsFrom(reply.GetSteps()), err
}

// stepsPage is as much as a page has: each reads the whole workflow.
const stepsPage = 1000

// ListSteps goes through the steps of a workflow in a state, or all when that is zero. The sequence
// ends with the first error.
func (c *Workflows) ListSteps(ctx context.Context, topic, id string, state StepState) iter.Seq2[StepStatus, error] {
	return call.Pages(func(token string) ([]StepStatus, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.workflows.ListSteps, &ddqv1.ListStepsRequest{Topic: topic, Id: id, State: ddqv1.StepState(state), PageSize: stepsPage, PageToken: token})
		return stepsFrom(reply.GetSteps()), reply.GetNextPageToken(), err
	})
}

// StepResults goes through what a step returned, or its copies in the order of their numbers. The
// sequence ends with the first error.
func (c *Workflows) StepResults(ctx context.Context, topic, id, step string) iter.Seq2[StepResult, error] {
	return call.Pages(func(token string) ([]StepResult, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.workflows.GetStepResults, &ddqv1.GetStepResultsRequest{Topic: topic, Id: id, Step: step, PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetResults(), stepResultFrom), reply.GetNextPageToken(), err
	})
}

func stepResultFrom(r *ddqv1.StepInput) StepResult {
	return StepResult{Step: r.GetStep(), Copy: int(r.GetCopy()), State: StepState(r.GetState()), Size: r.GetSize(), Result: r.GetResult()}
}

// WorkflowFilter says which workflows are meant. The zero WorkflowFilter means all.
type WorkflowFilter struct {
	Topic  string // all topics when empty
	State  WorkflowState
	Name   string
	Labels map[string]string // workflows that have all of these
}

// ListWorkflows goes through workflows, shard by shard, the newest of each first. The sequence
// ends with the first error.
func (c *Workflows) ListWorkflows(ctx context.Context, f WorkflowFilter) iter.Seq2[WorkflowStatus, error] {
	return call.Pages(func(token string) ([]WorkflowStatus, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.workflows.ListWorkflows, &ddqv1.ListWorkflowsRequest{
			Topic: f.Topic, State: ddqv1.WorkflowState(f.State), Name: f.Name, Labels: wire.Attributes(f.Labels), PageSize: call.PageSize, PageToken: token,
		})
		return call.List(reply.GetWorkflows(), workflowFrom), reply.GetNextPageToken(), err
	})
}

// WaitWorkflow returns a workflow once it has ended, and as it stands when wait is over: its State
// tells.
func (c *Workflows) WaitWorkflow(ctx context.Context, topic, id string, wait time.Duration) (s WorkflowStatus, err error) {
	for over := time.Now().Add(wait); ; topic = s.Topic {
		poll := max(0, min(time.Until(over), longestPoll))
		if s, err = c.waitOnce(ctx, topic, id, poll); err != nil || s.State.Ended() || poll < longestPoll {
			return s, err
		}
	}
}

func (c *Workflows) waitOnce(ctx context.Context, topic, id string, poll time.Duration) (s WorkflowStatus, err error) {
	ctx, cancel := c.boundedPoll(ctx, poll)
	defer cancel()
	return statusOf(call.Answer(ctx, c.do, call.Idempotent, c.workflows.WaitWorkflow, &ddqv1.WaitWorkflowRequest{Topic: topic, Id: id, WaitMs: wire.Millis(poll)}))
}

// statusOf is the workflow of an answer, as it stands.
func statusOf(answer interface{ GetStatus() *ddqv1.WorkflowStatus }, err error) (WorkflowStatus, error) {
	return workflowFrom(answer.GetStatus()), err
}

// CancelWorkflow ends a workflow: tasks that no worker has are deleted, and the contexts of handlers
// end. note says why. It does not wait for that: see WaitWorkflow.
func (c *Workflows) CancelWorkflow(ctx context.Context, topic, id, note string) (WorkflowStatus, error) {
	return statusOf(call.Answer(ctx, c.do, call.Idempotent, c.workflows.CancelWorkflow, &ddqv1.CancelWorkflowRequest{Topic: topic, Id: id, Note: note}))
}

// PauseWorkflow stops a workflow from making steps until ResumeWorkflow; those that are made go
// on. by and note say who and why.
func (c *Workflows) PauseWorkflow(ctx context.Context, topic, id, by, note string) (WorkflowStatus, error) {
	return statusOf(call.Answer(ctx, c.do, call.Idempotent, c.workflows.PauseWorkflow, &ddqv1.PauseWorkflowRequest{Topic: topic, Id: id, By: by, Note: note}))
}

// ResumeWorkflow lets a paused workflow go on. note says why.
func (c *Workflows) ResumeWorkflow(ctx context.Context, topic, id, note string) (WorkflowStatus, error) {
	return statusOf(call.Answer(ctx, c.do, call.Idempotent, c.workflows.ResumeWorkflow, &ddqv1.ResumeWorkflowRequest{Topic: topic, Id: id, Note: note}))
}

// RetryWorkflow makes steps anew that failed, all of them when none is named, also after the end of
// the workflow. An answer that was lost is not asked for again.
func (c *Workflows) RetryWorkflow(ctx context.Context, topic, id string, steps ...string) (WorkflowStatus, error) {
	return c.retry(ctx, &ddqv1.RetryWorkflowRequest{Topic: topic, Id: id, Steps: steps})
}

// RetryWorkflowFrom makes a step anew, and all behind it, done or not. What grew from them goes.
func (c *Workflows) RetryWorkflowFrom(ctx context.Context, topic, id, step string) (WorkflowStatus, error) {
	return c.retry(ctx, &ddqv1.RetryWorkflowRequest{Topic: topic, Id: id, From: step})
}

func (c *Workflows) retry(ctx context.Context, r *ddqv1.RetryWorkflowRequest) (s WorkflowStatus, err error) {
	return statusOf(call.Answer(ctx, c.do, call.Once, c.workflows.RetryWorkflow, r))
}

// SkipStep makes a step done that waits or failed, with a result. An answer that was lost is not
// asked for again.
func (c *Workflows) SkipStep(ctx context.Context, topic, id, step string, result []byte) (s WorkflowStatus, err error) {
	return statusOf(call.Answer(ctx, c.do, call.Once, c.workflows.SkipStep, &ddqv1.SkipStepRequest{Topic: topic, Id: id, Step: step, Result: result}))
}

// Signal is a named message to a workflow.
type Signal struct {
	Name    string // 1 to 64 letters, digits, '_' and '-'
	Payload []byte // the result of the step that waits for it; at most 64 KiB

	// ID makes the call repeatable: of the last 256 ids of a workflow each counts once. At most
	// 128 bytes. SignalWorkflow makes one when it is empty.
	ID string
}

// SignalWorkflow hands a workflow a signal. One that comes before its wait is kept.
func (c *Workflows) SignalWorkflow(ctx context.Context, topic, id string, s Signal) (err error) {
	if err := ids.Fill(&s.ID); err != nil {
		return err
	}
	_, err = call.Answer(ctx, c.do, call.Idempotent, c.workflows.SignalWorkflow, &ddqv1.SignalWorkflowRequest{Topic: topic, Id: id, Signal: s.Name, Payload: s.Payload, SignalId: s.ID})
	return err
}

// DeleteWorkflow deletes a workflow that has ended.
func (c *Workflows) DeleteWorkflow(ctx context.Context, topic, id string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.workflows.DeleteWorkflow, &ddqv1.DeleteWorkflowRequest{Topic: topic, Id: id})
	return err
}

// WorkflowChange is a workflow as it stands, and its steps that changed since the one before: all
// of them in the first.
type WorkflowChange struct {
	WorkflowStatus
	Steps []StepStatus
}

// WatchWorkflow tells how a workflow goes on, until it has ended. The sequence ends with the first
// error.
func (c *Workflows) WatchWorkflow(ctx context.Context, topic, id string) iter.Seq2[WorkflowChange, error] {
	return func(yield func(WorkflowChange, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.workflows.WatchWorkflow(ctx, &ddqv1.WatchWorkflowRequest{Topic: topic, Id: id})
		for err == nil {
			var frame *ddqv1.WatchWorkflowResponse
			if frame, err = stream.Recv(); err == nil && !yield(WorkflowChange{workflowFrom(frame.GetStatus()), stepsFrom(frame.GetSteps())}, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(WorkflowChange{}, fromRPC(err))
		}
	}
}

package party

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// conductor submits the workflows of a plan and the first tasks of its chains, does to the
// workflows what their shapes ask for, and writes down what it was answered. It owns a goroutine
// for each of them.
type conductor struct {
	c      *Config
	client *client.Client
	log    *ledger.Writer
}

// conduct returns when everything was done to all workflows.
func conduct(ctx context.Context, c *Config, log *ledger.Writer, _ io.Reader) (err error) {
	cl, err := client.Dial(c.Addr, client.Config{MaxElapsed: -1, Timeout: c.Giving})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	d := &conductor{c, cl, log}
	var all sync.WaitGroup
	for _, w := range plan.Workflows(&c.Config) {
		all.Go(func() { d.play(ctx, &w) })
	}
	for i := range c.Chains {
		all.Go(func() { d.begin(ctx, i) })
	}
	all.Wait()
	return ctx.Err()
}

// begin enqueues the first task of a chain, and asks until that is answered.
func (d *conductor) begin(ctx context.Context, i int) {
	id := plan.ChainID(i)
	d.until(ctx, beginOf(d.c.Seed, id, d.c.For))
	call := ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Topic: plan.Flowed, Task: id, Sum: tap.Sum([]byte(id))}
	d.again(ctx, call, func() (err error) {
		_, err = d.client.Enqueue(ctx, client.Task{Topic: plan.Flowed, ID: id, Payload: []byte(id)})
		return err
	})
}

// beginOf is when the chain of an id begins.
func beginOf(seed uint64, id string, span time.Duration) time.Duration {
	return time.Duration(plan.Draw(seed, id, "begin") % uint64(span*3/4))
}

// play submits a workflow and does the rest.
func (d *conductor) play(ctx context.Context, w *plan.Workflow) {
	d.until(ctx, w.Send)
	submit := d.call(ledger.Submit, w.ID)
	submit.Workflow = &w.Graph
	d.again(ctx, submit, func() error {
		_, err := d.client.Submit(ctx, workflowOf(w))
		return err
	})
	switch w.Shape {
	case plan.Signalled, plan.Either, plan.Calling:
		d.until(ctx, w.Act)
		d.signal(ctx, w.ID, "go")
	case plan.Stopped:
		d.until(ctx, w.Act)
		d.again(ctx, d.call(ledger.CancelWorkflow, w.ID), func() error {
			_, err := d.client.CancelWorkflow(ctx, plan.Flowed, w.ID, "")
			return err
		})
	case plan.Circling:
		d.until(ctx, w.Act)
		d.turn(ctx, w.ID)
	case plan.Repaired:
		d.repair(ctx, w.ID)
	case plan.Passed:
		d.until(ctx, w.Act)
		skip := d.call(ledger.SkipStep, w.ID)
		skip.Step = "never"
		d.again(ctx, skip, func() error {
			_, err := d.client.SkipStep(ctx, plan.Flowed, w.ID, skip.Step, []byte("skipped"))
			return err
		})
	}
}

// signal sends a signal, with an id: a repeat counts once.
func (d *conductor) signal(ctx context.Context, id, name string) {
	payload := []byte(id + " may go")
	call := d.call(ledger.Signal, id)
	call.Signal, call.Sum = name, tap.Sum(payload)
	d.again(ctx, call, func() error {
		return d.client.SignalWorkflow(ctx, plan.Flowed, id, client.Signal{Name: name, Payload: payload, ID: "the only one"})
	})
}

// turn pauses a workflow for a while.
func (d *conductor) turn(ctx context.Context, id string) {
	d.again(ctx, d.call(ledger.PauseWorkflow, id), func() error {
		_, err := d.client.PauseWorkflow(ctx, plan.Flowed, id, d.c.Name, "")
		return err
	})
	d.sleep(ctx, 300*time.Millisecond)
	d.again(ctx, d.call(ledger.ResumeWorkflow, id), func() error {
		_, err := d.client.ResumeWorkflow(ctx, plan.Flowed, id, "")
		return err
	})
}

// repairWithin is how long after the plan's time a workflow may end that is to be repaired. One that
// never ends is for the round to judge.
const repairWithin = 30 * time.Second

// repair waits until the workflow has ended, and has what failed made anew.
func (d *conductor) repair(ctx context.Context, id string) {
	for ctx.Err() == nil {
		if time.Since(d.c.Start) > d.c.For+repairWithin {
			return
		}
		s, err := d.client.WaitWorkflow(ctx, plan.Flowed, id, d.c.Giving)
		if err == nil && s.State.Ended() || err != nil && d.settled(err) {
			break
		}
		d.sleep(ctx, again)
	}
	d.again(ctx, d.call(ledger.RetryWorkflow, id), func() error {
		_, err := d.client.RetryWorkflow(ctx, plan.Flowed, id)
		return err
	})
}

func (d *conductor) call(op ledger.Op, id string) ledger.Event {
	return ledger.Event{Kind: ledger.Call, Op: op, Topic: plan.Flowed, Flow: id}
}

// again makes a call until it is answered for good, and writes down each.
func (d *conductor) again(ctx context.Context, call ledger.Event, do func() error) {
	for ctx.Err() == nil {
		call.Call = d.log.NextCall()
		d.log.Append(call)
		answer := ledger.Event{Kind: ledger.Answer, Op: call.Op, Call: call.Call, Topic: call.Topic, Task: call.Task, Flow: call.Flow, Result: ledger.OK}
		err := do()
		if err != nil {
			answer.Result, answer.Reason = tap.Outcome(err)
		}
		d.log.Append(answer)
		if err == nil || d.settled(err) {
			return
		}
		d.sleep(ctx, again)
	}
}

// settled reports whether an error is what the call will be answered later, too.
func (d *conductor) settled(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Reason {
	case "WORKFLOW_FINISHED", "NOTHING_TO_RETRY", "NO_STEP", "STEP_DONE", "TASK_EXISTS", "NO_WORKFLOW": // a fault may have undone that it was submitted
		return true
	}
	return false
}

func (d *conductor) until(ctx context.Context, at time.Duration) {
	d.sleep(ctx, time.Until(d.c.Start.Add(at)))
}

func (d *conductor) sleep(ctx context.Context, t time.Duration) {
	select {
	case <-time.After(t):
	case <-ctx.Done():
	}
}

// workflowOf is what is submitted.
func workflowOf(w *plan.Workflow) client.Workflow {
	return client.Workflow{Topic: plan.Flowed, ID: w.ID, Name: w.Shape, Undo: w.Graph.Undo, Steps: stepsOf(w.Graph.Steps)}
}

func stepsOf(list []ledger.Step) []client.Step {
	all := make([]client.Step, len(list))
	for i := range list {
		s := &list[i]
		all[i] = client.Step{Name: s.Name, Need: s.Need, Copies: s.Copies, CancelRest: s.Need > 0}
		for _, c := range s.After {
			all[i].After = append(all[i].After, client.Condition{Step: c.Step, Grown: c.Grown})
		}
		switch {
		case s.Child != nil:
			all[i].Child = &client.Workflow{Topic: s.Topic, Steps: stepsOf(s.Child.Steps)}
		case s.Signal != "" || s.DelayMS > 0:
			all[i].Wait = client.Wait{Signal: s.Signal, Delay: time.Duration(s.DelayMS) * time.Millisecond}
		default:
			all[i].Task.Topic, all[i].Task.Payload = s.Topic, fmt.Append(nil, "step ", s.Name)
			if s.Undo {
				all[i].Undo = &client.Task{Payload: fmt.Append(nil, "undo ", s.Name)}
			}
		}
	}
	return all
}

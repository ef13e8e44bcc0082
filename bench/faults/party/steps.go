package party

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/faults/plan"
)

// step works at a task of a workflow, as the plan says.
func (h *hands) step(ctx context.Context, t worker.Task) error {
	s := t.Step
	id, _, _ := strings.Cut(s.Workflow, "/")
	shape, _, _ := strings.Cut(id, "-")
	name := fmt.Sprint(s.Workflow, "/", s.Name, "#", s.Copy, ".", s.Try, s.Starts, s.Undo)
	took := time.Duration(plan.Draw(h.c.Seed, name, "work")) % max(h.c.Work, 1)
	if shape == plan.Stopped {
		took = 150 * time.Millisecond
	}
	f := plan.StepFate(&h.c.Config, s.Workflow, shape, s.Name, s.Copy, s.Try, s.Undo)
	if f == plan.Slow {
		took = h.c.Hold * 3 / 2
	}
	if err := t.SetResult(fmt.Appendf(nil, "attempt %d of %s", t.Attempt, name)); err != nil {
		return err
	}
	if err := h.spend(ctx, max(took, time.Until(time.Unix(0, h.hung.Load())))); err != nil {
		return err
	}
	var waits error
	if s.Name == plan.Function && !s.Undo {
		if waits = h.function(ctx, t); waits != nil && !errors.Is(waits, worker.ErrSuspended) {
			return waits
		}
	}
	if err := h.fail(t, f); err != nil {
		return err
	}
	return cmp.Or(waits, add(t, shape))
}

// function does a part, has two tasks done, does another part, waits for a signal, and does the last
// one. What it did is remembered when its attempt fails, and when it waits.
func (h *hands) function(ctx context.Context, t worker.Task) error {
	if err := h.once(ctx, t, "begin"); err != nil {
		return err
	}
	if _, err := t.Call(ctx, "pages", client.Task{Payload: []byte("page 1")}, client.Task{Payload: []byte("page 2")}); err != nil {
		return err
	}
	if err := h.once(ctx, t, "middle"); err != nil {
		return err
	}
	if _, err := t.Await(ctx, "go", 0); err != nil {
		return err
	}
	return h.once(ctx, t, "end")
}

// add adds to the workflow what its shape asks for.
func add(t worker.Task, shape string) error {
	switch more := plan.GrownBy(t.Step.Name); {
	case t.Step.Undo:
	case shape == plan.Growing && len(more) > 0:
		return t.Grow(stepsOf(more)...)
	case shape == plan.Circling && t.Step.Name == "s1" && t.Step.Starts < plan.Rounds:
		return t.Again(fmt.Append(nil, "round ", t.Step.Starts))
	}
	return nil
}

// link works at a task of a chain and has its ack enqueue the next: in the same shard, where its
// id says, or in another topic. What is enqueued names the hold, so that each ack enqueues another.
func (h *hands) link(ctx context.Context, t worker.Task) error {
	if err := h.spend(ctx, max(time.Duration(plan.Draw(h.c.Seed, t.ID, "work"))%max(h.c.Work, 1), time.Until(time.Unix(0, h.hung.Load())))); err != nil {
		return err
	}
	if err := h.fail(t, h.c.Mix.FateOf(h.c.Seed, t.ID)); err != nil {
		return err
	}
	chain, number := string(t.Payload), 1
	if head, rest, ok := strings.Cut(chain, " "); ok {
		chain = head
		if _, err := fmt.Sscan(rest, &number); err != nil {
			return err
		}
	}
	if number >= plan.Chained {
		return nil
	}
	number++
	hold := hex.EncodeToString(t.HoldToken)
	next := client.Task{Topic: t.Topic, Payload: fmt.Append(nil, chain, " ", number, " ", hold)}
	switch {
	case number == plan.Chained:
		next.Topic, next.ID = plan.Next, chain+"-"+hold
	case number%2 == 0:
		next.ID = fmt.Sprint(chain, "-", number, "-", hold)
	}
	return t.Enqueue(next)
}

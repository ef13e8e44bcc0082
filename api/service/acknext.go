package service

import (
	"context"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

const (
	maxNext      = 100
	maxNextBytes = 1 << 20
)

// Next is what comes next by an ack: tasks that it enqueues, and what it adds to the workflow
// that its task is a step of.
type Next struct {
	Tasks []NewTask
	Grow  *graph.Growth // nil: nothing
}

// Nexts are what comes next by acks, by the position of the ack among the settlements that they
// come with. nil: nothing does.
type Nexts map[int]Next

// complete checks what comes next by acks of a topic, and gives the tasks their ids and times. An
// ack of which a task or a step would be refused is refused, and one whose topic has too many on
// their way; a topic that takes no tasks now refuses none.
func (n Nexts) complete(ctx context.Context, tasks *Tasks, topic string, settlements []subscription.Settlement) {
	ctx = tenants.Settling(ctx)
	for i, asked := range n {
		a := &settlements[i]
		if a.Refused == nil && asked.Grow != nil {
			a.Say, a.Refused = tasks.say(ctx, topic, a.ID, asked.Grow)
		}
		if a.Refused == nil && len(asked.Tasks) > 0 {
			a.Next, a.Refused = tasks.complete(ctx, topic, asked.Tasks)
		}
	}
}

// say is what the ack of a task tells its workflow. Only the tasks of steps have one to tell: others
// may have a cell that is told of their end, and would not hear it.
func (s *Tasks) say(ctx context.Context, topic, id string, g *graph.Growth) ([]byte, *problem.Error) {
	ref, err := s.node.Topics().Open(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	if err := s.grows(ctx, topic, id, g); err != nil {
		return nil, err
	}
	return workflows.Say(stepTasks{scheduleTasks{s}}, ref.Config(), workflows.OpenerOf(ctx, s.node, true), g)
}

// grows refuses growth by a task that cannot have any, or not this. Growth that suspends its step gets
// the journal of the task, to which nothing comes any more: its handler has returned.
func (s *Tasks) grows(ctx context.Context, topic, id string, g *graph.Growth) *problem.Error {
	if g.IsEmpty() && !g.Suspend {
		return nil
	}
	held, err := s.look.find(ctx, topic, id)
	switch {
	case err != nil && err.Kind == problem.NotFound: // so is its hold: the ack says that
		return nil
	case err != nil:
		return err
	case held.StepOf == nil && held.State.Live():
		return problem.NoStep(id)
	case held.StepOf == nil:
		return nil
	case g.Again != nil && held.StepOf.Topic != "": // who may begin it here is not asked there
		return problem.BadField("grow.again", "BAD_GRAPH", "grow.again is for steps in the topic of their workflow, which is %q", held.StepOf.Topic)
	case !g.Suspend:
		return workflows.GrowsAnew(held.StepOf, g)
	}
	if err := s.look.addJournal(ctx, &held); err != nil {
		return problem.FromStore(err)
	}
	if len(held.Journal) > store.MaxJournalNames {
		full := problem.JournalFull(id)
		full.Field = "grow.suspend"
		return full
	}
	g.Carry(held.Journal)
	return workflows.GrowsAnew(held.StepOf, g)
}

func (s *Tasks) complete(ctx context.Context, topic string, asked []NewTask) (*subscription.Next, *problem.Error) {
	next := &subscription.Next{Tasks: make([]subscription.NextTask, len(asked))}
	for i := range asked {
		next.Bytes += len(asked[i].Task.Payload)
	}
	switch {
	case len(asked) > maxNext:
		return nil, problem.BadField("enqueue", "BATCH_SIZE", "an ack enqueues %d tasks; at most %d are allowed", len(asked), maxNext)
	case next.Bytes > maxNextBytes:
		return nil, problem.BadField("enqueue", "BATCH_SIZE", "an ack enqueues %d bytes of payload; at most %d are allowed", next.Bytes, maxNextBytes)
	}
	ref, err := s.node.Topics().Open(ctx, topic, false)
	if err != nil {
		return nil, err
	}
	from, parcels := ref.Config(), 0
	r := &router{node: s.node, limits: s.limits, now: s.node.Clock().Now(), latest: s.node.Clock().Latest(), digest: xxhash.New()}
	for i := range asked {
		t := &asked[i]
		anyID := t.Task.ID == "" && t.Task.Key == nil && t.Task.Traits.Ordering() == "" && t.Topic == topic
		if err := r.complete(ctx, t); err != nil {
			return nil, InEnqueue(i, err)
		}
		next.Tasks[i] = subscription.NextTask{Topic: t.Topic, Task: t.Task, AnyID: anyID}
		if !anyID || from.EnqueuePaused || from.MaxBacklog > 0 {
			parcels++
		}
	}
	s.countTracesCut(asked)
	if parcels == 0 {
		return next, nil
	}
	return next, s.outbox.take(ctx, from, parcels)
}

// InEnqueue names the task of an ack of which an error is.
func InEnqueue(i int, err *problem.Error) *problem.Error {
	in := *err
	in.Field = strings.TrimSuffix(fmt.Sprintf("enqueue[%d].%s", i, err.Field), ".")
	return &in
}

// complete checks a task, and gives it its id and times.
func (r *router) complete(ctx context.Context, t *NewTask) *problem.Error {
	if err := r.limits.checkTask(t); err != nil {
		return err
	}
	ref, err := r.node.Topics().Open(ctx, t.Topic, true)
	if err != nil {
		return err
	}
	topic := ref.Config()
	if err := t.checkBounds(topic, store.Millis(r.now.UnixMilli())); err != nil {
		return err
	}
	return r.setTimes(t, topic)
}

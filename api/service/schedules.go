package service

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// scheduleTasks is what schedules have done for their tasks.
type scheduleTasks struct{ tasks *Tasks }

func (s scheduleTasks) Check(t *store.Task, expireAfter time.Duration) *problem.Error {
	return s.tasks.limits.checkContents(t, expireAfter)
}

func (s scheduleTasks) CheckFlow(at string, d *graph.Definition, home string, id int) *problem.Error {
	return workflows.CheckRun(s, at, d, home, id)
}

func (s scheduleTasks) FitsFlow(ctx context.Context, at string, d *graph.Definition, home *store.Topic, create bool) *problem.Error {
	return workflows.FitsRun(at, d, home, workflows.OpenerOf(ctx, s.tasks.node, create))
}

func (s scheduleTasks) Cancel(ctx context.Context, topic *actors.Topic, id string) *problem.Error {
	_, err := s.tasks.requestCancel(ctx, topic, id, true, true)
	return err
}

func (s scheduleTasks) Discard(ctx context.Context, topic *store.Topic, home store.Shard, ids []string) ([]string, *problem.Error) {
	requeued, err := access.Discard(ctx, s.tasks.store, topic, home, ids)
	return requeued, problem.FromStore(err)
}

func (s scheduleTasks) Outbox(ctx context.Context, topic *store.Topic) *problem.Error {
	return s.tasks.outbox.take(ctx, topic, 1)
}

func (s scheduleTasks) Admit() schedules.Admission { return &admission{node: s.tasks.node} }

func (s scheduleTasks) AdmitSchedule(ctx context.Context, topic string) (leave func(), err *problem.Error) {
	return s.tasks.tenants.AdmitSchedule(ctx, topic, schedules.List)
}

func (s scheduleTasks) Smooth(topic *actors.Topic, earliest, latest store.Millis) store.Millis {
	return intakeOf(topic).Smooth.Place(earliest, latest, s.tasks.node.Random())
}

// stepTasks is what workflows have done for the tasks of their steps.
type stepTasks struct{ scheduleTasks }

func (s stepTasks) Enter(ctx context.Context, topic *store.Topic) (leave func(), err *problem.Error) {
	a := &admission{node: s.tasks.node}
	return a.Leave, a.Enter(ctx, topic)
}

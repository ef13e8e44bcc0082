package service

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
)

// scheduleTasks is what schedules have done for their tasks.
type scheduleTasks struct{ tasks *Tasks }

func (s scheduleTasks) Check(t *store.Task, expireAfter time.Duration) *problem.Error {
	return s.tasks.limits.checkContents(t, expireAfter)
}

func (s scheduleTasks) Cancel(ctx context.Context, topic *actors.Topic, id string) *problem.Error {
	_, err := s.tasks.requestCancel(ctx, topic, id, true)
	return err
}

func (s scheduleTasks) Admit() schedules.Admission { return &admission{node: s.tasks.node} }

func (s scheduleTasks) Smooth(topic *actors.Topic, earliest, latest store.Millis) store.Millis {
	return intakeOf(topic).Smooth.Place(earliest, latest, s.tasks.node.Random())
}

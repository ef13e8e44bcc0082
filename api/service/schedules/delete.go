package schedules

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
)

// Deletion says what becomes of a schedule that is deleted.
type Deletion struct {
	CancelRuns bool  // those that are open
	IfVersion  int64 // that it must have; 0: any
}

// Delete deletes a schedule and returns its topic.
func (s *Schedules) Delete(ctx context.Context, topic, name string, d Deletion) (foundIn string, err error) {
	at, out, e := s.change(ctx, topic, name, func(at *located) (schedule.Event, *problem.Error) {
		if d.IfVersion != 0 && d.IfVersion != versionOf(at.Schedule) {
			return nil, versionMismatch(at.Schedule)
		}
		return schedule.Delete{CancelOpen: d.CancelRuns}, nil
	})
	if e != nil {
		return "", e
	}
	s.cancel(ctx, at.topic.Name, out.Cancel)
	return at.topic.Name, nil
}

// cancel tells the workers of runs that the store has marked as to be ended. One that it
// does not reach learns it when it extends its hold.
func (s *Schedules) cancel(ctx context.Context, topic string, ids []string) {
	if len(ids) == 0 {
		return
	}
	ref, err := s.node.Topics().Open(ctx, topic, false)
	if err != nil {
		return
	}
	for _, id := range ids {
		if err := s.tasks.Cancel(ctx, ref, id); err != nil && err.Kind != problem.NotFound {
			s.node.Log().Warn("run of a deleted schedule not cancelled", "topic", topic, "task", id, "err", err)
		}
	}
}

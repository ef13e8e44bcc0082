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
	at, _, e := s.change(ctx, topic, name, func(at *located) (schedule.Event, *problem.Error) {
		if d.IfVersion != 0 && d.IfVersion != versionOf(at.Schedule) {
			return nil, versionMismatch(at.Schedule)
		}
		return schedule.Delete{CancelOpen: d.CancelRuns}, nil
	})
	if e != nil {
		return "", e
	}
	return at.topic.Name, nil
}

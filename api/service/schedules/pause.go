package schedules

import (
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
)

// Pause stops a schedule from making runs. One that is paused stays as it is.
func (s *Schedules) Pause(ctx context.Context, topic, name, by, note string) (Status, error) {
	return s.turn(ctx, topic, name, by, note, func(at *located) schedule.Event {
		if at.Phase != schedule.Active {
			return nil
		}
		return schedule.Pause{By: by, Note: note}
	})
}

// Resume lets a paused schedule go on. One that is active stays as it is.
func (s *Schedules) Resume(ctx context.Context, topic, name, by, note string) (Status, error) {
	return s.turn(ctx, topic, name, by, note, func(at *located) schedule.Event {
		if at.Phase != schedule.Paused {
			return nil
		}
		return schedule.Resume{By: by, Note: note}
	})
}

func (s *Schedules) turn(ctx context.Context, topic, name, by, note string, what func(*located) schedule.Event) (Status, error) {
	if err := checkNote("by", by, maxName); err != nil {
		return Status{}, err
	}
	if err := checkNote("note", note, maxNote); err != nil {
		return Status{}, err
	}
	at, _, err := s.change(ctx, topic, name, func(at *located) (schedule.Event, *problem.Error) {
		if at.Phase == schedule.Finished {
			return nil, errFinished(at.Name)
		}
		return what(at), nil
	})
	if err != nil {
		return Status{}, err
	}
	return s.status(ctx, at), nil
}

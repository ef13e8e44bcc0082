package schedules

import (
	"context"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
)

// Trigger asks for a run outside the timetable.
type Trigger struct {
	Topic, Name string           // an empty topic: every topic is searched
	Overlap     schedule.Overlap // 0: the schedule's
	Request     string           // the same again makes no second run; empty: it is not repeated
}

// Triggered is what a trigger made.
type Triggered struct {
	Topic    string
	ID       string // of the task or the workflow; empty: it waits, or is a repeat whose run is over
	Waiting  bool
	Repeated bool
}

// Trigger makes a run of a schedule now.
func (s *Schedules) Trigger(ctx context.Context, t Trigger) (Triggered, error) {
	if t.Overlap > schedule.Allow {
		return Triggered{}, problem.BadField("overlap", "BAD_ENUM", "overlap has no value %d", t.Overlap)
	}
	if err := checkNote("request_id", t.Request, maxName); err != nil {
		return Triggered{}, err
	}
	if t.Request == "" {
		t.Request = uuid.NewString()
	}
	admission := s.tasks.Admit()
	defer admission.Leave()
	repeated := false
	at, out, err := s.change(ctx, t.Topic, t.Name, func(at *located) (schedule.Event, *problem.Error) {
		if repeated = knows(at.Requests, t.Request); repeated {
			return nil, nil
		}
		if err := s.admit(ctx, admission, at); err != nil {
			return nil, err
		}
		overlap := t.Overlap
		if overlap == 0 {
			overlap = at.Overlap
		}
		return schedule.Trigger{Request: t.Request, Overlap: overlap}, nil
	})
	if err != nil {
		return Triggered{}, err
	}
	made := Triggered{Topic: at.topic.Name, Repeated: repeated}
	made.ID, made.Waiting = triggered(at.Schedule, &out, t.Request)
	return made, nil
}

// admit refuses runs of a schedule that is over, and of a topic that takes no task.
func (s *Schedules) admit(ctx context.Context, admission Admission, at *located) *problem.Error {
	switch {
	case at.Phase == schedule.Finished:
		return errFinished(at.Name)
	case at.topic.EnqueuePaused:
		return problem.EnqueuePaused(at.topic.Name)
	}
	return admission.Enter(ctx, at.topic)
}

func knows(list []string, id string) bool {
	for _, known := range list {
		if known == id {
			return true
		}
	}
	return false
}

// triggered finds the run of a request, or that it waits.
func triggered(s *schedule.Schedule, out *schedule.Effects, request string) (id string, waiting bool) {
	n := schedule.NumberOf(request)
	is := func(o schedule.Occurrence) bool { return o.Origin == schedule.ByTrigger && o.N == n }
	for _, m := range out.Make {
		if is(m.Occurrence) {
			return s.RunID(m.Run), false
		}
	}
	for _, r := range s.Open {
		if is(r.Occurrence) {
			return s.RunID(r), false
		}
	}
	for _, o := range s.Waiting {
		if is(o) {
			return "", true
		}
	}
	return "", false
}

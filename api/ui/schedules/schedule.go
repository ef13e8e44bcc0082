package schedules

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// occurrencesShown is how many runs to come a page has.
const occurrencesShown = 10

// schedulePage is a schedule: when it runs next, and what became of its runs.
type schedulePage struct {
	*ddqv1.GetScheduleResponse
	Now     time.Time
	Next    []*ddqv1.PreviewedOccurrence
	History []*ddqv1.ScheduleRun // the newest first
	May     frame.May
}

func (s *section) schedule(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	name, err := frame.Required(query, "name")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	got, err := s.schedules.GetSchedule(ctx, &ddqv1.GetScheduleRequest{Topic: topic, Name: name})
	if err != nil {
		return frame.View{}, err
	}
	p := schedulePage{GetScheduleResponse: got, Now: now, History: slices.Clone(got.GetStatus().GetHistory()), May: frame.Who(ctx).On(topic)}
	slices.Reverse(p.History)
	next, err := s.schedules.PreviewSchedule(ctx, &ddqv1.PreviewScheduleRequest{
		Of: &ddqv1.PreviewScheduleRequest_Existing{Existing: &ddqv1.ScheduleName{Topic: topic, Name: name}}, Count: occurrencesShown,
	})
	if err != nil {
		return frame.View{}, err
	}
	p.Next = next.GetOccurrences()
	return frame.View{Title: "Schedule " + frame.Cut(name), Page: "schedules", Live: true, Body: p.body()}, nil
}

// onSchedule is an action whose form is about a schedule.
func onSchedule(form url.Values, did string, do func(topic, name string) error) (string, string, error) {
	topic, err := frame.Required(form, "topic")
	if err != nil {
		return "", "", err
	}
	name, err := frame.Required(form, "name")
	if err != nil {
		return "", "", err
	}
	return frame.Link("schedule", "topic", topic, "name", name), did, do(topic, name)
}

func (s *section) pauseSchedule(ctx context.Context, form url.Values) (string, string, error) {
	return onSchedule(form, "paused", func(topic, name string) error {
		_, err := s.schedules.PauseSchedule(ctx, &ddqv1.PauseScheduleRequest{Topic: topic, Name: name, By: frame.Who(ctx).Name, Note: form.Get("note")})
		return err
	})
}

func (s *section) resumeSchedule(ctx context.Context, form url.Values) (string, string, error) {
	return onSchedule(form, "resumed", func(topic, name string) error {
		_, err := s.schedules.ResumeSchedule(ctx, &ddqv1.ResumeScheduleRequest{Topic: topic, Name: name, By: frame.Who(ctx).Name, Note: form.Get("note")})
		return err
	})
}

func (s *section) triggerSchedule(ctx context.Context, form url.Values) (string, string, error) {
	return onSchedule(form, "triggered", func(topic, name string) error {
		_, err := s.schedules.TriggerSchedule(ctx, &ddqv1.TriggerScheduleRequest{Topic: topic, Name: name, RequestId: form.Get("request")})
		return err
	})
}

// deleteSchedule leads to the schedules of the topic.
func (s *section) deleteSchedule(ctx context.Context, form url.Values) (string, string, error) {
	_, did, err := onSchedule(form, "deleted", func(topic, name string) error {
		_, err := s.schedules.DeleteSchedule(ctx, &ddqv1.DeleteScheduleRequest{Topic: topic, Name: name})
		return err
	})
	return frame.Link("schedules", "topic", form.Get("topic")), did, err
}

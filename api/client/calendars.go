package client

import (
	"context"
	"iter"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Calendar is a named set of local times that schedules leave out, by the clock of each
// schedule's zone. All topics share the calendars.
type Calendar struct {
	Name     string         `json:"name"`
	Days     []string       `json:"days,omitempty"`     // whole days, such as 2030-12-25
	Yearly   []string       `json:"yearly,omitempty"`   // whole days of each year, such as 12-25
	Weekdays []string       `json:"weekdays,omitempty"` // MON, TUE, WED, THU, FRI, SAT, SUN
	Spans    []CalendarSpan `json:"spans,omitempty"`
	Version  int64          `json:"version"` // rises with every change; PutCalendar does not look at it
}

// CalendarSpan is a part of a day, or many days: local times such as 2030-12-24T12:00:00. The
// end is not part of it.
type CalendarSpan struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Calendars are the calls about calendars. A Client has them.
type Calendars struct {
	*caller
	schedules ddqv1.ScheduleServiceClient
}

// PutCalendar creates a calendar, or changes it. All nodes know it within two seconds. It
// counts when a run is made, which is five seconds ahead of its time.
func (c *Calendars) PutCalendar(ctx context.Context, calendar Calendar) (put SchedulePut, err error) {
	w := &ddqv1.Calendar{Name: calendar.Name, Days: calendar.Days, Yearly: calendar.Yearly, Weekdays: calendar.Weekdays}
	for _, s := range calendar.Spans {
		w.Spans = append(w.Spans, &ddqv1.CalendarSpan{From: s.From, To: s.To})
	}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.PutCalendar, &ddqv1.PutCalendarRequest{Calendar: w})
	return SchedulePut{Version: reply.GetVersion(), Outcome: PutOutcome(reply.GetOutcome())}, err
}

// GetCalendar returns a calendar.
func (c *Calendars) GetCalendar(ctx context.Context, name string) (calendar Calendar, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.GetCalendar, &ddqv1.GetCalendarRequest{Name: name})
	return calendarFrom(reply.GetCalendar()), err
}

// ListCalendars goes through the calendars by name. The sequence ends with the first error.
func (c *Calendars) ListCalendars(ctx context.Context) iter.Seq2[Calendar, error] {
	return call.Pages(func(token string) ([]Calendar, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.ListCalendars, &ddqv1.ListCalendarsRequest{PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetCalendars(), calendarFrom), reply.GetNextPageToken(), err
	})
}

// DeleteCalendar deletes a calendar. ErrPrecondition while a schedule names it.
func (c *Calendars) DeleteCalendar(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.schedules.DeleteCalendar, &ddqv1.DeleteCalendarRequest{Name: name})
	return err
}

func calendarFrom(w *ddqv1.Calendar) Calendar {
	c := Calendar{Name: w.GetName(), Days: w.GetDays(), Yearly: w.GetYearly(), Weekdays: w.GetWeekdays(), Version: w.GetVersion()}
	for _, s := range w.GetSpans() {
		c.Spans = append(c.Spans, CalendarSpan{From: s.GetFrom(), To: s.GetTo()})
	}
	return c
}

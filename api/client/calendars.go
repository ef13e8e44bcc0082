package client

import (
	"context"
	"iter"

	"github.com/ddq-io/ddq/api/client/calendars"
	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Calendar is a named set of local times that schedules leave out.
type Calendar = calendars.Calendar

// CalendarSpan is a part of a day, or many days, of a calendar.
type CalendarSpan = calendars.Span

// Calendars are the calls about calendars. A Client has them.
type Calendars struct {
	*caller
	schedules ddqv1.ScheduleServiceClient
}

// PutCalendar creates a calendar, or changes it. All nodes know it within two seconds. It
// counts when a run is made, which is five seconds ahead of its time.
func (c *Calendars) PutCalendar(ctx context.Context, calendar Calendar) (put SchedulePut, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.PutCalendar, &ddqv1.PutCalendarRequest{Calendar: calendar.Wire()})
	return SchedulePut{Version: reply.GetVersion(), Outcome: PutOutcome(reply.GetOutcome())}, err
}

// GetCalendar returns a calendar.
func (c *Calendars) GetCalendar(ctx context.Context, name string) (calendar Calendar, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.GetCalendar, &ddqv1.GetCalendarRequest{Name: name})
	return calendars.From(reply.GetCalendar()), err
}

// ListCalendars goes through the calendars by name. The sequence ends with the first error.
func (c *Calendars) ListCalendars(ctx context.Context) iter.Seq2[Calendar, error] {
	return call.Pages(func(token string) ([]Calendar, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.ListCalendars, &ddqv1.ListCalendarsRequest{PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetCalendars(), calendars.From), reply.GetNextPageToken(), err
	})
}

// DeleteCalendar deletes a calendar. ErrPrecondition while a schedule names it.
func (c *Calendars) DeleteCalendar(ctx context.Context, name string) error {
	_, err := call.Answer(ctx, c.do, call.Once, c.schedules.DeleteCalendar, &ddqv1.DeleteCalendarRequest{Name: name})
	return err
}

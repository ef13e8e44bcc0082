package server

import (
	"context"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/calendars"
	"github.com/ddq-io/ddq/api/wire"
)

func (s *scheduleServer) PutCalendar(ctx context.Context, r *ddqv1.PutCalendarRequest) (*ddqv1.PutCalendarResponse, error) {
	c, e := calendars.Of(r.GetCalendar())
	if e != nil {
		return nil, e
	}
	put, err := s.service.Calendars.Put(ctx, c, r.IfVersion)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PutCalendarResponse{Version: put.Version, Outcome: wire.Enum(putToWire[:], put.Outcome)}, nil
}

func (s *scheduleServer) GetCalendar(ctx context.Context, r *ddqv1.GetCalendarRequest) (*ddqv1.GetCalendarResponse, error) {
	c, err := s.service.Calendars.Get(ctx, r.GetName())
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetCalendarResponse{Calendar: calendars.Wire(&c)}, nil
}

func (s *scheduleServer) ListCalendars(ctx context.Context, r *ddqv1.ListCalendarsRequest) (*ddqv1.ListCalendarsResponse, error) {
	size, e := pageSize(r.GetPageSize())
	if e != nil {
		return nil, e
	}
	all, next, err := s.service.Calendars.List(ctx, size, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListCalendarsResponse{NextPageToken: next}
	for i := range all {
		out.Calendars = append(out.Calendars, calendars.Wire(&all[i]))
	}
	return out, nil
}

func (s *scheduleServer) DeleteCalendar(ctx context.Context, r *ddqv1.DeleteCalendarRequest) (*ddqv1.DeleteCalendarResponse, error) {
	if err := s.service.Calendars.Delete(ctx, r.GetName()); err != nil {
		return nil, err
	}
	return &ddqv1.DeleteCalendarResponse{}, nil
}

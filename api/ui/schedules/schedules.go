package schedules

import (
	"context"
	"net/url"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// schedulesPage is a page of schedules, of one topic or of all.
type schedulesPage struct {
	Topic     string
	Now       time.Time
	Schedules []*ddqv1.GetScheduleResponse
	Next      string
}

func (s *section) scheduleList(ctx context.Context, query url.Values) (frame.View, error) {
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	list, err := s.schedules.ListSchedules(ctx, &ddqv1.ListSchedulesRequest{Topic: query.Get("topic"), PageSize: frame.PageSize, PageToken: query.Get("page")})
	if err != nil {
		return frame.View{}, err
	}
	return frame.View{Title: "Schedules", Page: "schedules", Live: true, Body: schedulesPage{query.Get("topic"), now, list.GetSchedules(), list.GetNextPageToken()}}, nil
}

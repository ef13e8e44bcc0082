package schedules

import (
	"context"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/coming"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// schedulesPage is a page of schedules, of one topic or of all.
type schedulesPage struct {
	Topic     string
	Now       time.Time
	Schedules []*ddqv1.GetScheduleResponse
	Next      string
	Day       *coming.Forecast
	May       bool // make some
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
	p := schedulesPage{query.Get("topic"), now, list.GetSchedules(), list.GetNextPageToken(), s.forecasts.Day(ctx, query.Get("topic"), now), editor(ctx, query.Get("topic")) == nil}
	return frame.View{Title: "Schedules", Page: "schedules", Live: true, Body: p.body()}, nil
}

func (p *schedulesPage) body() g.Node {
	return g.Group{
		g.If(p.Topic != "", h.P(g.Text("Of "), frame.Anchor("topic "+frame.Cut(p.Topic), "topic", "name", p.Topic), g.Text("; "), frame.Anchor("all", "schedules"),
			g.Text("; "), frame.Anchor("what they would make", "dryrun", "topic", p.Topic))),
		g.If(p.May, h.P(frame.Anchor("Make a schedule", "schedule/new", "topic", p.Topic))),
		p.table(),
		p.Day.Missing(),
		p.Day.Lanes(),
	}
}

func (p *schedulesPage) table() g.Node {
	if len(p.Schedules) == 0 {
		return g.Group{
			h.P(g.Text("There are no schedules"), frame.LookOn(p.Next, "schedules", "topic", p.Topic), g.Text(". This makes one:")),
			h.Pre(g.Text("ddq schedule put nightly --topic report --cron '30 2 * * *' --zone Europe/Berlin --payload go")),
		}
	}
	heads := g.Group{frame.Heads("schedule", "topic", "state", "when", "next", "last"), frame.NumberHeads("open runs")}
	return g.Group{
		frame.Table("Schedules", "Schedules, in no particular order", heads, g.Map(p.Schedules, p.row)),
		frame.More(p.Next, "schedules", "topic", p.Topic),
	}
}

func (p *schedulesPage) row(r *ddqv1.GetScheduleResponse) g.Node {
	s, how := r.GetSchedule(), r.GetStatus()
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(s.GetName()), "schedule", "topic", s.GetTopic(), "name", s.GetName())),
		h.Td(frame.Anchor(frame.Cut(s.GetTopic()), "topic", "name", s.GetTopic())),
		frame.Cells(stateText(how)),
		h.Td(when(s.GetTimetable())),
		h.Td(frame.Time(how.GetNextTime(), p.Now)),
		h.Td(frame.Time(how.GetLastTime(), p.Now)),
		frame.Digits(len(how.GetOpenRuns())),
	)
}

// stateText is the state of a schedule, and who paused it.
func stateText(how *ddqv1.ScheduleStatus) string {
	text := frame.StateText(how.GetState())
	if by := how.GetPausedBy(); by != "" {
		text += " by " + frame.Cut(by)
	}
	return text
}

// when is a timetable in a line.
func when(t *ddqv1.Timetable) g.Node {
	var all g.Group
	for i, e := range t.GetEntries() {
		if i > 0 {
			all = append(all, g.Text("; "))
		}
		if cron := e.GetCron(); cron != "" {
			all = append(all, h.Code(g.Text(frame.Cut(cron))))
		}
		if every := e.GetEvery(); every != nil {
			all = append(all, g.Text("every "+frame.SpanText(every.GetEveryMs())))
		}
		if at := e.GetAt(); at != nil {
			all = append(all, g.Textf("%d times", len(at.GetTimes())))
		}
	}
	if zone := t.GetZone(); zone != "" {
		all = append(all, g.Text(" "), frame.Quiet(frame.Cut(zone)))
	}
	return all
}

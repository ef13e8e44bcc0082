package schedules

import (
	"context"
	"net/url"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

const (
	longestDryRun = 31 * 24 * time.Hour
	usualDryRun   = 24 * time.Hour
)

// dryRunPage is a page of the runs that schedules of a topic would make.
type dryRunPage struct {
	topic, name string
	from, to    string // as they were written, or what is meant without
	wrong       frame.Mistakes
	now         time.Time
	runs        []*ddqv1.PlannedRun
	next        string
}

func (s *section) dryRun(ctx context.Context, query url.Values) (frame.View, error) {
	topic, err := frame.Required(query, "topic")
	if err != nil {
		return frame.View{}, err
	}
	_, now, err := frame.Server(ctx, s.admin)
	if err != nil {
		return frame.View{}, err
	}
	p := dryRunPage{topic: topic, name: query.Get("name"), from: query.Get("from"), to: query.Get("to"), wrong: frame.Mistakes{}, now: now}
	if r := p.request(query.Get("page")); r != nil {
		got, err := s.schedules.DryRun(ctx, r)
		if err != nil && !p.wrong.Take(err, map[string]string{"name": "name", "to": "to"}) {
			return frame.View{}, err
		}
		p.runs, p.next = got.GetRuns(), got.GetNextPageToken()
	}
	return frame.View{Title: "Dry run of " + frame.Cut(topic), Page: "schedules", Code: p.wrong.Code(), Body: p.body()}, nil
}

// request is the call for a page of the range; nil when the range is wrong.
func (p *dryRunPage) request(page string) *ddqv1.DryRunRequest {
	at := func(name string, text *string, usual time.Time) time.Time {
		if *text == "" {
			*text = millisText(usual)
			return usual
		}
		return time.UnixMilli(p.wrong.Instant(name, *text))
	}
	from := at("from", &p.from, p.now.Truncate(time.Second))
	to := at("to", &p.to, from.Add(usualDryRun))
	switch {
	case len(p.wrong) > 0:
	case !to.After(from):
		p.wrong.Add("to", "This is not after where the range begins.")
	case to.Sub(from) > longestDryRun:
		p.wrong.Add("to", "A range has 31 days at the most.")
	}
	if len(p.wrong) > 0 {
		return nil
	}
	return &ddqv1.DryRunRequest{Topic: p.topic, Name: p.name, From: timestamppb.New(from), To: timestamppb.New(to), PageSize: frame.PageSize, PageToken: page}
}

func (p *dryRunPage) body() g.Node {
	instant := func(label, name, value string) g.Node {
		return p.wrong.Input(label, name, h.Type("datetime-local"), h.Step("1"), h.Value(value))
	}
	return g.Group{
		h.P(frame.OfTopic(p.topic), g.Text(" · "), frame.Anchor("its schedules", "schedules", "topic", p.topic)),
		h.P(g.Text("What its schedules would make, with the ids of the tasks, when each run ends as soon as it is due and nothing is edited. Nothing is stored.")),
		frame.Filter("dryrun", frame.Hidden("topic", p.topic), p.wrong.Input("Schedule", "name", h.Value(p.name), h.Placeholder("all"), h.MaxLength("128"), frame.AsTyped()),
			instant("From (UTC)", "from", p.from), instant("Before (UTC)", "to", p.to)),
		g.Iff(len(p.wrong) == 0, p.table),
	}
}

func (p *dryRunPage) table() g.Node {
	pairs := []string{"topic", p.topic, "name", p.name, "from", p.from, "to", p.to}
	if len(p.runs) == 0 {
		return frame.None(p.next, "dryrun", pairs...)
	}
	return g.Group{
		frame.Table("Runs", "Runs, schedule by schedule", frame.Heads("schedule", "occurrence", "due", "id", "makes"), g.Map(p.runs, p.row)),
		frame.More(p.next, "dryrun", pairs...),
	}
}

func (p *dryRunPage) row(r *ddqv1.PlannedRun) g.Node {
	makes := "a task"
	if r.GetAudience() {
		makes = "a task for each recipient"
	}
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(r.GetSchedule()), "schedule", "topic", p.topic, "name", r.GetSchedule())),
		h.Td(frame.Exact(r.GetOccurrenceTime())), h.Td(frame.Exact(r.GetDue())), h.Td(h.Code(g.Text(frame.Cut(r.GetId())))), frame.Cells(makes),
	)
}

package schedules

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

const (
	mostBackfilled = 10_000 // occurrences of a range
	previewPage    = 1000   // occurrences of a call
)

// backfillOverlaps are those of a backfill.
var backfillOverlaps = []ddqv1.Overlap{ddqv1.Overlap_OVERLAP_BUFFER_ALL, ddqv1.Overlap_OVERLAP_ALLOW}

// backfillPage says how many runs a range has, before they are made.
type backfillPage struct {
	topic, name string
	query       url.Values // as it was written
	wrong       frame.Mistakes
	from, to    time.Time
	overlap     ddqv1.Overlap
	now         time.Time
	counted     bool
	runs, out   int // occurrences, and how many of them calendars leave out
	first       []*ddqv1.PreviewedOccurrence
}

func (s *section) backfill(ctx context.Context, query url.Values) (frame.View, error) {
	p := backfillPage{query: query, wrong: frame.Mistakes{}}
	var err error
	if p.topic, err = frame.Required(query, "topic"); err != nil {
		return frame.View{}, err
	}
	if p.name, err = frame.Required(query, "name"); err != nil {
		return frame.View{}, err
	}
	got, err := s.schedules.GetSchedule(ctx, &ddqv1.GetScheduleRequest{Topic: p.topic, Name: p.name})
	if err != nil {
		return frame.View{}, err
	}
	if !frame.Who(ctx).On(p.topic).Operate {
		return frame.View{}, denied("runs of the past are made by who may operate the topic")
	}
	if _, p.now, err = frame.Server(ctx, s.admin); err != nil {
		return frame.View{}, err
	}
	if query.Has("from") && p.read() {
		if err := s.count(ctx, &p, got.GetSchedule()); err != nil && !p.wrong.Take(err, map[string]string{"from": "from", "to": "to"}) {
			return frame.View{}, err
		}
	}
	return frame.View{Title: "Runs of the past of " + frame.Cut(p.name), Page: "schedules", Code: p.wrong.Code(), Body: p.body()}, nil
}

// read reads the range, and reports whether there is one. What is yet to come is left out of it.
func (p *backfillPage) read() bool {
	from, to := p.wrong.Instant("from", p.query.Get("from")), p.wrong.Instant("to", p.query.Get("to"))
	p.overlap, _ = frame.State(p.wrong, "overlap", p.query.Get("overlap"), backfillOverlaps)
	if from == 0 {
		p.wrong.Add("from", "A range has a beginning.")
	}
	p.from, p.to = time.UnixMilli(from), time.UnixMilli(cmp.Or(to, p.now.UnixMilli()))
	if p.to.After(p.now) {
		p.to = p.now
	}
	if p.to.Before(p.from) {
		p.wrong.Add("to", "This is before where the range begins, or the range is yet to come.")
	}
	return len(p.wrong) == 0
}

// count looks at each occurrence of the range.
func (s *section) count(ctx context.Context, p *backfillPage, of *ddqv1.Schedule) error {
	r := &ddqv1.PreviewScheduleRequest{Count: previewPage, To: timestamppb.New(p.to), From: timestamppb.New(p.from.Add(-time.Millisecond))}
	r.Of = &ddqv1.PreviewScheduleRequest_Existing{Existing: &ddqv1.ScheduleName{Topic: p.topic, Name: p.name}}
	if of.GetMaxRuns() > 0 && !of.GetMasked() { // which bounds runs to come only
		all := proto.Clone(of).(*ddqv1.Schedule)
		all.MaxRuns = 0
		r.Of = &ddqv1.PreviewScheduleRequest_Schedule{Schedule: all}
	}
	for p.runs <= mostBackfilled {
		got, err := s.schedules.PreviewSchedule(ctx, r)
		if err != nil {
			return err
		}
		list := got.GetOccurrences()
		p.first = append(p.first, list[:min(len(list), previewed-len(p.first))]...)
		for _, o := range list {
			p.runs++
			if o.GetSkipped() == ddqv1.SkipReason_SKIP_REASON_EXCLUDED {
				p.out++
			}
		}
		if len(list) < previewPage {
			break
		}
		r.From = list[len(list)-1].GetOccurrenceTime()
	}
	if p.runs > mostBackfilled {
		p.wrong.Add("to", "The range has more than "+frame.CountText(mostBackfilled)+" runs, which are the most at a time.")
		return nil
	}
	p.counted = true
	return nil
}

func (p *backfillPage) body() g.Node {
	instant := func(label, name string) g.Node {
		return p.wrong.Input(label, name, h.Type("datetime-local"), h.Step("1"), h.Value(p.query.Get(name)))
	}
	return g.Group{
		h.P(frame.OfTopic(p.topic), g.Text(" · "), frame.Anchor("the schedule", "schedule", "topic", p.topic, "name", p.name)),
		h.P(g.Text("Each time of a range that has been gets a run, due now; also one that had a run before.")),
		h.Form(h.Method("get"), h.Action(frame.Prefix+"schedule/backfill"), h.Class("filter"), frame.Hidden("topic", p.topic, "name", p.name),
			instant("From (UTC)", "from"), instant("To, or until now (UTC)", "to"),
			frame.Choice(p.wrong, "Runs go", "overlap", "as usual: one after the other", backfillOverlaps, p.query.Get("overlap")),
			frame.Button("Count", h.Class("plain"))),
		g.Iff(p.counted, p.ready),
	}
}

// ready is how many runs there would be, with the button that makes them.
func (p *backfillPage) ready() g.Node {
	if p.runs == 0 {
		return h.P(h.Role("status"), g.Text("The range has no time of the schedule."))
	}
	text := "The range has " + runsText(p.runs) + "."
	if p.out > 0 {
		text += " Calendars leave out " + frame.CountText(int64(p.out)) + " of them."
	}
	return g.Group{
		h.P(h.Role("status"), g.Text(text)),
		occurrenceTable(p.first, p.now),
		g.If(p.runs > len(p.first), h.P(h.Class("quiet"), g.Textf("and %s more", frame.CountText(int64(p.runs-len(p.first)))))),
		frame.Post("schedule/backfill/start", frame.Hidden("topic", p.topic, "name", p.name, "from", millisText(p.from), "to", millisText(p.to),
			"overlap", p.query.Get("overlap"), "id", fmt.Sprint("ui-", p.now.UnixMilli())), frame.Button("Make "+runsText(p.runs-p.out))),
	}
}

func runsText(n int) string {
	if n == 1 {
		return "1 run"
	}
	return frame.CountText(int64(n)) + " runs"
}

func millisText(t time.Time) string { return localText(timestamppb.New(t)) }

// startBackfill makes the runs of a range that was counted.
func (s *section) startBackfill(ctx context.Context, form url.Values) (string, string, error) {
	return onSchedule(form, "backfilling", func(topic, name string) error {
		wrong := frame.Mistakes{}
		from, to := wrong.Instant("from", form.Get("from")), wrong.Instant("to", form.Get("to"))
		overlap, _ := frame.State(wrong, "overlap", form.Get("overlap"), backfillOverlaps)
		for _, text := range wrong {
			return invalid("nothing was done: " + text)
		}
		r := &ddqv1.BackfillScheduleRequest{Topic: topic, Name: name, Overlap: overlap, Id: form.Get("id")}
		if from > 0 { // else the server says that it is missing
			r.From = timestamppb.New(time.UnixMilli(from))
		}
		if to > 0 {
			r.To = timestamppb.New(time.UnixMilli(to))
		}
		_, err := s.schedules.BackfillSchedule(ctx, r)
		return err
	})
}

func (s *section) cancelBackfill(ctx context.Context, form url.Values) (string, string, error) {
	return onSchedule(form, "withdrawn", func(topic, name string) error {
		_, err := s.schedules.CancelBackfill(ctx, &ddqv1.CancelBackfillRequest{Topic: topic, Name: name, Id: form.Get("id")})
		return err
	})
}

// backfills are ranges of the past whose runs are being made.
func (p *schedulePage) backfills() g.Node {
	all := p.GetStatus().GetBackfills()
	if len(all) == 0 {
		return nil
	}
	heads := g.Group{frame.Heads("from", "to", "overlap"), frame.NumberHeads("made", "in all"), g.If(p.May.Operate, frame.Heads("actions"))}
	return g.Group{h.H2(g.Text("Runs of the past")), frame.Table("Runs of the past", "", heads, g.Map(all, func(b *ddqv1.Backfill) g.Node {
		return h.Tr(h.Td(frame.Exact(b.GetFrom())), h.Td(frame.Exact(b.GetTo())), frame.Cells(frame.StateText(b.GetOverlap())), frame.Counts(b.GetMade(), b.GetTotal()),
			g.If(p.May.Operate, h.Td(h.Class("acts"), p.form("schedule/backfill/cancel", frame.Hidden("id", b.GetId()), frame.Danger("Make no more", h.Aria("label", "Make no more of "+frame.Cut(b.GetId())))))))
	}))}
}

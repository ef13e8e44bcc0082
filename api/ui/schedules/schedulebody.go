package schedules

import (
	"fmt"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

func (p *schedulePage) body() g.Node {
	s := p.GetSchedule()
	return g.Group{
		h.P(frame.OfTopic(s.GetTopic()), g.Text(" · "), frame.Anchor("its schedules", "schedules", "topic", s.GetTopic())),
		p.figures(),
		g.If(s.GetNote() != "", h.P(h.Class("quiet"), g.Text(frame.Cut(s.GetNote())))),
		g.If(p.May.Operate, p.acts()),
		h.H2(g.Text("When")),
		h.P(when(s.GetTimetable())),
		p.next(),
		p.open(),
		p.backfills(),
		p.history(),
	}
}

func (p *schedulePage) figures() g.Node {
	how := p.GetStatus()
	next := g.Text("none")
	if t := how.GetNextTime(); t != nil {
		next = frame.Time(t, p.Now)
	}
	return frame.Figures(
		frame.Figure("state", g.Text(stateText(how))),
		frame.Figure("next", next),
		frame.Figure("open runs", g.Text(strconv.Itoa(len(how.GetOpenRuns())))),
		frame.Figure("made", g.Text(frame.CountText(how.GetTotals().GetMade()))),
		frame.Figure("failed", g.Text(frame.CountText(how.GetTotals().GetFailed()))),
	)
}

// form is one about the schedule; onSchedule reads it.
func (p *schedulePage) form(path string, inside ...g.Node) g.Node {
	return frame.Post(path, frame.Hidden("topic", p.GetSchedule().GetTopic(), "name", p.GetSchedule().GetName()), g.Group(inside))
}

func (p *schedulePage) acts() g.Node {
	pause := p.form("schedule/pause", frame.Button("Pause", h.Class("plain"), frame.Key("p")))
	if p.GetStatus().GetState() == ddqv1.ScheduleState_SCHEDULE_STATE_PAUSED {
		pause = p.form("schedule/resume", frame.Button("Resume", frame.Key("p")))
	}
	return h.Div(h.Class("acts"),
		p.form("schedule/trigger", frame.Hidden("request", fmt.Sprint("ui-", p.Now.UnixMilli())), frame.Button("Run now")),
		pause,
		g.If(p.May.Enqueue && !p.GetSchedule().GetMasked(), h.A(h.Href(frame.Link("schedule/edit", "topic", p.GetSchedule().GetTopic(), "name", p.GetSchedule().GetName())), frame.Key("e"), g.Text("Edit"))),
		frame.Anchor("Make runs of the past", "schedule/backfill", "topic", p.GetSchedule().GetTopic(), "name", p.GetSchedule().GetName()),
		frame.Fold("Delete", p.form("schedule/delete", frame.Danger("Delete the schedule"))),
	)
}

// next are the runs to come.
func (p *schedulePage) next() g.Node {
	if len(p.Next) == 0 {
		return h.P(g.Text("There is no run to come."))
	}
	rows := g.Map(p.Next, func(o *ddqv1.PreviewedOccurrence) g.Node {
		return h.Tr(h.Td(frame.Time(o.GetOccurrenceTime(), p.Now)), frame.Cells(o.GetLocalTime(), frame.StateText(o.GetSkipped())))
	})
	return h.Table(h.Caption(g.Text("The next runs")), h.THead(h.Tr(frame.Heads("occurrence", "there", "skipped"))), h.TBody(rows))
}

// open are the runs that are not over.
func (p *schedulePage) open() g.Node {
	runs := p.GetStatus().GetOpenRuns()
	if len(runs) == 0 {
		return nil
	}
	return g.Group{h.H2(g.Text("Open runs")), h.Ul(g.Map(runs, func(r *ddqv1.ScheduleRun) g.Node {
		return h.Li(frame.Time(r.GetOccurrenceTime(), p.Now), g.Text(" "),
			g.If(r.GetId() != "", frame.Anchor(frame.Cut(r.GetId()), "task", "topic", p.GetSchedule().GetTopic(), "id", r.GetId())))
	}))}
}

func (p *schedulePage) history() g.Node {
	if len(p.History) == 0 {
		return nil
	}
	heads := g.Group{frame.Heads("occurrence", "by", "outcome"), frame.NumberHeads("times"), frame.Heads("late", "took")}
	return g.Group{h.H2(g.Text("What became of runs")), frame.Table("Runs", "", heads, g.Map(p.History, p.past))}
}

// past is the row of a run that is over.
func (p *schedulePage) past(r *ddqv1.ScheduleRun) g.Node {
	outcome := frame.StateText(r.GetOutcome())
	if why := frame.StateText(r.GetSkipped()); why != "" {
		outcome += "skipped: " + why
	}
	return h.Tr(
		h.Td(frame.Time(r.GetOccurrenceTime(), p.Now)),
		frame.Cells(frame.StateText(r.GetOrigin()), outcome),
		frame.Digits(r.GetCount()),
		frame.Cells(frame.SpanText(r.GetLateMs()), frame.SpanText(r.GetDurationMs())),
	)
}

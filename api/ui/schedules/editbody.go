package schedules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

func (p *editPage) body() g.Node {
	back := h.P(frame.Anchor("Schedules", "schedules", "topic", p.topic))
	if p.version > 0 {
		back = h.P(frame.OfTopic(p.topic), g.Text(" · "), frame.Anchor("the schedule as it is", "schedule", "topic", p.topic, "name", p.name))
	}
	return g.Group{
		back,
		g.If(p.refused != "", frame.Alert(p.refused)),
		g.If(p.text != "", frame.Alert(frame.Cut(p.text))),
		g.Iff(len(p.met) > 0, func() g.Node { return frame.Differences(p.met) }),
		h.Div(h.Class("beside"), p.form(), p.ahead()),
	}
}

func (p *editPage) form() g.Node {
	return frame.Post("schedule/put", h.Class("column"), h.Data("preview", frame.Prefix+"schedule/preview"), frame.Hidden(p.pairs()...),
		g.If(p.version == 0, p.names()),
		p.when(), p.policies(), p.run(), p.keeps(),
		h.Div(h.Class("acts"), frame.Button("Save"), frame.Button("Preview", h.Class("plain"), h.FormAction(frame.Prefix+"schedule/preview"), h.FormNoValidate())))
}

func (p *editPage) names() g.Node {
	return g.Group{
		p.wrong.Input("Topic", "topic", h.Value(p.topic), h.Required(), h.MaxLength("200"), frame.AsTyped()),
		p.wrong.Input("Name", "name", h.Value(p.name), h.Required(), h.MaxLength("128"), frame.AsTyped()),
	}
}

// label is that of a field.
func label(name string) string {
	all := slices.Concat(fields, taskFields, []field{payloadField})
	return all[slices.IndexFunc(all, func(f field) bool { return f.name == name })].label
}

func (p *editPage) input(name string, attributes ...g.Node) g.Node {
	return p.wrong.Input(label(name), name, h.Value(p.wants.Get(name)), g.Group(attributes))
}

func (p *editPage) length(name string) g.Node {
	return p.input(name, h.MaxLength("20"), h.Placeholder("90s, 15m, 36h, 7d"), frame.AsTyped())
}

func (p *editPage) area(name, rows string) g.Node {
	return p.wrong.TextArea(label(name), name, rows, p.wants.Get(name))
}

func (p *editPage) when() g.Node {
	instant := g.Group{h.Type("datetime-local"), h.Step("1")}
	names := "There are no calendars."
	if len(p.calendars) > 0 {
		names = frame.Cut("There are: " + strings.Join(p.calendars, " "))
	}
	return group("When",
		p.area("cron", "2"),
		p.length("every"), frame.Choice(p.wrong, label("from"), "from", "as usual: the start", intervalFroms, p.wants.Get("from")),
		p.area("at", "2"),
		p.input("zone", h.Placeholder("UTC"), h.MaxLength("64"), frame.AsTyped()),
		p.input("start", instant), p.input("end", instant),
		p.input("calendars", h.MaxLength("3000"), frame.AsTyped()), h.P(h.Class("quiet"), g.Text(names)),
		p.length("jitter"))
}

func (p *editPage) policies() g.Node {
	number := g.Group{h.Type("number"), h.Min("0")}
	return group("What becomes of a time",
		frame.Choice(p.wrong, label("overlap"), "overlap", "as usual: skip", overlaps, p.wants.Get("overlap")),
		frame.Choice(p.wrong, label("catch_up"), "catch_up", "as usual: last", catchUps, p.wants.Get("catch_up")),
		p.length("grace"), p.length("within"), p.input("max_runs", number), p.input("failures", number, h.Max("1000")))
}

// run is what a run is, as far as a form can say it.
func (p *editPage) run() g.Node {
	if p.is.GetTask() == nil {
		return group("What a run is", h.P(g.Text("A workflow. Its form is a file: it stays as it is here, and is changed with "), h.Code(g.Text("ddq schedule put --workflow-file")), g.Text(".")))
	}
	payload := p.area("payload", "4")
	if !isText(p.is.GetTask().GetPayload()) {
		payload = h.P(g.Textf("The payload has %s bytes, which are no text or too long for a form: it stays as it is.", frame.CountText(int64(len(p.is.GetTask().GetPayload())))))
	}
	rare := p.wants.Get("audience") != "" || p.wrong["audience"] != "" || p.wrong["kind"] != "" || p.wrong["window"] != ""
	return group("What a run is", payload, h.Details(g.If(rare, g.Attr("open")), h.Summary(g.Text("For an audience")),
		h.Div(h.Class("column"), p.input("audience", h.MaxLength("128"), frame.AsTyped()), p.input("kind", h.MaxLength("64"), frame.AsTyped()), p.length("window"))))
}

// keeps says what stays as it is, since the form has no field for it.
func (p *editPage) keeps() g.Node {
	all := rest(p.is)
	if len(all) == 0 {
		return nil
	}
	return h.P(h.Class("quiet"), g.Text("This has no field here, and stays as it is: "+strings.Join(all, ", ")+"."))
}

func group(name string, inside ...g.Node) g.Node {
	return h.FieldSet(h.Legend(g.Text(name)), g.Group(inside))
}

// ahead is what would become of the draft. The script makes it anew while the form is filled in.
func (p *editPage) ahead() g.Node {
	return h.Section(h.ID("preview"), h.Aria("label", "Preview"), h.H2(g.Text("The next runs")), p.outcome())
}

func (p *editPage) outcome() g.Node {
	switch {
	case p.preview != nil:
		return p.occurrences()
	case len(p.wrong) > 0:
		return g.Group{h.P(h.Role("status"), g.Text("There is no preview: something is missing or wrong.")), h.Ul(g.Map(p.said(), func(text string) g.Node { return h.Li(g.Text(text)) }))}
	case p.text != "":
		return h.P(h.Role("status"), g.Text("There is no preview: "+frame.Cut(p.text)))
	}
	return h.P(h.Role("status"), g.Text("When the form says when it runs, they are here."))
}

// said is what is wrong, in the order of the form.
func (p *editPage) said() (all []string) {
	for _, name := range []string{"topic", "name"} {
		if text := p.wrong[name]; text != "" {
			all = append(all, text)
		}
	}
	for _, f := range fieldsOf(p.is) {
		if text := p.wrong[f.name]; text != "" {
			all = append(all, f.label+": "+frame.Cut(text))
		}
	}
	return all
}

func (p *editPage) occurrences() g.Node {
	all := p.preview.GetOccurrences()
	next := "No run is to come."
	if len(all) > 0 {
		next = "The next is at " + frame.Cut(all[0].GetLocalTime()) + ", " + frame.AwayText(all[0].GetOccurrenceTime(), p.now) + "."
	}
	return g.Group{
		h.P(h.Role("status"), g.Text(next)),
		g.If(len(all) > 0, occurrenceTable(all, p.now)),
		g.Map(p.preview.GetWarnings(), func(w *ddqv1.DueWarning) g.Node { return frame.Warning(warningText(w)) }),
		audienceNote(p.preview.GetAudience()),
		clockNote(p.zone, p.now),
	}
}

// audienceNote is what the next run would make for its audience.
func audienceNote(a *ddqv1.AudiencePreview) g.Node {
	if a == nil {
		return nil
	}
	text := "It makes " + frame.CountText(a.GetTasks()) + " tasks for " + frame.CountText(a.GetRecipients()) + " recipients."
	if !a.GetExact() {
		text = "About: " + text
	}
	return h.P(g.Text(text))
}

// warningText says what is too much, and what would help.
func warningText(w *ddqv1.DueWarning) string {
	why := "more than " + frame.CountText(w.GetLimit())
	if w.GetRateLimited() {
		why = "and the rate of the topic lets " + frame.CountText(w.GetLimit()) + " through"
	}
	text := fmt.Sprintf("%s tasks are due within %s from %s, %s.", frame.CountText(w.GetDue()), frame.SpanText(w.GetSpanMs()), frame.InstantText(w.GetTime()), why)
	if w.GetEmptiestTime() != nil {
		text += fmt.Sprintf(" The emptiest minute of that hour begins at %s, with %s.", frame.InstantText(w.GetEmptiestTime()), frame.CountText(w.GetEmptiestDue()))
	}
	if w.GetCron() != "" {
		text += " The expression " + frame.Cut(w.GetCron()) + " goes elsewhere."
	}
	return text
}

// occurrenceTable are runs to come.
func occurrenceTable(all []*ddqv1.PreviewedOccurrence, now time.Time) g.Node {
	rows := g.Map(all, func(o *ddqv1.PreviewedOccurrence) g.Node {
		due := frame.StateText(o.GetSkipped())
		if due != "" {
			due = "skipped: " + due
		} else if at := o.GetDue(); at != nil && !at.AsTime().Equal(o.GetOccurrenceTime().AsTime()) {
			due = frame.SpanText(at.AsTime().Sub(o.GetOccurrenceTime().AsTime()).Milliseconds()) + " later"
		}
		return h.Tr(h.Td(frame.Time(o.GetOccurrenceTime(), now)), frame.Cells(frame.Cut(o.GetLocalTime()), due))
	})
	return h.Table(h.THead(h.Tr(frame.Heads("run", "there", "note"))), h.TBody(rows))
}

package coming

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// Forecast is how many tasks are due in each bucket of a span. Those that are planned are not made yet: runs of
// schedules, and tasks for recipients of audiences.
type Forecast struct {
	span
	topic              string // empty: all
	from               time.Time
	tasks, runs, walks []int64
	overdue            int64
	estimated          bool
	herds              []herd
	err                error // there is no forecast
	known              bool
}

// herd is a bucket in which more is due than is let through.
type herd struct {
	at         time.Time
	due, limit int64
	rated      bool // it is the rate of the topic that lets no more through
}

func newForecast(a asked, from time.Time, r *ddqv1.ForecastResponse) *Forecast {
	f := &Forecast{span: a.span, topic: a.topic, from: from, overdue: r.GetOverdue(), estimated: !r.GetExact(), known: true}
	f.tasks, f.walks = f.column(r.GetPending()), f.column(r.GetRecipients())
	f.runs = f.column(r.GetNext(), r.GetLater())
	for _, w := range r.GetWarnings() {
		f.herds = append(f.herds, herd{w.GetTime().AsTime(), w.GetDue(), w.GetLimit(), w.GetRateLimited()})
	}
	return f
}

// column is the sum of series, one number for each bucket.
func (s span) column(series ...[]int64) []int64 {
	sum := make([]int64, s.buckets)
	for _, all := range series {
		for i, n := range all[:min(len(all), s.buckets)] {
			sum[i] += max(0, n)
		}
	}
	return sum
}

// at is when a bucket begins.
func (f *Forecast) at(i int) time.Time { return f.from.Add(time.Duration(i) * f.bucket) }

// Missing says why there is no forecast; nothing where there is one.
func (f *Forecast) Missing() g.Node {
	switch {
	case f.known:
		return nil
	case f.err != nil:
		return h.P(h.Class("quiet"), g.Text("What is due later cannot be counted now."))
	}
	return h.P(h.Class("quiet"), g.Text("What is due later is being counted."))
}

// columns are n buckets, from one on.
func (f *Forecast) columns(title string, first, n int) g.Node {
	if !f.known {
		return nil
	}
	planned := make([]int64, n)
	for i := range planned {
		planned[i] = f.runs[first+i] + f.walks[first+i]
	}
	return frame.NewPlanned(title, f.at(first), f.bucket, f.tasks[first:first+n], planned).Picture()
}

// Minutes are columns of the next hour.
func (f *Forecast) Minutes() g.Node {
	return f.columns("Due in the next hour, by minute", 0, f.buckets)
}

// twoDays is how many hours a picture has that begins with a week.
const twoDays = 48

// Hours are columns of the next 48 hours of a week.
func (f *Forecast) Hours(now time.Time) g.Node {
	first := int(now.Sub(f.from) / time.Hour)
	return f.columns("Due in the next 48 hours, by hour", min(max(0, first), f.buckets-twoDays), twoDays)
}

// Heat is a week as a table of days and hours.
func (f *Forecast) Heat() g.Node {
	if !f.known {
		return nil
	}
	m := frame.Heat{Title: "Due this week, by hour (UTC)", Heads: hoursFrom("day", 0)}
	for i := 0; i < f.buckets; i += 24 {
		row := frame.HeatRow{Name: f.at(i).UTC().Format("Mon 2 Jan")}
		for at := i; at < i+24; at++ {
			row.Cells = append(row.Cells, f.cell(f.sum(at, at+1)))
		}
		m.Rows = append(m.Rows, row)
	}
	return m.Picture(f.note(), f.numbers())
}

// Lanes are a day as a table of hours, with a row for each kind of what is due, and the herds in it.
func (f *Forecast) Lanes() g.Node {
	if !f.known {
		return nil
	}
	m := frame.Heat{Title: "Due in the next 24 hours, by hour (UTC)", Heads: hoursFrom("what", f.from.UTC().Hour())}
	lane := func(name string, of func(due) due) {
		row := frame.HeatRow{Name: name}
		for i := 0; i < f.buckets; i += 60 {
			row.Cells = append(row.Cells, f.cell(of(f.sum(i, i+60))))
		}
		m.Rows = append(m.Rows, row)
	}
	lane("tasks", func(d due) due { return due{from: d.from, before: d.before, tasks: d.tasks} })
	lane("schedules", func(d due) due { return due{from: d.from, before: d.before, runs: d.runs} })
	lane("audiences", func(d due) due { return due{from: d.from, before: d.before, walks: d.walks} })
	lane("all", func(d due) due { d.herd = f.herdIn(d); return d })
	return m.Picture(f.note(), f.herdList(), f.numbers())
}

// hoursFrom are the heads of the hours of a day.
func hoursFrom(corner string, first int) []string {
	heads := []string{corner}
	for i := range 24 {
		heads = append(heads, fmt.Sprintf("%02d", (first+i)%24))
	}
	return heads
}

// due is what is due in a part of a forecast.
type due struct {
	from, before       time.Time
	tasks, runs, walks int64
	herd               bool
}

func (d *due) all() int64 { return d.tasks + d.runs + d.walks }

// sum is what is due from one bucket on, and before another.
func (f *Forecast) sum(first, end int) due {
	d := due{from: f.at(first), before: f.at(end)}
	for i := first; i < end; i++ {
		d.tasks, d.runs, d.walks = d.tasks+f.tasks[i], d.runs+f.runs[i], d.walks+f.walks[i]
	}
	return d
}

func (f *Forecast) cell(d due) frame.HeatCell {
	says := frame.HourText(d.from)
	for _, part := range []struct {
		n    int64
		name string
	}{{d.tasks, "tasks"}, {d.runs, "runs of schedules"}, {d.walks, "tasks of audiences"}} {
		if part.n > 0 {
			says += ", " + frame.CountText(part.n) + " " + part.name
		}
	}
	if d.herd {
		says += ", with a herd"
	}
	return frame.HeatCell{Count: d.all(), Says: says, Leads: link(f.topic, d.from, d.before), Marked: d.herd}
}

func (f *Forecast) herdIn(d due) bool {
	for _, h := range f.herds {
		if !h.at.Before(d.from) && h.at.Before(d.before) {
			return true
		}
	}
	return false
}

// note says how to read a table.
func (f *Forecast) note() g.Node {
	text := "The more is due, the more colour. Runs of schedules and tasks of audiences are planned: they are not made yet."
	if f.estimated {
		text += " Some of it is estimated."
	}
	if f.overdue > 0 {
		text += " Before it, " + frame.CountText(f.overdue) + " are due already."
	}
	return h.P(h.Class("quiet"), g.Text(text))
}

// herdList names the herds.
func (f *Forecast) herdList() g.Node {
	if len(f.herds) == 0 {
		return nil
	}
	return g.Group{
		h.P(g.Text("Herds: minutes in which more is due than is let through, marked with !")),
		h.Ul(g.Map(f.herds, func(one herd) g.Node {
			why := " may be due at once"
			if one.rated {
				why = " are let through by the rate of the topic"
			}
			return h.Li(h.A(h.Href(link(f.topic, one.at, one.at.Add(f.bucket))), g.Text(frame.HourText(one.at))),
				g.Text(": "+frame.CountText(one.due)+" are due, "+frame.CountText(one.limit)+why))
		})),
	}
}

// numbers are the hours in which something is due.
func (f *Forecast) numbers() g.Node {
	var rows g.Group
	each := int(time.Hour / f.bucket)
	for i := 0; i < f.buckets; i += each {
		if d := f.sum(i, i+each); d.all() > 0 {
			rows = append(rows, h.Tr(frame.Cells(frame.HourText(d.from)), frame.Counts(d.tasks, d.runs, d.walks)))
		}
	}
	return frame.Fold("As numbers", h.Table(h.THead(h.Tr(frame.Heads("from (UTC)"), frame.NumberHeads("tasks", "runs of schedules", "tasks of audiences"))), h.TBody(rows)))
}

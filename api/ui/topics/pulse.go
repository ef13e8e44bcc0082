package topics

import (
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

const deliveredHour = "Delivered in the last hour, by minute"

// hour is how many steps the pulse of an hour has.
const hour = 60

// delivered is a picture of what was delivered in the last hour, before the second at now.
func delivered(now time.Time, topics []*ddqv1.TopicOverview) *frame.Columns {
	counts := make([]int64, hour)
	for _, t := range topics {
		series := t.GetPulse().GetHour().GetDelivered()
		for i, n := range series[:min(len(series), hour)] {
			counts[i] += n
		}
	}
	return frame.NewColumns(deliveredHour, now.Truncate(time.Minute).Add(-time.Hour), time.Minute, counts)
}

// incomplete warns of what is missing in pulses.
func incomplete(r *ddqv1.GetOverviewResponse) g.Node {
	return g.Group{
		g.Map(r.GetSilentNodes(), func(node string) g.Node {
			return frame.Warning("Node " + frame.Cut(node) + " did not answer: what only it knows is missing.")
		}),
		g.If(r.GetPulsesIncomplete(), frame.Warning("A node has more topics in use than it counts: what it did to the tasks of the others is missing.")),
	}
}

// pulseCells are what has happened to a topic, in a row of topics.
func pulseCells(p *ddqv1.Pulse) g.Node {
	rates := p.GetMinute().GetPerSecond()
	return g.Group{
		frame.Amounts(frame.RateText(rates.GetEnqueued()), frame.RateText(rates.GetDelivered()), lateText(p.GetMinute(), (*ddqv1.Lateness).GetP99Ms)),
		frame.Spark("delivered in the last hour: "+frame.SumText(p.GetHour().GetDelivered()), p.GetHour().GetDelivered()),
	}
}

// lateText is how late deliveries of a window were; empty when there were none.
func lateText(w *ddqv1.PulseWindow, of func(*ddqv1.Lateness) int64) string {
	if len(w.GetDelivered()) == 0 && w.GetLateness().GetMaxMs() == 0 {
		return ""
	}
	return frame.SpanText(of(w.GetLateness()))
}

// pulseTable is what has happened to the tasks of a topic, of which nil is nothing.
func pulseTable(p *ddqv1.Pulse) g.Node {
	minute, hour := p.GetMinute(), p.GetHour()
	last, long := minute.GetPerSecond(), hour.GetPerSecond()
	row := func(name string, lastRate, longRate float64, series []int64) g.Node {
		return h.Tr(frame.RowHead(g.Text(name)), frame.Amounts(frame.RateText(lastRate), frame.RateText(longRate)), frame.Spark(name+" in the last hour: "+frame.SumText(series), series))
	}
	late := func(name string, of func(*ddqv1.Lateness) int64, picture g.Node) g.Node {
		return h.Tr(frame.RowHead(g.Text(name)), frame.Amounts(lateText(minute, of), lateText(hour, of)), picture)
	}
	heads := g.Group{frame.Heads("tasks"), frame.NumberHeads("last minute", "last hour"), frame.Heads("last hour, by minute")}
	return frame.Table("What has happened", "What has happened to its tasks, and how late they were delivered", heads, g.Group{
		row("enqueued", last.GetEnqueued(), long.GetEnqueued(), hour.GetEnqueued()),
		row("delivered", last.GetDelivered(), long.GetDelivered(), hour.GetDelivered()),
		row("acked", last.GetAcked(), long.GetAcked(), hour.GetAcked()),
		row("failed", last.GetFailed(), long.GetFailed(), hour.GetFailed()),
		row("dead", last.GetDead(), long.GetDead(), hour.GetDead()),
		late("late, p50", (*ddqv1.Lateness).GetP50Ms, h.Td()),
		late("late, p99", (*ddqv1.Lateness).GetP99Ms, h.Td()),
		late("late, most", (*ddqv1.Lateness).GetMaxMs, frame.Spark("the greatest lateness of each minute", hour.GetLatestMs())),
	})
}

package settings

import (
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// namespaces are those of the fleet, and what each may have and do.
func (p *settingsPage) namespaces() g.Node {
	heads := g.Group{frame.Heads("name"), frame.NumberHeads("enqueued a second", "at once", "tasks that wait", "bytes of a payload",
		"bytes a second", "topics", "schedules", "worker streams", "tasks in flight"), frame.Heads("made")}
	return g.Group{
		frame.Table("Namespaces", "Namespaces, with their quotas over all nodes", heads, g.Map(p.Namespaces, p.namespace)),
		h.P(h.Class("quiet"), g.Text("A token sees the topics of one namespace only. They are made and changed with "), h.Code(g.Text("ddq namespace")), g.Text(".")),
	}
}

func (p *settingsPage) namespace(n *ddqv1.Namespace) g.Node {
	q := n.GetQuotas()
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(n.GetName()), "namespace", "name", n.GetName())),
		frame.Amounts(rateText(q.GetEnqueuePerSecond()), quotaText(q.GetEnqueueBurst()), quotaText(q.GetMaxPending()), quotaText(q.GetMaxPayloadBytes()),
			quotaText(q.GetBytesPerSecond()), quotaText(q.GetMaxTopics()), quotaText(q.GetMaxSchedules()), quotaText(q.GetMaxStreams()), quotaText(q.GetMaxInFlight())),
		h.Td(madeBy(n, p.Now)),
	)
}

// madeBy says when and by whom a namespace was made.
func madeBy(n *ddqv1.Namespace, now time.Time) g.Node {
	at := n.GetCreateTime()
	if at == nil {
		return g.Text("always there")
	}
	return g.Group{g.Text(frame.AwayText(at, now) + " "), frame.Quiet("by " + frame.Cut(n.GetCreatedBy()))}
}

func rateText(perSecond float64) string {
	if perSecond == 0 {
		return quotaText(0)
	}
	return strconv.FormatFloat(perSecond, 'f', -1, 64)
}

// quotaText is a quota; 0 is none.
func quotaText(n int64) string {
	if n == 0 {
		return "no bound"
	}
	return frame.CountText(n)
}

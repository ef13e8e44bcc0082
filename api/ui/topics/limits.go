package topics

import (
	"cmp"
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// limit is something that holds tasks of a topic back, and how far that is used.
type limit struct{ name, allows, now string }

// limits are those that a topic has.
func (p *topicPage) limits() (all []limit) {
	policy, d := p.GetTopic().GetPolicy(), p.GetDepth()
	if r := policy.GetRate(); r.GetCount() > 0 {
		all = append(all, limit{"rate", rateAllows(r), "delivered in the last minute: " + cmp.Or(frame.RateText(p.pulse().GetMinute().GetPerSecond().GetDelivered()), "none")})
	}
	if n := policy.GetConcurrency(); n > 0 {
		all = append(all, limit{"concurrency", frame.CountText(int64(n)) + " at a time", frame.CountText(d.GetRunning()) + " running"})
	}
	if r := policy.GetKeyRate(); r.GetCount() > 0 {
		all = append(all, limit{"key_rate", rateAllows(r) + ", for each rate_key", ""})
	}
	if n := policy.GetKeyConcurrency(); n > 0 {
		all = append(all, limit{"key_concurrency", frame.CountText(int64(n)) + " at a time, for each concurrency_key", ""})
	}
	if n := policy.GetMaxBacklog(); n > 0 {
		all = append(all, limit{"max_backlog", frame.CountText(n) + " tasks that wait", frame.CountText(d.GetScheduled()+d.GetReady()) + " wait"})
	}
	if n := policy.GetMaxDead(); n > 0 {
		all = append(all, limit{"max_dead", frame.CountText(n) + " dead letters", frame.CountText(d.GetDead()) + " are dead"})
	}
	return all
}

// rateAllows is a rate in words.
func rateAllows(r *ddqv1.RateLimit) string {
	text := fmt.Sprintf("%s in %s", frame.CountText(int64(r.GetCount())), frame.SpanText(r.GetPeriodMs()))
	if r.GetKind() == ddqv1.RateKind_RATE_KIND_SLIDING_WINDOW {
		return text + " at most"
	}
	if r.GetBurst() > 1 {
		text += ", " + frame.CountText(int64(r.GetBurst())) + " at once after a rest"
	}
	return text
}

// held are the limits of the topic, and what waits.
func (p *topicPage) held() g.Node {
	all := p.limits()
	if len(all) == 0 {
		return nil
	}
	becomes := "A task that is due when a rate has no token left waits; no attempt is spent."
	if p.GetTopic().GetPolicy().GetOverLimit() == ddqv1.OverLimit_OVER_LIMIT_DEAD_LETTER {
		becomes = "A task that is due when a rate has no token left becomes a dead letter."
	}
	return g.Group{
		h.H2(g.Text("Limits")),
		h.P(g.Text(frame.CountText(p.GetDepth().GetReady()) + " tasks are ready: they wait for a worker, or for a limit. " + becomes)),
		frame.Table("Limits", "", frame.Heads("limit", "allows", "now"), g.Map(all, func(l limit) g.Node {
			return h.Tr(frame.RowHead(g.Text(l.name)), frame.Cells(l.allows, l.now))
		})),
	}
}

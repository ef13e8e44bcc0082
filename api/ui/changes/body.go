package changes

import (
	"encoding/base64"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

func (p *page) body() g.Node {
	if !p.Watched {
		return g.Group{h.P(frame.OfTopic(p.Topic)), p.unwatched()}
	}
	if p.Expired {
		return g.Group{h.P(frame.OfTopic(p.Topic)), p.filter(), p.expired()}
	}
	return g.Group{h.P(frame.OfTopic(p.Topic)), p.filter(), p.behind(), p.list()}
}

// filter is what to look for.
func (p *page) filter() g.Node {
	value := func(name string) g.Node { return h.Value(p.Query.Get(name)) }
	return frame.Filter("changes", frame.Hidden("topic", p.Topic), p.begins(),
		p.Wrong.Input("Id begins with", "id", value("id"), h.MaxLength("128"), frame.AsTyped()),
		frame.Choice(p.Wrong, "Change", "kind", "any", kinds, p.Query.Get("kind")),
		p.Wrong.Input(p.attributeLabel(), "attribute", value("attribute"), h.Placeholder("key=value"), frame.AsTyped()),
		p.Wrong.Input("Behind cursor", "cursor", value("cursor"), frame.AsTyped()))
}

// begins keeps in a form where the look begins.
func (p *page) begins() g.Node {
	return g.If(p.Query.Get("from") == fromOldest, frame.Hidden("from", fromOldest))
}

// anchor leads to a look for the same, which begins elsewhere.
func (p *page) anchor(text, name, value string) g.Node {
	return frame.Anchor(text, "changes", "topic", p.Topic, "id", p.Query.Get("id"), "kind", p.Query.Get("kind"), "attribute", p.Query.Get("attribute"), name, value)
}

// expired says what is lost behind a cursor, and how to go on.
func (p *page) expired() g.Node {
	keeps := "This topic keeps what happens for " + frame.SpanText(p.policy.GetWatchRetentionMs())
	if most := p.policy.GetWatchMaxEvents(); most > 0 {
		keeps += ", and the last " + frame.CountText(most) + " changes of a shard at the most"
	}
	return g.Group{
		frame.Warning("Some of what happened behind this cursor is lost: it is not kept any more. " + keeps + ". The tasks themselves have lost nothing."),
		h.P(p.anchor("Go on from the oldest change that is kept", "from", fromOldest), g.Text(" · "), p.anchor("Show the last changes", "", "")),
	}
}

// attributeLabel names the attributes that can be looked for.
func (p *page) attributeLabel() string {
	indexed := p.policy.GetIndexedAttributes().GetNames()
	if len(indexed) == 0 {
		return "Attribute (none is indexed)"
	}
	return "Attribute (" + frame.Cut(strings.Join(indexed, ", ")) + ")"
}

// behind is the cursor behind what is shown, from which another look goes on.
func (p *page) behind() g.Node {
	if len(p.Seen.cursor) == 0 {
		return h.P()
	}
	cursor := base64.RawURLEncoding.EncodeToString(p.Seen.cursor)
	return h.P(h.Class("filter"),
		h.Label(g.Text("Cursor behind these "), h.Input(h.ReadOnly(), h.Value(cursor))),
		frame.Button("Copy", h.Type("button"), h.Class("plain scripted"), h.Data("copy", cursor)),
		p.anchor("Only what happens from here on", "cursor", cursor),
	)
}

// list has the last changes.
func (p *page) list() g.Node {
	switch {
	case len(p.Wrong) > 0:
		return nil
	case len(p.Seen.rows) == 0:
		return h.P(g.Text("Nothing that is looked for has happened of late. What does is shown here."))
	}
	caption := "What happened, the latest first"
	if p.Seen.count > int64(len(p.Seen.rows)) {
		since := " since this was looked at first"
		if p.Query.Get("from") == fromOldest {
			since = " since the oldest that is kept"
		}
		caption += "; the last " + frame.CountText(int64(len(p.Seen.rows))) + " of " + frame.CountText(p.Seen.count) + since
	}
	return frame.Table("Changes", caption,
		g.Group{frame.Heads("id", "when", "change", "state"), frame.NumberHeads("attempts"), frame.Heads("worker", "why", "due")}, g.Map(p.Seen.rows, p.row))
}

func (p *page) row(c *ddqv1.TaskChange) g.Node {
	why := frame.StateText(c.GetReason())
	if why == "" {
		why = frame.StateText(c.GetOutcome())
	}
	var due g.Node
	if ms := c.GetDueUnixMs(); ms > 0 {
		due = frame.Exact(timestamppb.New(time.UnixMilli(ms)))
	}
	return h.Tr(
		frame.RowHead(frame.Anchor(frame.Cut(c.GetId()), "task", "topic", p.Topic, "id", c.GetId())),
		h.Td(frame.Exact(timestamppb.New(time.UnixMicro(c.GetTimeUnixUs())))),
		frame.Cells(frame.StateText(c.GetKind()), frame.StateText(c.GetState())),
		frame.Digits(c.GetAttempt()),
		frame.Cells(frame.Cut(c.GetWorker()), why),
		h.Td(due),
	)
}

// unwatched says that the topic keeps nothing, and how that is changed.
func (p *page) unwatched() g.Node {
	text := h.P(g.Text("This topic does not keep what happens to its tasks, so that nothing can be shown. "), frame.Quiet("A change takes some 50 to 80 bytes of the store."))
	if !p.May.Operate {
		return g.Group{text, h.P(g.Text("An operator switches it on: "), h.Code(g.Text("ddq topic set "+frame.Cut(p.Topic)+" --watch-retention 1h")))}
	}
	return g.Group{text, frame.Post("changes/keep", frame.Hidden("topic", p.Topic), frame.Button("Keep what happens for an hour"))}
}

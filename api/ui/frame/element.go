package frame

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Anchor is a link to a page, with pairs of fields and values as its query.
func Anchor(text, page string, pairs ...string) g.Node {
	return h.A(h.Href(Link(page, pairs...)), g.Text(text))
}

// Quiet is text that is less important than what is before it.
func Quiet(text string) g.Node { return h.Span(h.Class("quiet"), g.Text(text)) }

// Warning is what a visitor ought to know.
func Warning(text string) g.Node {
	return h.P(h.Class("warning"), h.Role("note"), g.Text(cutTo(text, longestSentence)))
}

// Alert is why something was not done.
func Alert(text string) g.Node {
	return h.P(h.Class("warning"), h.Role("alert"), g.Text(cutTo(text, longestSentence)))
}

// Fold is what is seen after a click on its summary.
func Fold(summary string, inside ...g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), g.Group(inside))
}

// Time says how far a time is away from now, and exactly when it is to those who point at it. Nil is
// no time, of which nothing is said.
func Time(t *timestamppb.Timestamp, now time.Time) g.Node {
	if t == nil {
		return h.Time()
	}
	return h.Time(dateTime(t), h.Title(InstantText(t)), g.Text(AwayText(t, now)))
}

// Exact is a time to the millisecond; nil is none.
func Exact(t *timestamppb.Timestamp) g.Node {
	if t == nil {
		return nil
	}
	return h.Time(dateTime(t), g.Attr("data-exact"), g.Text(InstantText(t)))
}

// dateTime is a time as the script reads it.
func dateTime(t *timestamppb.Timestamp) g.Node {
	return h.DateTime(t.AsTime().Format("2006-01-02T15:04:05.000Z07:00"))
}

// Key makes what it is an attribute of the place that keys lead to, such as e for edit; with several
// of them a blank between two.
func Key(keys string) g.Node { return h.Data("key", keys) }

// OfTopic leads to a topic and to what belongs to it, from a page about something of it.
func OfTopic(topic string) g.Node {
	to := func(text, page, field, key string) g.Node {
		return h.A(h.Href(Link(page, field, topic)), Key(key), g.Text(text))
	}
	return g.Group{
		to("Topic "+Cut(topic), "topic", "name", "gt"), g.Text(" · "), to("its tasks", "tasks", "topic", "gk"), g.Text(" · "), to("its dead letters", "dead", "topic", "gd"),
		g.Text(" · "), to("its changes", "changes", "topic", "gl"), g.Text(" · "), to("its operations", "operations", "topic", "gb"),
	}
}

// Verbatim is text as it is, of a name. Its box is scrolled when the text is long, by keyboard, too.
func Verbatim(name, text string) g.Node {
	return h.Pre(h.TabIndex("0"), h.Role("group"), h.Aria("label", name), g.Text(text))
}

// Figures are the most important facts of a page.
func Figures(figures ...g.Node) g.Node { return h.Dl(h.Class("figures"), g.Group(figures)) }

// Figure is a fact under its name.
func Figure(name string, value ...g.Node) g.Node { return h.Div(Fact(name, value...)) }

// Facts are names and values below each other.
func Facts(facts ...g.Node) g.Node { return h.Dl(h.Class("fields"), g.Group(facts)) }

// Fact is a name and its value.
func Fact(name string, value ...g.Node) g.Node {
	return g.Group{h.Dt(g.Text(name)), h.Dd(value...)}
}

// FactIf is a fact that others wrote, if there is something.
func FactIf(name, value string) g.Node { return g.If(value != "", Fact(name, g.Text(Cut(value)))) }

// Measure is an attribute of something in a picture, in the units of the picture.
func Measure(name string, n int) g.Node { return g.Attr(name, strconv.Itoa(n)) }

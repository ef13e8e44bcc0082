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
func Warning(text string) g.Node { return h.P(h.Class("warning"), h.Role("note"), g.Text(text)) }

// Alert is why something was not done.
func Alert(text string) g.Node { return h.P(h.Class("warning"), h.Role("alert"), g.Text(text)) }

// Fold is what is seen after a click on its summary.
func Fold(summary string, inside ...g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), g.Group(inside))
}

// Time says how far a time is away from now, and exactly when it is to those who point at it. Nil is
// no time, of which nothing is said.
func Time(t *timestamppb.Timestamp, now time.Time) g.Node {
	return h.Time(h.Title(InstantText(t)), g.Text(AwayText(t, now)))
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

package frame

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Post is a form for an action or an answer; its path is under Prefix.
func Post(path string, inside ...g.Node) g.Node {
	return h.Form(h.Method("post"), h.Action(Prefix+path), g.Group(inside))
}

// Filter is a form that asks for a page with other rows.
func Filter(page string, inside ...g.Node) g.Node {
	return h.Form(h.Method("get"), h.Action(Prefix+page), h.Class("filter"), g.Group(inside), Button("Show"))
}

// Hidden are pairs of fields and values that a form sends unseen.
func Hidden(pairs ...string) g.Node {
	var all g.Group
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, h.Input(h.Type("hidden"), h.Name(pairs[i]), h.Value(pairs[i+1])))
	}
	return all
}

// Input is a field with its label.
func Input(label string, attributes ...g.Node) g.Node {
	return h.Label(g.Text(label+" "), h.Input(attributes...))
}

// Sure is the field for what has to be typed before something is done that cannot be taken back,
// see Typed.
func Sure(label string) g.Node { return Input(label, h.Name("sure"), h.Required(), AsTyped()) }

// AsTyped are attributes of a field that browsers neither fill in nor correct.
func AsTyped() g.Node { return g.Group{h.AutoComplete("off"), g.Attr("spellcheck", "false")} }

// TextArea is a field of several lines. Browsers drop the first end of a line.
func TextArea(name, rows, text string) g.Node {
	return h.Textarea(h.Name(name), h.Rows(rows), AsTyped(), g.Text("\n"+text))
}

// Choice is a field with the names of states, of which one is chosen; other is what is shown for none.
func Choice[S fmt.Stringer](wrong Mistakes, label, name, other string, states []S, chosen string) g.Node {
	options := g.Map(states, func(s S) g.Node {
		text := StateText(s)
		return h.Option(g.If(text == chosen, h.Selected()), g.Text(text))
	})
	return h.Label(g.Text(label+" "), h.Select(h.Name(name), wrong.mark(name), h.Option(h.Value(""), g.Text(other)), options), wrong.text(name))
}

// Button sends the form that it is in.
func Button(text string, attributes ...g.Node) g.Node {
	return h.Button(g.Group(attributes), g.Text(text))
}

// Danger is a button for what is lost afterwards, or stops.
func Danger(text string, attributes ...g.Node) g.Node {
	return Button(text, h.Class("danger"), g.Group(attributes))
}

package frame

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Difference is a field of something that a visitor wants to change.
type Difference struct {
	Name  string
	Was   string // when the visitor saw it
	Is    string // now, which is another's change where it is not what it was
	Wants string // what the visitor makes of it
}

// Differences is a table of what an edit changes, and of what others have changed meanwhile.
func Differences(all []Difference) g.Node {
	meanwhile := false
	for _, d := range all {
		meanwhile = meanwhile || d.Was != d.Is
	}
	return Table("Changes", "What is there, and what you want", g.Group{g.If(meanwhile, Heads("field", "you saw", "is now, by somebody else", "you want")), g.If(!meanwhile, Heads("field", "is", "you want"))},
		g.Map(all, func(d Difference) g.Node {
			return h.Tr(RowHead(g.Text(d.Name)), g.If(meanwhile, value(d.Was, false)), value(d.Is, d.Is != d.Was), value(d.Wants, d.Wants != d.Is))
		}))
}

// value is one of the values of a field. That it is another one than before is said by more than colour.
func value(text string, changed bool) g.Node {
	if text == "" {
		return h.Td(Quiet("not set"))
	}
	code := h.Code(g.Text(Cut(text)))
	return h.Td(g.If(changed, h.Strong(code)), g.If(!changed, code))
}

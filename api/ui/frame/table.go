package frame

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Table is a table in a region of its own, which is scrolled when it is too wide. An empty caption
// is none.
func Table(name, caption string, heads, rows g.Node) g.Node {
	return h.Div(h.Class("wide"), h.Role("region"), h.Aria("label", name), h.TabIndex("0"), h.Table(
		g.If(caption != "", h.Caption(g.Text(caption))),
		h.THead(h.Tr(heads)), h.TBody(rows),
	))
}

// Heads are those of columns.
func Heads(names ...string) g.Node {
	return g.Map(names, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) })
}

// NumberHeads are those of columns of numbers.
func NumberHeads(names ...string) g.Node {
	return g.Map(names, func(name string) g.Node { return h.Th(h.Scope("col"), h.Class("number"), g.Text(name)) })
}

// RowHead is the cell that a row is known by.
func RowHead(inside ...g.Node) g.Node { return h.Th(h.Scope("row"), g.Group(inside)) }

// Cells are texts in a row.
func Cells(texts ...string) g.Node {
	return g.Map(texts, func(text string) g.Node { return h.Td(g.Text(text)) })
}

// Counts are numbers in a row.
func Counts(numbers ...int64) g.Node {
	return g.Map(numbers, func(n int64) g.Node { return h.Td(h.Class("number"), g.Text(CountText(n))) })
}

// Amounts are numbers in a row with their units.
func Amounts(texts ...string) g.Node {
	return g.Map(texts, func(text string) g.Node { return h.Td(h.Class("number"), g.Text(text)) })
}

// Digits are numbers in a row that are written without groups.
func Digits[N int | int32 | int64](numbers ...N) g.Node {
	return g.Map(numbers, func(n N) g.Node { return h.Td(h.Class("number"), g.Text(strconv.FormatInt(int64(n), 10))) })
}

// Bad is a number in a row, which is marked if it is bad.
func Bad(text string, bad bool) g.Node {
	class := "number"
	if bad {
		class += " bad"
	}
	return h.Td(h.Class(class), g.Text(text))
}

// More leads to the page of a list that begins at a token; no token: this is the last one.
func More(next, page string, pairs ...string) g.Node {
	return g.If(next != "", h.P(Anchor("More", page, append(pairs, "page", next)...)))
}

// LookOn is said of a page of a list without rows: there may be some after it.
func LookOn(next, page string, pairs ...string) g.Node {
	if next == "" {
		return nil
	}
	return g.Group{g.Text(" here; "), Anchor("look on", page, append(pairs, "page", next)...)}
}

// None is instead of a list without rows.
func None(next, page string, pairs ...string) g.Node {
	return h.P(g.Text("There are none"), LookOn(next, page, pairs...), g.Text("."))
}

package frame

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Of a small picture, in its own units.
const (
	sparkWidth  = 120
	sparkHeight = 20
)

// Spark is a small picture of a series in a row, the newest at the right; text says what it shows.
func Spark(text string, counts []int64) g.Node {
	counts = counts[max(0, len(counts)-sparkWidth):]
	most := int64(0)
	for _, n := range counts {
		most = max(most, n)
	}
	var bars g.Group
	for i, n := range counts {
		if n <= 0 {
			continue
		}
		high, wide := max(1, int(float64(n)/float64(most)*sparkHeight)), sparkWidth/len(counts)
		bars = append(bars, g.El("rect", Measure("x", sparkWidth-(len(counts)-i)*wide), Measure("y", sparkHeight-high), Measure("width", wide), Measure("height", high)))
	}
	return h.Td(g.El("svg", h.Class("spark"), g.Attr("viewBox", fmt.Sprintf("0 0 %d %d", sparkWidth, sparkHeight)), g.Attr("preserveAspectRatio", "none"),
		h.Role("img"), h.Aria("label", text), bars))
}

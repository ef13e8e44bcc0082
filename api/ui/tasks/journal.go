package tasks

import (
	"fmt"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// Of a journal a page has so many entries, and of each value so many bytes.
const (
	entriesShown = 100
	valueShown   = 1 << 10
)

// journal is what handlers of the task did once.
func (p *taskPage) journal() g.Node {
	all := p.GetJournal()
	if len(all) == 0 {
		return nil
	}
	about := frame.CountText(int64(len(all))) + " kept"
	if len(all) > entriesShown {
		about += fmt.Sprintf(", the first %d", entriesShown)
		all = all[:entriesShown]
	}
	heads := g.Group{frame.Heads("name", "kept"), frame.NumberHeads("bytes"), g.If(!p.GetMasked(), frame.Heads("value"))}
	return g.Group{h.H2(g.Text("Journal "), frame.Quiet(about)), frame.Table("Journal", "", heads, g.Map(all, p.entry))}
}

func (p *taskPage) entry(e *ddqv1.JournalEntry) g.Node {
	return h.Tr(
		frame.RowHead(g.Text(frame.Cut(e.GetName()))), h.Td(frame.Time(e.GetKeptAt(), p.Now)), frame.Counts(e.GetSize()),
		g.Iff(!p.GetMasked(), func() g.Node { return h.Td(valueOf(e.GetValue())) }),
	)
}

// valueOf is the beginning of a value.
func valueOf(b []byte) g.Node {
	cut := len(b) > valueShown
	text := shown(b[:min(len(b), valueShown)])
	switch {
	case text.Text == "":
		return nil
	case cut:
		return g.Group{frame.Verbatim("Value", text.Text), frame.Quiet("the beginning")}
	}
	return frame.Verbatim("Value", text.Text)
}

package tasks

import (
	"fmt"

	"github.com/ddq-io/ddq/api/ui/frame"
)

const (
	// countPage and mostCounted bound what a count of what a filter matches reads.
	countPage   = 1000
	mostCounted = 10_000
	// grownBy is by how much, in percent, what a filter matches may grow between the count and the
	// action: beyond that it is counted and asked for once more.
	grownBy = 10
)

// matched is how many a filter matches, on every page.
type matched struct {
	count   int64
	more    bool   // there are more than were counted
	refused string // why nothing was done; empty: it was not tried
}

// read counts them by reading them: page returns how many the page of a token has, and the next token.
func (m *matched) read(page func(token string) (n int, next string, err error)) error {
	for token := ""; m.count < mostCounted; {
		n, next, err := page(token)
		if err != nil {
			return err
		}
		m.count += int64(n)
		if token = next; token == "" {
			return nil
		}
	}
	m.more = true
	return nil
}

// agrees reports whether there are about as many as the visitor was told, and else says that there are not.
func (m *matched) agrees(told int64) bool {
	if m.count*100 > told*(100+grownBy) {
		m.refused = fmt.Sprintf("Nothing was done: the filter matched %s when they were counted.", frame.CountText(told))
	}
	return m.refused == ""
}

// text says how many there are.
func (m *matched) text(one, several string) string {
	switch {
	case m.more:
		return "More than " + frame.CountText(m.count) + " " + several + " are matched."
	case m.count == 1:
		return "One " + one + " is matched."
	}
	return frame.CountText(m.count) + " " + several + " are matched."
}

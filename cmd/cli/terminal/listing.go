package terminal

import (
	"fmt"
	"iter"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Listing prints results as they come: in JSON one object a line at once, else
// one table at the end.
type Listing struct {
	t      *Terminal
	header table.Row
	rows   []table.Row
}

// Listing begins a listing with the names of its columns.
func (t *Terminal) Listing(header ...any) *Listing { return &Listing{t: t, header: header} }

// Add prints a result: v in JSON, or the row.
func (l *Listing) Add(v any, row ...any) error {
	if l.t.Output == FormatJSON {
		return l.t.WriteJSON(v)
	}
	l.rows = append(l.rows, row)
	return nil
}

// End prints the table, or says on stderr that there is nothing in it. It
// passes on err, which ended the listing.
func (l *Listing) End(err error, none string) error {
	switch {
	case err != nil:
		return err
	case l.t.Output == FormatJSON:
		return nil
	case len(l.rows) == 0:
		_, err := fmt.Fprintln(l.t.Err, none)
		return err
	}
	return l.t.writeTable(l.header, l.rows)
}

// Each calls add for each result up to a limit, or for all when that is 0, and ends with the first
// error.
func Each[T any](all iter.Seq2[T, error], limit int, add func(T) error) error {
	n := 0
	for v, err := range all {
		if err != nil {
			return err
		}
		if err := add(v); err != nil {
			return err
		}
		if n++; n == limit {
			break
		}
	}
	return nil
}

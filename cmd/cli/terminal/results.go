package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// Forms of results.
const (
	FormatTable = "table"
	FormatJSON  = "json"
)

// Terminal is where a command reads from and writes to, and the form of its results.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer // made by Shown
	Output   string    // one of the forms
}

// WriteJSON writes one object on one line.
func (t *Terminal) WriteJSON(v any) error { return WriteJSON(t.Out, v) }

// WriteJSON writes one object on one line.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Record prints one result: an object, or a table of names and values.
func (t *Terminal) Record(v any, rows ...table.Row) error {
	if t.Output == FormatJSON {
		return t.WriteJSON(v)
	}
	return t.writeTable(nil, rows)
}

// Say prints one result: an object, or a sentence, in which no string begins a line.
func (t *Terminal) Say(v any, format string, args ...any) error {
	if t.Output == FormatJSON {
		return t.WriteJSON(v)
	}
	args = slices.Clone(args)
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = Line(text)
		}
	}
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)
	return err
}

func (t *Terminal) writeTable(header table.Row, rows []table.Row) error {
	grid := table.NewWriter()
	grid.SetStyle(plainTable)
	grid.SuppressTrailingSpaces()
	shape := Printable // a record may have texts of several lines
	if header != nil {
		grid.AppendHeader(header)
		shape = Line
	}
	for _, row := range rows {
		row = slices.Clone(row)
		for i := range row {
			if text, ok := row[i].(string); ok { // its width is that of what is shown
				row[i] = shape(text)
			}
		}
		grid.AppendRow(row)
	}
	_, err := fmt.Fprintln(t.Out, grid.Render())
	return err
}

// plainTable has no lines, so that cut, awk and people can all read it.
var plainTable = func() table.Style {
	s := table.StyleDefault
	s.Options = table.OptionsNoBordersAndSeparators
	s.Box.PaddingLeft = ""
	s.Box.PaddingRight = "  "
	s.Format.Header = text.FormatUpper
	return s
}()

// IsTerminal reports whether a stream is a terminal that somebody looks at.
func IsTerminal(stream any) bool {
	if s, ok := stream.(shown); ok {
		stream = s.to
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// writeJSON writes one object on one line.
func (c *cli) writeJSON(v any) error { return writeJSON(c.Out, v) }

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// record prints one result: an object, or a table of names and values.
func (c *cli) record(v any, rows ...table.Row) error {
	if c.output == formatJSON {
		return c.writeJSON(v)
	}
	return c.writeTable(nil, rows)
}

// say prints one result: an object, or a sentence.
func (c *cli) say(v any, format string, args ...any) error {
	if c.output == formatJSON {
		return c.writeJSON(v)
	}
	_, err := fmt.Fprintf(c.Out, format+"\n", args...)
	return err
}

func (c *cli) writeTable(header table.Row, rows []table.Row) error {
	t := table.NewWriter()
	t.SetStyle(plainTable)
	t.SuppressTrailingSpaces()
	if header != nil {
		t.AppendHeader(header)
	}
	t.AppendRows(rows)
	_, err := fmt.Fprintln(c.Out, t.Render())
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

// listing prints results as they come: in JSON one object a line at once, else
// one table at the end.
type listing struct {
	c      *cli
	header table.Row
	rows   []table.Row
}

func (c *cli) listing(header ...any) *listing { return &listing{c: c, header: header} }

func (l *listing) add(v any, row ...any) error {
	if l.c.output == formatJSON {
		return l.c.writeJSON(v)
	}
	l.rows = append(l.rows, row)
	return nil
}

// end prints the table, or says on stderr that there is nothing in it. It
// passes on err, which ended the listing.
func (l *listing) end(err error, none string) error {
	switch {
	case err != nil:
		return err
	case l.c.output == formatJSON:
		return nil
	case len(l.rows) == 0:
		_, err := fmt.Fprintln(l.c.Err, none)
		return err
	}
	return l.c.writeTable(l.header, l.rows)
}

// isTerminal reports whether a stream is a terminal that somebody looks at.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// clock writes an instant as JSON output has it: RFC 3339 in UTC with
// milliseconds, "" for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// orElse returns s, or what stands in for it when it is empty.
func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// byteCount writes a size for people.
func byteCount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// printable keeps what a stranger wrote from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// shorten cuts a cell's text to n characters on one line.
func shorten(s string, n int) string {
	runes := []rune(printable(strings.Join(strings.Fields(s), " ")))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// readAll reads the file called name, or in when name is "-".
func readAll(in io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

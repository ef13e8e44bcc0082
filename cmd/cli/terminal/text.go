package terminal

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Clock writes an instant as JSON output has it: RFC 3339 in UTC with
// milliseconds, "" for none.
func Clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// ByteCount writes a size for people.
func ByteCount(n int64) string {
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

// Printable shows what a terminal would obey instead of showing it: control characters, those that
// turn the text behind them around, and what is no UTF-8 are written as JSON would have them escaped.
// Line feeds and tabs stay.
func Printable(s string) string { return escape(s, "\n\t") }

// Line is Printable where a text is to be on one line.
func Line(s string) string { return escape(s, "") }

func escape(s, kept string) string {
	if strings.IndexFunc(s, func(r rune) bool { return obeyed(r) || r == utf8.RuneError }) < 0 {
		return s
	}
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[0])
		case !obeyed(r) || strings.ContainsRune(kept, r):
			out.WriteString(s[:size])
		case r == '\n', r == '\t', r == '\r':
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		s = s[size:]
	}
	return out.String()
}

// obeyed reports whether a terminal obeys a character. All of those have four digits.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// shown makes all that is written to a stream printable. Each write is of whole characters.
type shown struct{ to io.Writer }

func (w shown) Write(p []byte) (int, error) {
	if _, err := w.to.Write([]byte(Printable(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Shown is a stream for what users wrote: see Printable. JSON that is written to it stays the same JSON.
func Shown(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return shown{w}
}

// Raw is the stream beneath one that Shown has made, for what is to move a cursor, and for other
// programs.
func Raw(w io.Writer) io.Writer {
	if s, ok := w.(shown); ok {
		return s.to
	}
	return w
}

// Shorten cuts a cell's text to n characters on one line.
func Shorten(s string, n int) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > n {
		runes = append(runes[:n-1], '…')
	}
	return Line(string(runes))
}

// BytesText is a payload or a result for people, and not printable yet.
func BytesText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return ByteCount(int64(len(b))) + " that are no text; see -o json"
}

// SortedKeys are the keys of m in order.
func SortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

// ReadAll reads the file called name, or in when name is "-".
func ReadAll(in io.Reader, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

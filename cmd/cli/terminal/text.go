package terminal

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
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

// Printable keeps what a stranger wrote from steering the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Shorten cuts a cell's text to n characters on one line.
func Shorten(s string, n int) string {
	runes := []rune(Printable(strings.Join(strings.Fields(s), " ")))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

// BytesText is a payload or a result for people.
func BytesText(b []byte) string {
	if utf8.Valid(b) {
		return Printable(string(b))
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

package tasks

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// sign stands in a fingerprint for what differs from one error to the next.
const sign = "#"

// shortestID is from how many characters on the id of a task is looked for in its error.
const shortestID = 3

// mostCompared is how many bytes of an error count. Servers keep 1,024 of one.
const mostCompared = 4 << 10

// differing are the parts of errors that differ, in the order in which they are replaced.
var differing = []struct {
	part *regexp.Regexp
	with func(string) bool // which of them; nil: all
}{
	{regexp.MustCompile(`(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), nil},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?`), nil},
	{regexp.MustCompile(`(?i)\b(?:0x[0-9a-f]+|[0-9a-f]{8,})\b`), digits},
	{regexp.MustCompile(`[0-9A-Za-z]{16,}`), digits},
	{regexp.MustCompile(`\d+(?:[.,:]\d+)*`), nil},
}

func digits(s string) bool { return strings.ContainsAny(s, "0123456789") }

// fingerprint is an error without what differs from one task to the next: its id, numbers, times, and what looks
// like an id. Errors of one cause have the same.
func fingerprint(err, id string) string {
	text := strings.ToValidUTF8(err[:min(len(err), mostCompared)], "\uFFFD")
	if utf8.RuneCountInString(id) >= shortestID {
		text = strings.ReplaceAll(text, id, sign)
	}
	for _, d := range differing {
		text = d.part.ReplaceAllStringFunc(text, func(s string) string {
			if d.with != nil && !d.with(s) {
				return s
			}
			return sign
		})
	}
	return text
}

// mostContained is how many bytes of an error a filter looks for.
const mostContained = 200

// common is the longest part that the errors of a fingerprint have in common, for a filter; empty where that
// would say nothing.
func common(fingerprint string) (longest string) {
	const least = 3
	for part := range strings.FieldsFuncSeq(fingerprint, func(r rune) bool { return r == '#' || r < ' ' || r == utf8.RuneError }) {
		if len(part) > mostContained {
			cut := mostContained
			for !utf8.RuneStart(part[cut]) {
				cut--
			}
			part = part[:cut]
		}
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	if len(longest) < least {
		return ""
	}
	return longest
}

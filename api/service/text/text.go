// Package text checks the texts of requests.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Visible reports whether an id or a name is visible ASCII without spaces.
func Visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// CheckName allows 1 to most characters of visible ASCII.
func CheckName(field, name string, most int) *problem.Error {
	switch {
	case name == "" || len(name) > most:
		return problem.BadField(field, "BAD_NAME", "%s has %d characters; 1 to %d are allowed", field, len(name), most)
	case !Visible(name):
		return problem.BadField(field, "BAD_NAME", "%s must be visible ASCII without spaces", field)
	}
	return nil
}

// CheckKey allows what tasks are grouped by; an empty one is none.
func CheckKey(field, key string) *problem.Error {
	switch {
	case len(key) > store.MaxKey:
		return problem.BadField(field, "NAME_TOO_LONG", "%s has %d bytes; at most %d are allowed", field, len(key), store.MaxKey)
	case !utf8.ValidString(key):
		return problem.BadField(field, "BAD_KEY", "%s must be UTF-8", field)
	}
	return nil
}

// CheckNote allows what is shown to people as it came, of up to most bytes; an empty one is fine.
// reason is that of the error.
func CheckNote(field, note string, most int, reason string) *problem.Error {
	if len(note) > most || !utf8.ValidString(note) || strings.ContainsFunc(note, unicode.IsControl) {
		return problem.BadField(field, reason, "%s must be UTF-8 without control characters, of at most %d bytes", field, most)
	}
	return nil
}

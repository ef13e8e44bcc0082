package text_test

import (
	"strings"
	"testing"

	"github.com/ddq-io/ddq/api/service/text"
)

func TestNamesAreVisibleASCII(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "a": true, "a/b#1~!": true, "a b": false, "a\x7f": false, "é": false, "\xff": false, strings.Repeat("a", 8): true, strings.Repeat("a", 9): false,
	} {
		if err := text.CheckName("name", name, 8); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNotesAreTextForPeople(t *testing.T) {
	for note, want := range map[string]bool{
		"": true, "für dich": true, "a\nb": false, "\xff": false, strings.Repeat("a", 10): true, strings.Repeat("a", 11): false,
	} {
		err := text.CheckNote("note", note, 10, "BAD_NOTE")
		if (err == nil) != want || err != nil && (err.Reason != "BAD_NOTE" || err.Field != "note") {
			t.Errorf("%q: %v", note, err)
		}
	}
}

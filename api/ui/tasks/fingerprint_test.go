package tasks

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"
)

// TestFingerprints runs the scenarios of testdata: errors, one a line, some of them quoted.
func TestFingerprints(t *testing.T) {
	datadriven.RunTest(t, "testdata/fingerprints", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "errors" {
			d.Fatalf(t, "no command %s", d.Cmd)
		}
		var id string
		d.MaybeScanArgs(t, "id", &id)
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			line = strings.TrimSuffix(line, "\n")
			if text, err := strconv.Unquote(line); err == nil {
				line = text
			}
			print := fingerprint(line, id)
			fmt.Fprintf(&out, "%s\n  filter %q\n", strings.Trim(strconv.Quote(print), `"`), common(print))
		}
		return out.String()
	})
}

// A server of another kind may keep errors of any length: the patterns are not held against all of them.
func TestFingerprintsHaveABound(t *testing.T) {
	long := strings.Repeat("ä timeout ", 100_000)
	if got := fingerprint(long, "task"); len(got) > mostCompared+len("\uFFFD") || !strings.HasPrefix(long, strings.TrimSuffix(got, "\uFFFD")) {
		t.Errorf("a fingerprint of %d bytes of %d", len(got), len(long))
	}
}

// What errors of a fingerprint have in common is in each of them.
func FuzzFingerprints(f *testing.F) {
	for _, text := range []string{"", "a", "timeout after 30s", "\xff1\x00", strings.Repeat("ä1", 500), "#1#2"} {
		f.Add(text, "a")
	}
	f.Fuzz(func(t *testing.T, text, id string) {
		print := fingerprint(text, id)
		part := common(print)
		if !utf8.ValidString(print) || !utf8.ValidString(part) || len(part) > mostContained || !strings.Contains(text, part) {
			t.Errorf("%q: %q, %q", text, print, part)
		}
	})
}

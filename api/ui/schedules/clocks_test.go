package schedules

import (
	"testing"
	"time"
)

func TestClockChanges(t *testing.T) {
	for now, want := range map[string][]string{
		"2026-01-01T00:00:00Z": {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
		"2040-12-31T12:00:00Z": {"2041-03-31T01:00:00Z", "2041-10-27T01:00:00Z"}, // the end of a leap year that there is a rule for
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		all := clockChanges("Europe/Berlin", at)
		if len(all) != len(want) {
			t.Errorf("after %s: %v", now, all)
			continue
		}
		for i, c := range all {
			if got := c.after.UTC().Format(time.RFC3339); got != want[i] {
				t.Errorf("after %s: got %s, want %s", now, got, want[i])
			}
		}
	}
}

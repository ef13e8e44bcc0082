package schedule

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/timer/timetable"
)

// TestQuietUntil goes through what may hang on the end of a run.
func TestQuietUntil(t *testing.T) {
	const wake = 1_000_000
	for what, c := range map[string]struct {
		edit  func(*Kept)
		quiet bool
	}{
		"a run":                       {func(*Kept) {}, true},
		"two that overlap":            {func(k *Kept) { k.Schedule.Open = append(k.Schedule.Open, Run{}) }, true},
		"no run":                      {func(k *Kept) { k.Schedule.Open = nil }, false},
		"a run of an audience":        {func(k *Kept) { k.Schedule.Open[0].Walk = true }, false},
		"a workflow":                  {func(k *Kept) { k.Schedule.Open[0].Flow = true }, false},
		"as many as there may be":     {func(k *Kept) { k.Schedule.Open = make([]Run, MaxOpen) }, false},
		"an occurrence that waits":    {func(k *Kept) { k.Schedule.Waiting = []Occurrence{{}} }, false},
		"a backfill":                  {func(k *Kept) { k.Schedule.Backfills = []Backfill{{}} }, false},
		"a pause after failures":      {func(k *Kept) { k.Schedule.PauseAt = 3 }, false},
		"an interval from the end":    {func(k *Kept) { k.Schedule.Timetable.Entries[0].FromEnd = true }, false},
		"a schedule that is gone":     {func(k *Kept) { k.Gone = true }, false},
		"one that cannot be read":     {func(k *Kept) { k.Schedule = nil }, false},
		"one that never wakes by now": {func(k *Kept) { k.Wake = 0 }, false},
	} {
		s := &Schedule{Open: []Run{{}}}
		s.Timetable.Entries = []timetable.Entry{{Every: time.Minute}}
		k := Kept{Schedule: s, Effects: Effects{Wake: wake}}
		c.edit(&k)
		until := k.QuietUntil()
		if until != 0 != c.quiet || c.quiet && until.Add(quietBefore) != wake {
			t.Errorf("%s: %d", what, until)
		}
	}
}

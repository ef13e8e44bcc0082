package schedule

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

func TestSkippedSinceGoesByTheHistory(t *testing.T) {
	skip := func(at store.Millis, why Reason) Past {
		return Past{Occurrence: Occurrence{At: at, Origin: ByTimetable}, Reason: why, Count: 1}
	}
	run := func(at store.Millis, how Outcome) Past {
		return Past{Occurrence: Occurrence{At: at, Origin: ByTimetable}, Outcome: how}
	}
	ever := map[Reason]int64{Missed: 3}
	for what, c := range map[string]struct {
		s    Schedule
		want bool
	}{
		"nothing has been":               {Schedule{Spec: Spec{History: 10}}, false},
		"runs only":                      {Schedule{Spec: Spec{History: 10}, History: []Past{run(99, Done), run(101, Failed)}}, false},
		"a skip before":                  {Schedule{Spec: Spec{History: 10}, Skipped: ever, History: []Past{skip(99, Missed), run(101, Done)}}, false},
		"a skip then":                    {Schedule{Spec: Spec{History: 10}, Skipped: ever, History: []Past{skip(100, WasPaused)}}, true},
		"a skip since, and runs":         {Schedule{Spec: Spec{History: 10}, Skipped: ever, History: []Past{run(90, Done), skip(101, Overlapped), run(102, Done)}}, true},
		"a late decision of an old time": {Schedule{Spec: Spec{History: 10}, Skipped: ever, History: []Past{skip(101, Missed), skip(50, Excluded)}}, true},
		"none is remembered any more":    {Schedule{Spec: Spec{History: 1}, Skipped: ever, History: []Past{run(102, Done)}}, false},
		"without a history":              {Schedule{Skipped: ever}, true},
		"without a history and skips":    {Schedule{}, false},
	} {
		if got := c.s.SkippedSince(100); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

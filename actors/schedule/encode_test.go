package schedule

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestRoundTrip encodes any schedule, and finds it again.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySchedule(t)
		body, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(s.Name, body)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, s) {
			t.Errorf("%+v\nbecame\n%+v", s, got)
		}
		if !got.Same(&s.Spec) {
			t.Error("its author is said to have decided otherwise")
		}
		got.Template.Task.Payload = append(got.Template.Task.Payload, 'x')
		if got.Same(&s.Spec) {
			t.Error("another payload makes no other spec")
		}
	})
}

func anySchedule(t *rapid.T) *Schedule {
	millis := rapid.Custom(func(t *rapid.T) store.Millis { return store.Millis(rapid.Int64Range(1, 1<<42).Draw(t, "ms")) })
	short := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1<<32).Draw(t, "ms")) * time.Millisecond
	})
	occurrence := rapid.Custom(func(t *rapid.T) Occurrence {
		o := Occurrence{At: millis.Draw(t, "at"), Origin: Origin(rapid.IntRange(1, 3).Draw(t, "origin"))}
		if o.Origin != ByTimetable {
			o.N = rapid.Uint64().Draw(t, "n")
		}
		return o
	})
	run := rapid.Custom(func(t *rapid.T) Run {
		return Run{Occurrence: occurrence.Draw(t, "of"), Due: millis.Draw(t, "due"), Begun: rapid.Bool().Draw(t, "begun"), Walk: rapid.Bool().Draw(t, "walk"), Flow: rapid.Bool().Draw(t, "flow"), Replaced: rapid.Bool().Draw(t, "replaced")}
	})
	past := rapid.Custom(func(t *rapid.T) Past {
		h := Past{Occurrence: occurrence.Draw(t, "of")}
		if rapid.Bool().Draw(t, "skipped") {
			h.Reason, h.Count = Reason(rapid.IntRange(1, int(lastReason)).Draw(t, "reason")), rapid.Int64().Draw(t, "count")
			return h
		}
		h.Outcome, h.Due, h.Ended = Outcome(rapid.IntRange(1, 3).Draw(t, "outcome")), millis.Draw(t, "due"), millis.Draw(t, "ended")
		h.Flow = rapid.Bool().Draw(t, "flow")
		if rapid.Bool().Draw(t, "started") {
			h.Started = millis.Draw(t, "started")
		}
		return h
	})
	backfill := rapid.Custom(func(t *rapid.T) Backfill {
		return Backfill{ID: rapid.String().Draw(t, "id"), From: millis.Draw(t, "from"), To: millis.Draw(t, "to"), Done: millis.Draw(t, "done"), Overlap: Allow, Made: 3, Total: 4}
	})
	entry := rapid.Custom(func(t *rapid.T) timetable.Entry {
		e := timetable.Entry{Cron: rapid.String().Draw(t, "cron"), Every: short.Draw(t, "every"), FromEnd: rapid.Bool().Draw(t, "from end")}
		e.Legacy = e.Cron != "" && rapid.Bool().Draw(t, "legacy")
		for _, at := range rapid.SliceOfN(millis, 0, 3).Draw(t, "at") {
			e.At = append(e.At, at.Time())
		}
		return e
	})
	text := rapid.StringMatching(`[ -~]{1,20}`)
	attribute := rapid.Custom(func(t *rapid.T) store.Attribute {
		return store.Attribute{Key: text.Draw(t, "key"), Value: text.Draw(t, "value")}
	})
	s := &Schedule{
		Spec: Spec{
			Timetable: timetable.Spec{Entries: some(t, entry), Zone: text.Draw(t, "zone"), Start: millis.Draw(t, "start").Time()},
			Calendars: some(t, text), Jitter: short.Draw(t, "jitter"), Overlap: Overlap(rapid.IntRange(1, 5).Draw(t, "overlap")),
			CatchUp: CatchUp(rapid.IntRange(1, 3).Draw(t, "catch-up")), Grace: short.Draw(t, "grace"), Within: short.Draw(t, "within"),
			MaxRuns: rapid.Int64().Draw(t, "max runs"), PauseAt: rapid.IntRange(0, 99).Draw(t, "pause at"),
			History: rapid.IntRange(0, MaxHistory).Draw(t, "history"), Untracked: rapid.Bool().Draw(t, "untracked"),
			Template: Template{
				Task: store.Task{
					Payload: []byte(text.Draw(t, "payload")), Attributes: some(t, attribute), Visibility: short.Draw(t, "visibility"),
					HandlerTimeout: short.Draw(t, "timeout"), MaxRetries: rapid.IntRange(-1, 9).Draw(t, "retries"),
					Backoff: &store.Backoff{Kind: store.BackoffLinear, Base: time.Second}, Traits: &store.Traits{Priority: 3, RateKey: "r"},
				},
				ExpireAfter: short.Draw(t, "expire after"), Slack: short.Draw(t, "slack"),
			},
			Audience: rapid.Ptr(rapid.Custom(func(t *rapid.T) Target {
				return Target{
					Name: "users", Kind: rapid.SampledFrom([]string{"", "digest"}).Draw(t, "kind"), Window: short.Draw(t, "window"), Grain: short.Draw(t, "grain"),
					SpreadFrom: rapid.Int64Range(0, 200).Draw(t, "spread from"), Quiet: uint8(rapid.IntRange(1, 3).Draw(t, "quiet")),
					Rotate: rapid.Bool().Draw(t, "rotate"), Untracked: rapid.Bool().Draw(t, "run untracked"),
				}
			}), true).Draw(t, "audience"),
			Labels: some(t, attribute),
		},
		Name: "nightly", Life: rapid.Uint64().Draw(t, "life"), Created: millis.Draw(t, "created"), Edits: rapid.Int64Range(0, 1<<40).Draw(t, "edits"),
		Phase: Phase(rapid.IntRange(1, 3).Draw(t, "phase")), PausedBy: text.Draw(t, "by"), Note: text.Draw(t, "note"),
		Anchor: millis.Draw(t, "anchor"), Decided: millis.Draw(t, "decided"), Early: some(t, millis), Paused: Span{millis.Draw(t, "paused"), millis.Draw(t, "resumed")},
		Made: rapid.Int64().Draw(t, "made"), Open: some(t, run), Waiting: some(t, occurrence), Failures: rapid.IntRange(0, 99).Draw(t, "failures"),
		Totals: map[Outcome]int64{Failed: 3}, Skipped: map[Reason]int64{Overlapped: 1, lastReason: 4}, History: some(t, past),
		Requests: some(t, text), Backfills: some(t, backfill), Taken: rapid.Int64().Draw(t, "taken"), Recalled: some(t, millis), Watched: millis.Draw(t, "watched"), Dead: some(t, past),
	}
	if rapid.Bool().Draw(t, "ends") {
		s.Timetable.End = millis.Draw(t, "end").Time()
	}
	return s
}

// some are none or a few.
func some[T any](t *rapid.T, g *rapid.Generator[T]) []T {
	list := rapid.SliceOfN(g, 0, 4).Draw(t, "list")
	if len(list) == 0 {
		return nil
	}
	return list
}

// TestAnIdleScheduleIsSmall keeps a million of them affordable.
func TestAnIdleScheduleIsSmall(t *testing.T) {
	at := store.Millis(time.Date(2030, 6, 1, 9, 0, 0, 0, time.UTC).UnixMilli())
	s := &Schedule{
		Spec: Spec{
			Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "0 9 * * MON-FRI"}}, Zone: "Europe/Berlin"},
			Overlap:   Skip, CatchUp: Last, Grace: time.Minute, History: 10,
			Template: Template{Task: store.Task{Payload: make([]byte, 64), MaxRetries: -1}},
		},
		Name: "nightly", Life: math.MaxUint64, Created: at, Phase: Active, Anchor: at, Decided: at, Made: 1000, Taken: 1 << 30,
		Totals: map[Outcome]int64{Done: 990, Failed: 10}, Skipped: map[Reason]int64{Overlapped: 12, Missed: 1},
	}
	for i := range 10 {
		due := at.Add(time.Duration(i) * 24 * time.Hour)
		s.History = append(s.History, Past{Occurrence: Occurrence{due, ByTimetable, 0}, Due: due, Outcome: Done, Started: due + 1, Ended: due + 1234})
	}
	body, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	s.History = nil
	bare, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, without history %d", len(body), len(bare))
	if len(body) > 350-len(CellID(s.Name))-len(List) {
		t.Errorf("%d bytes", len(body))
	}
}

// What can be read is written and read again as the same, and stepped over.
func FuzzDecode(f *testing.F) {
	for seed := range 8 {
		body, err := Encode(rapid.Custom(anySchedule).Example(seed))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode("s", b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		body, err := Encode(s)
		if err != nil {
			return // text that is no UTF-8
		}
		again, err := Decode("s", body)
		if err != nil {
			t.Fatalf("%+v cannot be read again: %v", s, err)
		}
		if !reflect.DeepEqual(s, again) {
			t.Errorf("%+v\nbecame\n%+v", s, again)
		}
	})
}

// TestExpressionsOfBeforeAreReadAsThen decodes what a version of before has stored: entries without a syntax.
func TestExpressionsOfBeforeAreReadAsThen(t *testing.T) {
	stored := &Schedule{Name: "nightly", Life: 1, Phase: Active, Spec: Spec{Overlap: Skip, CatchUp: Last, Timetable: timetable.Spec{
		Entries: []timetable.Entry{{Cron: "0 10 * * ? *", Legacy: true}, {Cron: "0 10 * * *"}, {Every: time.Hour}},
	}}}
	b, err := Encode(stored)
	if err != nil {
		t.Fatal(err)
	}
	var c cell.Schedule
	if err := c.UnmarshalVT(b); err != nil {
		t.Fatal(err)
	}
	if e := c.Spec.Entries; e[0].Syntax != 0 || e[1].Syntax != checkedSyntax || e[2].Syntax != 0 {
		t.Errorf("stored as %v", e)
	}
	read, err := Decode("nightly", b)
	if err != nil {
		t.Fatal(err)
	}
	if e := read.Timetable.Entries; !e[0].Legacy || e[1].Legacy || e[2].Legacy {
		t.Errorf("read as %+v", e)
	}
	if _, err := read.Table(); err != nil {
		t.Errorf("what was taken before does not load: %v", err)
	}
}

package timetable

import (
	"fmt"
	"slices"
	"time"
)

// Limits of what a timetable may say.
const (
	MaxEntries  = 20
	MaxInstants = 100
	MinEvery    = time.Second
)

// Spec is what a timetable says, as its author wrote it.
type Spec struct {
	Entries []Entry   // 1 to MaxEntries
	Zone    string    // name in the IANA database, or Recipient; UTC when empty
	Start   time.Time // no occurrence is before it; zero: no bound
	End     time.Time // no occurrence is after it; zero: no bound
}

// Entry names instants: it has one of Cron, Every and At.
type Entry struct {
	// Cron is an expression of 5 fields, or of 6 with seconds first, or one such as
	// @daily. It knows names, L, W and #, ranges that wrap around, and H, which
	// stands for a number that follows from the name of the schedule.
	Cron string

	// Legacy has Cron read as before fields were checked: its times are those that it
	// had when it was stored, and nothing that was taken then is refused.
	Legacy bool

	// Every is an interval in elapsed time, at least MinEvery. It counts from
	// Start, or from when the timetable was made. With FromEnd it counts from the
	// end of the run before, and is the only entry.
	Every   time.Duration
	FromEnd bool

	// At are up to MaxInstants single instants, in whole milliseconds. In the zone Recipient
	// each is the wall time that it is in UTC.
	At []time.Time
}

// Keep returns the spec with the expressions that stored has, too, read as they are read there: putting a
// schedule again with other labels does not move its times.
func (s Spec) Keep(stored Spec) Spec {
	s.Entries = slices.Clone(s.Entries)
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Legacy = e.Cron != "" && slices.ContainsFunc(stored.Entries, func(was Entry) bool { return was.Cron == e.Cron && was.Legacy })
	}
	return s
}

// A Timetable names occurrences. It does not change, and many goroutines may use it.
type Timetable struct {
	entries    []entry
	zone       *time.Location
	start, end time.Time
	fromEnd    time.Duration
}

// entry names the first of its instants after t; false when there is none.
type entry interface {
	next(t time.Time) (time.Time, bool)
}

// New returns the timetable that spec describes. H in expressions follows from
// name. Intervals count from made when the spec has no start. The error is an *Error.
func New(spec Spec, name string, made time.Time) (*Timetable, error) {
	if n := len(spec.Entries); n == 0 || n > MaxEntries {
		return nil, fault(OutOfRange, "entries", "%d of them, and 1 to %d are possible", n, MaxEntries)
	}
	if !spec.Start.IsZero() && !spec.End.IsZero() && spec.End.Before(spec.Start) {
		return nil, fault(OutOfRange, "end_time", "is before start_time")
	}
	zone, err := zoneOf(spec.Zone)
	if err != nil {
		return nil, err
	}
	t := &Timetable{zone: zone, start: spec.Start, end: spec.End}
	anchor := t.anchor(made)
	for i, e := range spec.Entries {
		if err := t.add(e, name, anchor, fmt.Sprintf("entries[%d]", i)); err != nil {
			return nil, err
		}
	}
	if t.fromEnd > 0 && len(spec.Entries) > 1 {
		return nil, fault(OutOfRange, "entries", "an interval from the end of a run is the only entry")
	}
	return t, nil
}

// MadeAt returns the timetable as New does for the same spec and name, made at another moment.
func (t *Timetable) MadeAt(made time.Time) *Timetable {
	again := *t
	again.entries = slices.Clone(t.entries)
	for i, e := range again.entries {
		if e, ok := e.(interval); ok {
			again.entries[i] = interval{anchor: t.anchor(made), every: e.every}
		}
	}
	return &again
}

// anchor is from when intervals count.
func (t *Timetable) anchor(made time.Time) time.Time {
	if !t.start.IsZero() {
		made = t.start
	}
	return time.UnixMilli(made.UnixMilli())
}

func (t *Timetable) add(e Entry, name string, anchor time.Time, field string) error {
	switch {
	case e.Cron != "" && e.Every == 0 && len(e.At) == 0 && !e.FromEnd:
		read := newMatcher
		if e.Legacy {
			read = newLegacyMatcher
		}
		m, err := read(e.Cron, name, t.zone, field+".cron")
		if err != nil {
			return err
		}
		t.entries = append(t.entries, m)
	case e.Cron == "" && e.Every != 0 && len(e.At) == 0:
		if e.Every < MinEvery {
			return fault(BadCron, field+".every", "%v is less than %v", e.Every, MinEvery)
		}
		if e.FromEnd {
			t.fromEnd = e.Every
			return nil
		}
		t.entries = append(t.entries, interval{anchor: anchor, every: e.Every})
	case e.Cron == "" && e.Every == 0 && len(e.At) > 0 && !e.FromEnd:
		if len(e.At) > MaxInstants {
			return fault(OutOfRange, field+".at", "%d instants, and %d are possible", len(e.At), MaxInstants)
		}
		t.entries = append(t.entries, newInstants(e.At, t.zone))
	default:
		return fault(BadCron, field, "an entry has one of cron, every and at")
	}
	return nil
}

// Check returns an *Error when nothing occurs after a time, or when a jitter of this
// width could bring the next 1,000 occurrences out of order: it is at most half of
// the smallest distance between two of them.
func (t *Timetable) Check(after time.Time, jitter time.Duration) error {
	if _, ok := t.Next(after); !ok {
		return fault(NeverOccurs, "timetable", "no occurrence in the next %d years", searchYears)
	}
	if jitter < 0 {
		return fault(OutOfRange, "jitter", "is negative")
	}
	if jitter == 0 {
		return nil
	}
	if smallest := t.smallestDistance(after); smallest > 0 && jitter > smallest/2 {
		return fault(OutOfRange, "jitter", "%v is more than half of the %v between two occurrences", jitter, smallest)
	}
	return nil
}

// Zone returns the location in which the timetable counts wall time.
func (t *Timetable) Zone() *time.Location { return t.zone }

// FromEnd reports whether occurrences count from the end of the run before. Next
// is then to be asked with that end, or, before any run, with the time the
// timetable was made.
func (t *Timetable) FromEnd() bool { return t.fromEnd > 0 }

// Next returns the first occurrence after a time, to the millisecond and in UTC;
// false when there is none in the next 40 years.
func (t *Timetable) Next(after time.Time) (time.Time, bool) {
	if t.fromEnd > 0 {
		return t.bounded(latest(after.Add(t.fromEnd), t.start))
	}
	if !t.start.IsZero() && after.Before(t.start) {
		after = t.start.Add(-1)
	}
	var first time.Time
	for _, e := range t.entries {
		if at, ok := e.next(after); ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		return time.Time{}, false
	}
	return t.bounded(first)
}

func (t *Timetable) bounded(at time.Time) (time.Time, bool) {
	if !t.end.IsZero() && at.After(t.end) {
		return time.Time{}, false
	}
	return at.UTC(), true
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// interval names anchor + k × every, for k from 0.
type interval struct {
	anchor time.Time
	every  time.Duration
}

func (i interval) next(t time.Time) (time.Time, bool) {
	if t.Before(i.anchor) {
		return i.anchor, true
	}
	// Milliseconds, because a Duration ends after 292 years.
	passed, every := t.UnixMilli()-i.anchor.UnixMilli(), i.every.Milliseconds()
	return time.UnixMilli(i.anchor.UnixMilli() + (passed/every+1)*every), true
}

// instants are single ones, in order.
type instants []time.Time

func newInstants(at []time.Time, zone *time.Location) instants {
	out := make(instants, len(at))
	for i, t := range at {
		if zone == FirstZone {
			t, _ = Instant(t.UTC(), zone)
		}
		out[i] = time.UnixMilli(t.UnixMilli())
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

func (a instants) next(t time.Time) (time.Time, bool) {
	for _, at := range a {
		if at.After(t) {
			return at, true
		}
	}
	return time.Time{}, false
}

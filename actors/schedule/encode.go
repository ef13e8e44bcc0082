package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// ErrCorrupt says that the body of a cell is none of a schedule.
var ErrCorrupt = errors.New("the record of a schedule cannot be read")

// Encode returns the body of the schedule's cell.
func Encode(s *Schedule) ([]byte, error) {
	spec, err := encodeSpec(&s.Spec)
	if err != nil {
		return nil, err
	}
	return (&cell.Schedule{
		Spec:      spec,
		Life:      s.Life,
		Created:   int64(s.Created),
		Phase:     int32(s.Phase),
		PausedBy:  s.PausedBy,
		Note:      s.Note,
		Edits:     s.Edits,
		Anchor:    int64(s.Anchor),
		Decided:   int64(s.Decided),
		Early:     distances(s.Early),
		SkipFrom:  int64(s.Paused.From),
		SkipUntil: int64(s.Paused.Until),
		Made:      s.Made,
		Open:      encodeRuns(s.Open),
		Waiting:   encodeOccurrences(s.Waiting, func(o Occurrence) Occurrence { return o }),
		Failures:  int32(s.Failures),
		Totals:    column(s.Totals, Removed),
		Skipped:   column(s.Skipped, lastReason),
		History:   encodeHistory(s.History),
		Dead:      encodeHistory(s.Dead),
		Requests:  s.Requests,
		Taken:     s.Taken,
		Recalled:  distances(s.Recalled),
		Watched:   int64(s.Watched),
		Backfills: encodeBackfills(s.Backfills),
	}).MarshalVT()
}

// Decode reads what Encode wrote. What it returns shares nothing with b. The error wraps
// ErrCorrupt.
func Decode(name string, b []byte) (*Schedule, error) {
	var c cell.Schedule
	if err := c.UnmarshalVT(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	s := &Schedule{
		Name:     name,
		Life:     c.Life,
		Created:  store.Millis(c.Created),
		Phase:    Phase(c.Phase),
		PausedBy: c.PausedBy,
		Note:     c.Note,
		Edits:    c.Edits,
		Anchor:   store.Millis(c.Anchor),
		Decided:  store.Millis(c.Decided),
		Early:    moments(c.Early),
		Paused:   Span{store.Millis(c.SkipFrom), store.Millis(c.SkipUntil)},
		Made:     c.Made,
		Failures: int(c.Failures),
		Totals:   counts[Outcome](c.Totals),
		Skipped:  counts[Reason](c.Skipped),
		Requests: c.Requests,
		Taken:    c.Taken,
		Recalled: moments(c.Recalled),
		Watched:  store.Millis(c.Watched),
	}
	for _, b := range c.Backfills {
		s.Backfills = append(s.Backfills, Backfill{
			ID: b.Id, From: store.Millis(b.From), To: store.Millis(b.To), Done: store.Millis(b.Done), Overlap: Overlap(b.Overlap), Made: b.Made, Total: b.Total,
		})
	}
	d := decoder{}
	s.Spec, s.Open, s.Waiting = d.spec(c.Spec), d.runs(c.Open), d.occurrences(c.Waiting)
	s.History, s.Dead = d.history(c.History), d.history(c.Dead)
	d.check(s.Phase >= Active && s.Phase <= Finished, "phase %d", c.Phase)
	d.check(len(c.Totals) <= int(Removed) && len(c.Skipped) <= int(lastReason), "totals")
	if d.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, d.err)
	}
	return s, nil
}

func encodeBackfills(list []Backfill) (c []*cell.Backfill) {
	for _, b := range list {
		c = append(c, &cell.Backfill{
			Id: b.ID, From: int64(b.From), To: int64(b.To), Done: int64(b.Done), Overlap: int32(b.Overlap), Made: b.Made, Total: b.Total,
		})
	}
	return c
}

// checkedSyntax marks expressions whose fields were checked when they were put. Those without it were stored
// by a version of before, and keep its rules until they are changed.
const checkedSyntax = 1

// Same reports whether two authors decided the same.
func (s *Spec) Same(other *Spec) bool {
	a, err := encodeSpec(s)
	if err != nil {
		return false
	}
	b, err := encodeSpec(other)
	if err != nil {
		return false
	}
	one, _ := a.MarshalVT() // an error leaves nothing to compare
	two, _ := b.MarshalVT()
	return len(one) > 0 && bytes.Equal(one, two)
}

func encodeSpec(s *Spec) (c *cell.Spec, err error) {
	c = &cell.Spec{
		Zone:      s.Timetable.Zone,
		Start:     encodeTime(s.Timetable.Start),
		End:       encodeTime(s.Timetable.End),
		Calendars: s.Calendars,
		JitterMs:  s.Jitter.Milliseconds(),
		Overlap:   int32(s.Overlap),
		CatchUp:   int32(s.CatchUp),
		GraceMs:   s.Grace.Milliseconds(),
		WithinMs:  s.Within.Milliseconds(),
		MaxRuns:   s.MaxRuns,
		PauseAt:   int32(s.PauseAt),
		History:   int32(s.History),
		Untracked: s.Untracked,
	}
	if c.Template, err = s.Template.record(); err != nil {
		return nil, err
	}
	c.Audience = encodeTarget(s.Audience)
	if c.Workflow, err = encodeFlow(s.Workflow); err != nil {
		return nil, err
	}
	for _, e := range s.Timetable.Entries {
		at := make([]store.Millis, len(e.At))
		for i, t := range e.At {
			at[i] = store.Millis(t.UnixMilli())
		}
		entry := &cell.Entry{Cron: e.Cron, EveryMs: e.Every.Milliseconds(), FromEnd: e.FromEnd, At: distances(at)}
		if e.Cron != "" && !e.Legacy {
			entry.Syntax = checkedSyntax
		}
		c.Entries = append(c.Entries, entry)
	}
	for _, l := range s.Labels {
		c.Labels = append(c.Labels, &cell.Label{Key: l.Key, Value: l.Value})
	}
	return c, nil
}

func (d *decoder) spec(c *cell.Spec) (s Spec) {
	d.check(c.GetTemplate() != nil, "no template")
	if d.err != nil {
		return s
	}
	s = Spec{
		Timetable: timetable.Spec{Zone: c.Zone, Start: decodeTime(c.Start), End: decodeTime(c.End)},
		Calendars: c.Calendars,
		Jitter:    millis(c.JitterMs),
		Overlap:   Overlap(c.Overlap),
		CatchUp:   CatchUp(c.CatchUp),
		Grace:     millis(c.GraceMs),
		Within:    millis(c.WithinMs),
		MaxRuns:   c.MaxRuns,
		PauseAt:   int(c.PauseAt),
		History:   int(c.History),
		Untracked: c.Untracked,
		Template:  d.template(c.Template),
	}
	d.check(s.Overlap >= Skip && s.Overlap <= Allow, "overlap %d", c.Overlap)
	d.check(s.CatchUp >= Last && s.CatchUp <= None, "catch-up %d", c.CatchUp)
	d.check(min(c.JitterMs, c.GraceMs, c.WithinMs) >= 0, "negative times")
	d.check(s.History >= 0 && s.History <= MaxHistory, "history %d", c.History)
	for _, e := range c.Entries {
		entry := timetable.Entry{Cron: e.Cron, Every: millis(e.EveryMs), FromEnd: e.FromEnd, Legacy: e.Cron != "" && e.Syntax < checkedSyntax}
		for _, at := range moments(e.At) {
			entry.At = append(entry.At, at.Time())
		}
		s.Timetable.Entries = append(s.Timetable.Entries, entry)
	}
	s.Audience, s.Workflow = d.target(c.Audience), d.flow(c.Workflow)
	for _, l := range c.Labels {
		s.Labels = append(s.Labels, store.Attribute{Key: l.Key, Value: l.Value})
	}
	return s
}

func encodeTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func decodeTime(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return store.Millis(*ms).Time()
}

// millis is a length of time, and as much as there can be for what is more.
func millis(ms int64) time.Duration {
	return time.Duration(min(ms, int64(maxLength/time.Millisecond))) * time.Millisecond
}

const maxLength = 1 << 62

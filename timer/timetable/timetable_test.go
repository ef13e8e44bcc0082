package timetable

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"
)

// TestTimetable runs the scenarios of testdata. Times are local to the zone of the
// command; entries are a line each.
func TestTimetable(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // what a property left behind
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s := scenario{T: t, TestData: d}
			s.zone = s.text("zone", "UTC")
			switch d.Cmd {
			case "next":
				return s.next()
			case "check":
				return s.check()
			case "excludes":
				return s.excludes()
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

type scenario struct {
	*testing.T
	*datadriven.TestData
	zone string
}

func (s scenario) text(key, otherwise string) string {
	s.MaybeScanArgs(s.T, key, &otherwise)
	return otherwise
}

// at reads a local time; the zero time when the argument is absent.
func (s scenario) at(key string) time.Time {
	text := s.text(key, "")
	if text == "" {
		return time.Time{}
	}
	return s.local(text)
}

func (s scenario) local(text string) time.Time {
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		zone = time.UTC
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at
		}
	}
	s.Fatalf(s.T, "%q is no time", text)
	return time.Time{}
}

func (s scenario) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.Fatalf(s.T, "%v", err)
	}
	return d
}

func (s scenario) spec() Spec {
	spec := Spec{Zone: s.zone, Start: s.at("start"), End: s.at("end")}
	for line := range strings.Lines(s.Input) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "cron":
			spec.Entries = append(spec.Entries, Entry{Cron: rest})
		case "every":
			spec.Entries = append(spec.Entries, Entry{Every: s.duration(rest)})
		case "every-from-end":
			spec.Entries = append(spec.Entries, Entry{Every: s.duration(rest), FromEnd: true})
		case "at":
			var at []time.Time
			for _, text := range strings.Fields(rest) {
				at = append(at, s.local(text))
			}
			spec.Entries = append(spec.Entries, Entry{At: at})
		default:
			spec.Entries = append(spec.Entries, Entry{})
		}
	}
	return spec
}

func (s scenario) next() string {
	at, n := s.at("after"), 3
	s.MaybeScanArgs(s.T, "n", &n)
	table, err := New(s.spec(), s.text("name", "nightly"), at)
	if err != nil {
		return refusal(s.T, err)
	}
	var out strings.Builder
	for range n {
		var ok bool
		if at, ok = table.Next(at); !ok {
			out.WriteString("never\n")
			break
		}
		fmt.Fprintln(&out, at.In(table.Zone()).Format("Mon 2006-01-02 15:04:05.999 -07"))
	}
	return out.String()
}

func (s scenario) check() string {
	after := s.at("after")
	table, err := New(s.spec(), "nightly", after)
	if err == nil {
		err = table.Check(after, s.duration(s.text("jitter", "0s")))
	}
	if err != nil {
		return refusal(s.T, err)
	}
	return "ok\n"
}

func refusal(t *testing.T, err error) string {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is not an *Error: %v", err, err)
	}
	fault := map[Fault]string{BadCron: "bad cron", BadZone: "bad zone", OutOfRange: "out of range", NeverOccurs: "never occurs"}[e.Fault]
	return fault + ": " + e.Error() + "\n"
}

func (s scenario) excludes() string {
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		s.Fatalf(s.T, "%v", err)
	}
	c := &Calendar{
		Days:     []Date{{2030, time.December, 25}},
		Yearly:   []MonthDay{{time.January, 1}, {time.February, 29}},
		Weekdays: []time.Weekday{time.Saturday},
		Spans:    []Span{{time.Date(2030, 7, 1, 12, 0, 0, 0, time.UTC), time.Date(2030, 7, 3, 6, 30, 0, 0, time.UTC)}},
	}
	var out strings.Builder
	for _, text := range strings.Fields(s.Input) {
		fmt.Fprintf(&out, "%s %t\n", text, c.Excludes(s.local(text), zone))
	}
	return out.String()
}

var someZones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "America/Havana", "America/Santiago", "Asia/Beirut", "Asia/Gaza",
	"Asia/Tehran", "Asia/Kathmandu", "Asia/Kolkata", "Africa/Casablanca", "Africa/Cairo", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll",
}

var expressions = []string{
	"30 2 * * *", "0 0 * * *", "15 0 * * *", "*/30 * * * *", "0 */2 * * *", "@daily", "@hourly", "30 1,2,3 * * *", "0 0 L * *", "0 9 LW * *", "0 9 * * FRI#2", "59 59 23 * * SUN",
	"*/17 30 2 * * *", "H H * * *", "0 22-2 * * MON-FRI", "0 0 29 2 *", "0 12 13 * FRI",
}

// TestNextAgreesWithAWalk compares Next with what a walk over some hours finds, around
// a transition of the zone where there is one.
func TestNextAgreesWithAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, expression := rapid.SampledFrom(someZones).Draw(t, "zone"), rapid.SampledFrom(expressions).Draw(t, "cron")
		zone := must(time.LoadLocation(name))
		from := time.Unix(rapid.Int64Range(1_200_000_000, 2_000_000_000).Draw(t, "from"), 0)
		if _, to := from.In(zone).ZoneBounds(); !to.IsZero() {
			from = to.Add(-rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour, 3 * time.Hour}).Draw(t, "before"))
		}
		m, err := newMatcher(expression, "nightly", zone, "cron")
		if err != nil {
			t.Fatal(err)
		}
		until := from.Add(6 * time.Hour)
		want := walk(m, from, until)
		var got []time.Time
		for at, ok := m.next(from); ok && at.Before(until); at, ok = m.next(at) {
			got = append(got, at.UTC())
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("after %v: got %v, want %v", from.In(zone), got, want)
		}
	})
}

// walk finds the occurrences between two instants by looking at each wall time.
func walk(m *matcher, from, until time.Time) []time.Time {
	step := time.Minute
	if m.spec.Second != 1 {
		step = time.Second
	}
	var out []time.Time
	at := from.Truncate(step).Add(-3 * time.Hour) // what has been, for wall times that come again
	last, seen := stretchAt(at, m.zone).wall(at), map[time.Time]bool{}
	for at = at.Add(step); at.Before(until); at = at.Add(step) {
		w := stretchAt(at, m.zone).wall(at)
		hit := m.matches(w) && (!m.fixed || !seen[w])
		for gap := last.Add(step); m.fixed && !hit && w.Sub(last) <= longGap && gap.Before(w); gap = gap.Add(step) {
			hit = m.matches(gap)
		}
		if hit && at.After(from) {
			out = append(out, at.UTC())
		}
		seen[w], last = true, w
	}
	return out
}

func (m *matcher) matches(w time.Time) bool { return m.spec.Next(w.Add(-time.Second)).Equal(w) }

func TestNextRisesAndSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{Zone: rapid.SampledFrom(someZones).Draw(t, "zone")}
		for range rapid.IntRange(1, 3).Draw(t, "entries") {
			spec.Entries = append(spec.Entries, Entry{Cron: rapid.SampledFrom(expressions).Draw(t, "cron")})
		}
		at := time.UnixMilli(rapid.Int64Range(1_000_000_000_000, 2_500_000_000_000).Draw(t, "at"))
		table, err := New(spec, "nightly", at)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			next, ok := table.Next(at)
			if !ok || !next.After(at) {
				t.Fatalf("Next(%v) = %v, %t", at, next, ok)
			}
			between := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at)-1)).Draw(t, "between")))
			if again, _ := table.Next(between); !again.Equal(next) {
				t.Fatalf("Next(%v) = %v, and Next(%v) = %v", at, next, between, again)
			}
			at = next
		}
	})
}

func TestJitterStaysWithinItsWidth(t *testing.T) {
	occurrence := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const width = 10 * time.Millisecond
	seen := map[time.Duration]int{}
	for life := range uint64(11_000) {
		due := Jitter(life, occurrence, width)
		if again := Jitter(life, occurrence, width); !again.Equal(due) {
			t.Fatalf("life %d: %v, then %v", life, due, again)
		}
		seen[due.Sub(occurrence)]++
	}
	for shift := time.Duration(0); shift <= width; shift += time.Millisecond {
		if n := seen[shift]; n < 800 || n > 1200 {
			t.Errorf("%d of 11,000 lives are shifted by %v, and some 1,000 are expected", n, shift)
		}
	}
	if len(seen) != 11 {
		t.Errorf("shifts are %v", seen)
	}
}

// FuzzCron feeds expressions: each is refused or names rising instants.
func FuzzCron(f *testing.F) {
	for _, e := range expressions {
		f.Add(e)
	}
	f.Add("TZ=UTC * * * * *")
	f.Add("@every -1s")
	f.Add("* * 31 2 *")
	f.Fuzz(func(t *testing.T, expression string) {
		at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
		table, err := New(Spec{Zone: "Europe/Berlin", Entries: []Entry{{Cron: expression}}}, "nightly", at)
		if err != nil {
			refusal(t, err)
			return
		}
		for range 3 {
			next, ok := table.Next(at)
			if !ok {
				return
			}
			if !next.After(at) {
				t.Fatalf("%q: %v comes after %v", expression, next, at)
			}
			at = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, expression := range []string{"*/5 * * * *", "30 2 * * *", "0 0 30 2 *"} {
		b.Run(expression, func(b *testing.B) {
			m, err := newMatcher(expression, "nightly", must(time.LoadLocation("Europe/Berlin")), "cron")
			if err != nil {
				b.Fatal(err)
			}
			at := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				m.next(at)
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestMadeAt compares timetables that were made at a moment with those that were made once more.
func TestMadeAt(t *testing.T) {
	first, then := time.Unix(0, 0), time.Date(2026, 3, 28, 1, 2, 3, 4_000_000, time.UTC)
	for what, spec := range map[string]Spec{
		"an interval":              {Entries: []Entry{{Every: 7 * time.Minute}}},
		"an interval from a start": {Entries: []Entry{{Every: 7 * time.Minute}}, Start: then.Add(time.Hour)},
		"one from the end":         {Entries: []Entry{{Every: time.Hour, FromEnd: true}}},
		"several":                  {Entries: []Entry{{Every: 50 * time.Hour}, {Cron: "H 2 * * *"}, {At: []time.Time{then.Add(time.Minute)}}}, Zone: "Europe/Berlin"},
	} {
		again, want := must(New(spec, "n", first)).MadeAt(then), must(New(spec, "n", then))
		at := then
		for range 10 {
			got, ok := again.Next(at)
			next, there := want.Next(at)
			if ok != there || !got.Equal(next) {
				t.Errorf("%s: after %v comes %v, want %v", what, at, got, next)
			}
			at = next
		}
	}
}

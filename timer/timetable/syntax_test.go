package timetable

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestHash spreads 10,000 schedules.
func TestHash(t *testing.T) {
	const names = 10_000
	first := func(e, name string) time.Time {
		at := time.Date(2026, 11, 28, 16, 0, 0, 0, time.UTC)
		table, err := New(Spec{Entries: []Entry{{Cron: e}}}, name, at)
		if err != nil {
			t.Fatal(err)
		}
		at, _ = table.Next(at)
		return at
	}
	minutes, seconds, weekdays, days, ranges := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for i := range names {
		name := fmt.Sprintf("job-%d", i)
		minutes[first("H H * * *", name).Format("15:04")]++
		seconds[first("H H 3 * * *", name).Format("04:05")]++
		weekdays[first("0 3 * * H", name).Format("Mon")]++
		ranges[first("0 3 * * H(5-7)", name).Format("Mon")]++
		days[first("0 3 H * *", name).Format("2")]++
	}
	spread := func(what string, got map[string]int, n, atLeast int) {
		t.Helper()
		fullest, emptiest := 0, names
		for _, count := range got {
			fullest, emptiest = max(fullest, count), min(emptiest, count)
		}
		// Five standard deviations of a Poisson distribution, and a little.
		if mean := float64(names) / float64(n); len(got) > n || len(got) < atLeast || float64(fullest) > mean+5*math.Sqrt(mean)+3 || n < 100 && float64(emptiest) < mean-5*math.Sqrt(mean) {
			t.Errorf("%s: %d of %d numbers are used, by %d to %d of %d schedules", what, len(got), n, emptiest, fullest, names)
		}
	}
	spread("H H * * *", minutes, 1440, 1430)
	spread("H H 3 * * *", seconds, 3600, 3300)
	spread("0 3 * * H", weekdays, 7, 7)
	spread("0 3 * * H(5-7)", ranges, 3, 3)
	spread("0 3 H * *", days, 28, 28)
}

// TestHashedDayIsInEachMonth and a step is refused or taken whatever the name is.
func TestHashedDayIsInEachMonth(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 200 {
		name := fmt.Sprintf("job-%d", i)
		for _, e := range []string{"0 3 H * *", "0 3 H(20-28) * *", "0 3 H(25-3) * *"} {
			table, err := New(Spec{Entries: []Entry{{Cron: e}}}, name, from)
			if err != nil {
				t.Fatal(err)
			}
			at, n := from, 0
			for ; at.Before(from.AddDate(2, 0, 0)); n++ {
				at, _ = table.Next(at)
			}
			if n != 25 {
				t.Errorf("%s of %s: %d in two years", e, name, n-1)
			}
		}
		for _, e := range []string{"H/60 * * * *", "H/70 * * * *", "* H/24 * * *", "0 3 H/28 * *", "0 3 * * H/7", "H(0-9)/10 * * * *", "0 3 H(20-31) * *"} {
			if _, err := New(Spec{Entries: []Entry{{Cron: e}}}, name, from); err == nil {
				t.Errorf("%s is taken for %s", e, name)
			}
		}
		for _, e := range []string{"H/59 * * * *", "* H/23 * * *", "0 3 H/27 * *", "0 3 * * H/6", "H(0-9)/9 * * * *", "H(55-4)/5 * * * *"} {
			if _, err := New(Spec{Entries: []Entry{{Cron: e}}}, name, from); err != nil {
				t.Errorf("%s is refused for %s: %v", e, name, err)
			}
		}
	}
}

// TestHashStepsEvenly has H/20 in each third of an hour, and over the end of one.
func TestHashStepsEvenly(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 {
		for e, distances := range map[string]string{"H/20 * * * *": "20m0s 20m0s 20m0s", "H(50-9)/10 * * * *": "10m0s 50m0s 10m0s"} {
			table := must(New(Spec{Entries: []Entry{{Cron: e}}}, fmt.Sprint(i), from))
			var got []string
			at, _ := table.Next(from.Add(30 * time.Minute))
			for range 3 {
				next, _ := table.Next(at)
				got, at = append(got, next.Sub(at).String()), next
			}
			if s := strings.Join(got, " "); e == "H/20 * * * *" && s != distances || e != "H/20 * * * *" && s != distances && s != "50m0s 10m0s 50m0s" {
				t.Errorf("%s of %d: %s", e, i, s)
			}
		}
	}
}

// TestLegacyExpressionsKeepTheirTimes has those that a version of before stored, with what came next by its rules.
func TestLegacyExpressionsKeepTheirTimes(t *testing.T) {
	from := time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	for e, want := range map[string]string{
		"H H * * *":      "25 02:38, 26 02:38", // of the name nightly
		"0 0 */2 * 1":    "25 00:00, 26 00:00",
		"*/30 2 * * *":   "25 02:00, 25 02:30, 26 02:00",
		"0 10 * * ? *":   "24 12:10, 24 13:10",
		"0 ? * * *":      "24 13:00, 24 14:00",
		"0 9 ,1 * *":     "1 09:00",
		"0 9 +1 * *":     "1 09:00",
		"0 0 9 ? * 2":    "27 09:00",
		"0 25-3 * * *":   "25 01:00, 25 02:00", // 25 is 1 there
		"0 9 * * 5-1/2":  "25 09:00, 26 09:00",
		"@daily":         "25 00:00",
		"0/10 * * * ? *": "24 12:00",
	} {
		table, err := New(Spec{Entries: []Entry{{Cron: e, Legacy: true}}, Zone: "Europe/Berlin"}, "nightly", from)
		if err != nil {
			t.Errorf("%s does not load any more: %v", e, err)
			continue
		}
		var got []string
		at := from.Add(-2 * time.Hour)
		for range strings.Count(want, ",") + 1 {
			at, _ = table.Next(at)
			got = append(got, at.In(table.Zone()).Format("2 15:04"))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", e, s, want)
		}
	}
}

// TestKeep has the expressions that are stored read as there, and no others.
func TestKeep(t *testing.T) {
	stored := Spec{Entries: []Entry{{Cron: "0 0 */2 * 1", Legacy: true}, {Cron: "H 3 * * *"}, {Every: time.Hour}}}
	put := Spec{Entries: []Entry{{Cron: "H 3 * * *"}, {Every: time.Hour}, {Cron: "0 0 */2 * 1"}, {Cron: "0 0 */2 * 2", Legacy: true}}}
	for i, e := range put.Keep(stored).Entries {
		if e.Legacy != (i == 2) {
			t.Errorf("%+v", e)
		}
	}
	if put.Entries[2].Legacy {
		t.Error("what was put is changed")
	}
}

// TestWhatIsTakenIsTakenByNodesOfBefore because they may own the shard of a schedule while a fleet is updated.
func TestWhatIsTakenIsTakenByNodesOfBefore(t *testing.T) {
	number := rapid.SampledFrom([]string{"0", "1", "5", "7", "07", "12", "28", "31", "59", "MON", "sun", "JAN", "L", "H", "h", "*", "?", "60", "3", "2"})
	item := rapid.Custom(func(t *rapid.T) string {
		n := number.Draw(t, "number")
		return n + rapid.SampledFrom([]string{"", "", "", "-" + number.Draw(t, "to"), "/" + number.Draw(t, "step"), "-5/2", "W", "#2", "#L", "L", "(1-5)", "(5-1)/2", "~"}).Draw(t, "more")
	})
	field := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(item, 1, 2).Draw(t, "items"), ",")
	})
	rapid.Check(t, func(t *rapid.T) {
		f := strings.Fields("* * * * *")
		f[rapid.IntRange(0, 4).Draw(t, "at")] = field.Draw(t, "field")
		f[rapid.IntRange(0, 4).Draw(t, "at")] = field.Draw(t, "field")
		e := strings.Join(f, " ")
		if _, err := newMatcher(e, "nightly", time.UTC, "cron"); err != nil {
			return
		}
		if _, err := newLegacyMatcher(e, "nightly", time.UTC, "cron"); err != nil {
			t.Fatalf("%q is taken, and a node of before has: %v", e, err)
		}
	})
}

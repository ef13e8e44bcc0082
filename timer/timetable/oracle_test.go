package timetable

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The oracle says when an expression occurs by looking at each minute that a clock on the wall shows. It reads
// expressions by rules of its own, asks package time alone for offsets, and shares nothing with what it checks. The
// rules are those of Debian's cron: entry.c and find_jobs for the days, the loop of cron.c for clocks that change.

var (
	oracleShare = flag.Int("oracle.share", 40, "one in so many of expressions × zones × years is compared with the oracle")
	oracleWhole = flag.Bool("oracle.whole", false, "compare whole years, and not only days around changes of the clock")
)

var oracleZones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "America/Havana", "America/Santiago", "Asia/Beirut", "Asia/Gaza",
	"Asia/Tehran", "Asia/Kathmandu", "Asia/Kolkata", "Africa/Casablanca", "Africa/Cairo", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Chatham", "Antarctica/Troll",
}

// oracleYears are one in which zones left out days, one with summer times that have ended since, now, and one beyond what databases list.
var oracleYears = []int{2011, 2018, 2026, 2099}

const oracleExpressions = 300

func TestOracle(t *testing.T) {
	all := slices.Concat(crontabExpressions(t), randomExpressions(oracleExpressions))[:oracleExpressions]
	var compared, pairs atomic.Int64
	t.Run("spans", func(t *testing.T) {
		for _, zone := range oracleZones {
			for _, year := range oracleYears {
				t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(zone, "/", "-"), year), func(t *testing.T) {
					t.Parallel()
					from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
					r := rand.New(rand.NewPCG(uint64(year), 5))
					var spans []*minutes
					for _, e := range all {
						h := fnv.New32a()
						fmt.Fprint(h, zone, year, e)
						if int(h.Sum32()%1_000_003)%*oracleShare != 0 {
							continue
						}
						if spans == nil {
							whole := minutesOf(must(time.LoadLocation(zone)), from, from.AddDate(1, 0, 0))
							if spans = whole.aroundChanges(); *oracleWhole {
								spans = []*minutes{whole}
							}
						}
						for _, m := range spans {
							compared.Add(int64(m.compare(t, e, zone, r)))
						}
						pairs.Add(1)
					}
				})
			}
		}
	})
	t.Logf("%d occurrences of %d expressions in a zone and a year", compared.Load(), pairs.Load())
}

// minutes are those of a span: how many a clock on the wall shows at each of them, since 1970.
type minutes struct {
	from time.Time
	wall []int32
}

// lead is how much of what was before is looked at, for the wall times that come again.
const lead = 2 * 24 * 60

func minutesOf(zone *time.Location, from, to time.Time) *minutes {
	m := &minutes{from: from.Add(-lead * time.Minute)}
	m.wall = make([]int32, int(to.Sub(m.from)/time.Minute))
	for i := range m.wall {
		at := m.from.Add(time.Duration(i) * time.Minute)
		_, offset := at.In(zone).Zone()
		m.wall[i] = int32((at.Unix() + int64(offset)) / 60)
	}
	return m
}

// changes are where a clock on the wall jumps.
func (m *minutes) changes() (at []int) {
	for i := range m.wall[1:] {
		if m.wall[i+1] != m.wall[i]+1 {
			at = append(at, i+1)
		}
	}
	return at
}

// aroundChanges are ten days on both sides of each change; where there is none, twenty days of a spring.
func (m *minutes) aroundChanges() (spans []*minutes) {
	const side = 10 * 24 * 60
	at := m.changes()
	if len(at) == 0 {
		at = []int{60 * 24 * 60}
	}
	for _, i := range at {
		first, last := max(0, i-side-lead), min(len(m.wall), i+side)
		spans = append(spans, &minutes{from: m.from.Add(time.Duration(first) * time.Minute), wall: m.wall[first:last]})
	}
	return spans
}

// compare goes from occurrence to occurrence, and then asks at some moments, most of them near changes.
func (m *minutes) compare(t *testing.T, text, zone string, r *rand.Rand) int {
	table, err := New(Spec{Zone: zone, Entries: []Entry{{Cron: text}}}, "nightly", m.from)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var all []int64
	m.occurrences(newOracle(t, text), func(at time.Time) { all = append(all, at.Unix()) })
	from, to := m.from.Add(lead*time.Minute), m.from.Add(time.Duration(len(m.wall))*time.Minute)
	next := func(after time.Time) (at time.Time, same bool) {
		at, ok := table.Next(after)
		i, found := slices.BinarySearch(all, after.Unix())
		if found { // in whole seconds
			i++
		}
		if i == len(all) {
			return at, !ok || !at.Before(to)
		}
		return at, ok && at.Equal(time.Unix(all[i], 0))
	}
	check := func(after time.Time) (at time.Time) {
		at, same := next(after)
		if !same {
			t.Errorf("%q in %s: after %v comes %v, which the oracle has not", text, zone, after.In(table.zone), at.In(table.zone))
		}
		return at
	}
	for at, i := from.Add(-time.Second), 0; i <= len(all) && !t.Failed(); i++ {
		at = check(at)
	}
	changes := m.changes()
	for range 20 {
		at := from.Add(time.Duration(r.Int64N(int64(to.Sub(from)))))
		if len(changes) > 0 && r.IntN(4) > 0 {
			at = m.from.Add(time.Duration(changes[r.IntN(len(changes))]-180+r.IntN(360)) * time.Minute)
		}
		if at = at.Truncate(time.Second); !at.Before(from) && at.Before(to) && !t.Failed() {
			check(at)
		}
	}
	return len(all)
}

func (m *minutes) occurrences(o *oracle, found func(time.Time)) {
	days := map[int32]bool{}
	fits := func(wall int32) bool {
		if !o.minute[wall%60] || !o.hour[wall/60%24] {
			return false
		}
		day, known := days[wall/1440]
		if !known {
			day = o.fitsDay(time.Unix(int64(wall)*60, 0).UTC())
			days[wall/1440] = day
		}
		return day
	}
	shown := m.wall[0] // the latest that was
	for i, wall := range m.wall[1:] {
		gap := wall - m.wall[i] - 1
		again := wall <= shown
		shown = max(shown, wall)
		var caughtUp bool
		for w := wall - gap; !o.repeats && gap > 0 && gap <= 12*60 && w < wall && !caughtUp; w++ {
			caughtUp = fits(w)
		}
		now := fits(wall) && (o.repeats || !again)
		if i+1 < lead || !now && !caughtUp {
			continue
		}
		at := m.from.Add(time.Duration(i+1) * time.Minute)
		for s := range 60 {
			if now && o.second[s] || caughtUp && s == 0 {
				found(at.Add(time.Duration(s) * time.Second))
			}
		}
	}
}

// oracle is an expression, field by field.
type oracle struct {
	second, minute [60]bool
	hour           [24]bool
	days, weekdays string
	month          [13]bool
	repeats        bool // a field of the time of day begins with *
}

func newOracle(t *testing.T, text string) *oracle {
	if long, ok := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}[text]; ok {
		text = long
	}
	f := strings.Fields(text)
	if len(f) == 5 {
		f = append([]string{"0"}, f...)
	}
	if len(f) != 6 {
		t.Fatalf("%q is none of the oracle's", text)
	}
	o := &oracle{days: strings.Replace(f[3], "?", "*", 1), weekdays: strings.Replace(f[5], "?", "*", 1)}
	for v := range 60 {
		o.second[v], o.minute[v] = anyFits(f[0], v, 0, 59), anyFits(f[1], v, 0, 59)
		if v < 24 {
			o.hour[v] = anyFits(f[2], v, 0, 23)
		}
		if v >= 1 && v <= 12 {
			o.month[v] = anyFits(f[4], v, 1, 12)
		}
	}
	o.repeats = f[0][0] == '*' || f[1][0] == '*' || f[2][0] == '*'
	return o
}

// anyFits reports whether a number is in a list of numbers, ranges and steps.
func anyFits(list string, v, low, high int) bool {
	for _, item := range strings.Split(list, ",") {
		body, step, every := item, 1, false
		if i := strings.IndexByte(item, '/'); i >= 0 {
			body, every = item[:i], true
			step, _ = strconv.Atoi(item[i+1:])
		}
		ends := strings.Split(body, "-")
		from, to := low, high
		if body != "*" {
			from = oracleNumber(ends[0])
			to = oracleNumber(ends[len(ends)-1])
			if len(ends) == 1 && every {
				to = high
			}
		}
		if from <= to && v >= from && v <= to && (v-from)%step == 0 {
			return true
		}
		if round := high - low + 1; from > to { // over the end
			if far := (v - from + round) % round; far <= (to-from+round)%round && far%step == 0 {
				return true
			}
		}
	}
	return false
}

func oracleNumber(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	const names = "sunmontuewedthufrisat" + "janfebmaraprmayjunjulaugsepoctnovdec"
	n := strings.Index(names, strings.ToLower(text)) / 3
	if n >= 7 {
		n -= 6
	}
	return n
}

func (o *oracle) fitsDay(day time.Time) bool {
	if !o.month[day.Month()] {
		return false
	}
	inMonth := slices.ContainsFunc(strings.Split(strings.ToUpper(o.days), ","), func(item string) bool { return dayFits(item, day) })
	inWeek := slices.ContainsFunc(strings.Split(strings.ToUpper(o.weekdays), ","), func(item string) bool { return weekdayFits(item, day) })
	if o.days[0] == '*' || o.weekdays[0] == '*' { // DOM_STAR or DOW_STAR
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

func dayFits(item string, day time.Time) bool {
	last := day
	for last.AddDate(0, 0, 1).Month() == day.Month() {
		last = last.AddDate(0, 0, 1)
	}
	works := func(d time.Time) bool { return d.Weekday() != time.Saturday && d.Weekday() != time.Sunday }
	switch {
	case item == "L":
		return day.Day() == last.Day()
	case item == "LW":
		for !works(last) {
			last = last.AddDate(0, 0, -1)
		}
		return day.Day() == last.Day()
	case strings.HasPrefix(item, "L-"):
		return day.Day() == last.Day()-oracleNumber(item[2:])
	case strings.HasSuffix(item, "W"):
		n := oracleNumber(item[:len(item)-1])
		if n > last.Day() {
			return false
		}
		asked := day.AddDate(0, 0, n-day.Day())
		for far := range 3 {
			for _, near := range []time.Time{asked.AddDate(0, 0, -far), asked.AddDate(0, 0, far)} {
				if near.Month() == day.Month() && works(near) {
					return near.Day() == day.Day()
				}
			}
		}
		return false
	}
	return anyFits(item, day.Day(), 1, 31)
}

func weekdayFits(item string, day time.Time) bool {
	if name, which, nth := strings.Cut(item, "#"); nth {
		if int(day.Weekday()) != oracleNumber(name)%7 {
			return false
		}
		if which == "L" {
			return day.AddDate(0, 0, 7).Month() != day.Month()
		}
		count := 0
		for d := day; d.Month() == day.Month(); d = d.AddDate(0, 0, -7) {
			count++
		}
		return count == oracleNumber(which)
	}
	body, _, _ := strings.Cut(item, "/")
	if ends := strings.Split(body, "-"); len(ends) == 2 && oracleNumber(ends[0]) > oracleNumber(ends[1]) {
		if ends[0] == "7" {
			item = "0" + item[1:]
		}
		return anyFits(item, int(day.Weekday()), 0, 6)
	}
	return anyFits(item, int(day.Weekday()), 0, 7) || day.Weekday() == time.Sunday && anyFits(item, 7, 0, 7)
}

// crontabExpressions are those of the cases.
func crontabExpressions(t *testing.T) (out []string) {
	for line := range strings.Lines(string(must(os.ReadFile("testdata/crontabs.txt")))) {
		if e, ok := strings.CutPrefix(strings.TrimSpace(line), "cron "); ok && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	if len(out) < 100 {
		t.Fatalf("%d expressions in testdata/crontabs.txt", len(out))
	}
	return out
}

// randomExpressions are always the same.
func randomExpressions(n int) (out []string) {
	r := rand.New(rand.NewPCG(33, 5))
	for len(out) < n {
		var f []string
		if r.IntN(12) == 0 {
			f = append(f, strconv.Itoa(r.IntN(60)))
		}
		f = append(f, randomField(r, 0, 59, 2), randomField(r, 0, 23, 3), randomDay(r), randomField(r, 1, 12, 8), randomWeekday(r))
		out = append(out, strings.Join(f, " "))
	}
	return out
}

// randomField is * in some of ten.
func randomField(r *rand.Rand, low, high, stars int) string {
	if r.IntN(10) < stars {
		return "*"
	}
	number := func() int { return low + r.IntN(high-low+1) }
	size := high - low + 1
	switch a, b := number(), number(); r.IntN(6) {
	case 0:
		return fmt.Sprintf("*/%d", 1+r.IntN(size-1))
	case 1:
		return fmt.Sprintf("%d-%d", a, b)
	case 2:
		step := 1
		if far := (b - a + size) % size; far > 1 {
			step += r.IntN(far)
		}
		return fmt.Sprintf("%d-%d/%d", a, b, step)
	case 3:
		return fmt.Sprintf("%d,%d,%d", a, b, number())
	default:
		return strconv.Itoa(a)
	}
}

func randomDay(r *rand.Rand) string {
	if r.IntN(6) > 0 {
		return randomField(r, 1, 31, 4)
	}
	return []string{"L", "LW", "L-3", "15W", "1W", "31W", "1,L", "*/7,LW", "30W,L-30"}[r.IntN(9)]
}

func randomWeekday(r *rand.Rand) string {
	switch r.IntN(6) {
	case 0:
		return []string{"MON-FRI", "FRI-MON", "SAT,SUN", "5-1/2", "7-2", "0-7/2", "1-7/3", "SUN-FRI/5", "6-7", "MON-SUN", "*/7", "*/2", "*/3,2", "TUE/2"}[r.IntN(14)]
	case 1:
		return []string{"MON#1", "5#2", "SUN#L", "7#3", "WED#5", "MON#1,FRI#L", "2,FRI#3"}[r.IntN(7)]
	case 2:
		return strconv.Itoa(r.IntN(8))
	}
	return "*"
}

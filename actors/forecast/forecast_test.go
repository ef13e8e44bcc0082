package forecast

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestForecast runs the scenarios of testdata. Times are of 1 June 2030, UTC.
func TestForecast(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		x := &scenario{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.T, x.TestData = t, d
			return x.run()
		})
	})
}

const day = "2030-06-01T"

type scenario struct {
	*testing.T
	*datadriven.TestData

	s *schedule.Schedule
}

func (x *scenario) run() string {
	switch x.Cmd {
	case "schedule":
		x.s = x.schedule()
		return "ok\n"
	case "open": // a run of the timetable
		at := x.time("at")
		x.s.Open = append(x.s.Open, schedule.Run{Occurrence: schedule.Occurrence{At: at, Origin: schedule.ByTimetable}, Due: at})
		x.s.Decided = max(x.s.Decided, at)
		return "ok\n"
	case "expand":
		return x.expand()
	case "strata":
		return x.strata()
	case "rehearse":
		return x.rehearse()
	}
	x.Fatalf(x.T, "unknown command %s", x.Cmd)
	return ""
}

func (x *scenario) schedule() *schedule.Schedule {
	now := x.time("now")
	s := &schedule.Schedule{Name: "s", Life: 7, Phase: schedule.Active, Anchor: now, Decided: now}
	s.Overlap, s.CatchUp, s.Grace, s.Spec.History = schedule.Skip, schedule.Last, time.Minute, 10
	for _, a := range x.CmdArgs {
		switch v := strings.Join(a.Vals, ","); a.Key {
		case "cron":
			s.Timetable.Entries = append(s.Timetable.Entries, timetable.Entry{Cron: strings.ReplaceAll(v, "_", " ")})
		case "every":
			s.Timetable.Entries = append(s.Timetable.Entries, timetable.Entry{Every: x.duration(v)})
		case "from-end":
			s.Timetable.Entries = append(s.Timetable.Entries, timetable.Entry{Every: x.duration(v), FromEnd: true})
		case "end":
			s.Timetable.End = x.time("end").Time()
		case "max-runs":
			s.MaxRuns = int64(x.number(v))
		case "jitter":
			s.Jitter = x.duration(v)
		case "overlap":
			s.Overlap = map[string]schedule.Overlap{"allow": schedule.Allow, "buffer-all": schedule.BufferAll}[v]
		case "untracked":
			s.Untracked = true
		case "window":
			s.Audience = &schedule.Target{Name: "a", Window: x.duration(v), SpreadFrom: 100}
		case "paused":
			s.Phase = schedule.Paused
		}
	}
	return s
}

func (x *scenario) expand() string {
	r := Range{From: x.time("from"), Bucket: x.duration(x.arg("bucket")), Count: x.number(x.arg("count"))}
	f := New(r)
	table, err := x.s.Table()
	if err != nil {
		x.Fatal(err)
	}
	e := Expansion{
		Schedule: x.s, Table: table, Now: x.time("now"), Steps: 1000, Weight: 1,
		Excluded: func(at time.Time) bool { return at.Hour() == 13 },
	}
	if x.HasArg("steps") {
		e.Steps = x.number(x.arg("steps"))
	}
	if x.HasArg("recipients") {
		e.Recipients = int64(x.number(x.arg("recipients")))
	}
	if x.HasArg("weight") {
		e.Weight, e.LaterOnly = float64(x.number(x.arg("weight"))), true
	}
	steps := f.Expand(&e)
	var out strings.Builder
	fmt.Fprintf(&out, "named %d, exact %t\n", steps, !f.Inexact)
	for _, c := range []struct {
		name string
		Column
	}{{"next", f.Next}, {"later", f.Later}, {"recipients", f.Recipients}} {
		if rounded := c.Rounded(); sumOf(rounded) > 0 {
			fmt.Fprintf(&out, "%s %v\n", c.name, rounded)
		}
	}
	return out.String()
}

func (x *scenario) strata() string {
	var bounds []store.Millis
	for _, b := range x.numbers("bounds") {
		bounds = append(bounds, store.Millis(b))
	}
	var out strings.Builder
	for _, s := range Strata(bounds, x.numbers("counts"), x.number(x.arg("spans")), x.number(x.arg("read"))) {
		fmt.Fprintf(&out, "%d to %d: read %d of %d\n", s.From, s.To, s.Read, s.Cells)
	}
	return out.String()
}

// rehearse plays the schedule in parts, each of which goes on from the state of the one before.
func (x *scenario) rehearse() string {
	table, err := x.s.Table()
	if err != nil {
		x.Fatal(err)
	}
	from, to := x.time("from"), x.time("to")
	now := from
	if x.HasArg("now") {
		now = x.time("now")
	}
	r := Rehearsal{Schedule: x.s, Table: table, Now: now}
	runs := 1000
	if x.HasArg("runs") {
		runs = x.number(x.arg("runs"))
	}
	var out strings.Builder
	for more, parts := true, 0; more; parts++ {
		if parts > 100 {
			x.Fatalf(x.T, "no end")
		}
		var made []Rehearsed
		made, _, more = r.Play(from, to, runs, 1000)
		for _, run := range made {
			fmt.Fprintf(&out, "%s", clock(run.At))
			if run.Due != run.At {
				fmt.Fprintf(&out, " due %s", clock(run.Due))
			}
			if run.ID != x.s.ID(run.Occurrence) {
				x.Errorf("the id of %s is %s", clock(run.At), run.ID)
			}
			out.WriteString("\n")
		}
		if !more {
			break
		}
		out.WriteString("...\n")
		left, at, wake := r.State()
		body, err := schedule.Encode(left)
		if err != nil {
			x.Fatal(err)
		}
		state, err := schedule.Decode(x.s.Name, body)
		if err != nil {
			x.Fatal(err)
		}
		r = Rehearsal{Schedule: x.s, Table: table, Now: now}
		r.Resume(state, at, wake)
	}
	return out.String()
}

func (x *scenario) arg(name string) (v string) {
	x.ScanArgs(x.T, name, &v)
	return v
}

func (x *scenario) time(name string) store.Millis {
	if !x.HasArg(name) {
		return 0
	}
	at, err := time.Parse(time.RFC3339Nano, day+x.arg(name)+"Z")
	if err != nil {
		x.Fatal(err)
	}
	return store.Millis(at.UnixMilli())
}

func (x *scenario) duration(v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		x.Fatal(err)
	}
	return d
}

func (x *scenario) number(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		x.Fatal(err)
	}
	return n
}

func (x *scenario) numbers(name string) (list []int64) {
	for _, a := range x.CmdArgs {
		if a.Key == name {
			for _, v := range a.Vals {
				list = append(list, int64(x.number(v)))
			}
		}
	}
	return list
}

func sumOf(list []int64) (n int64) {
	for _, v := range list {
		n += v
	}
	return n
}

func clock(at store.Millis) string {
	text := at.Time().UTC().Format("2006-01-02T15:04:05.999")
	return strings.TrimPrefix(text, day)
}

func TestWhatLiesBesideTheRangeIsNotInIt(t *testing.T) {
	r := Range{From: 10_000, Bucket: time.Second, Count: 3}
	c := make(Column, 3)
	for _, at := range []store.Millis{0, 9999, 13_000, 99_000} {
		c.add(r, at, 1)
	}
	c.spread(r, 0, 10_000, 5)
	c.spread(r, 13_000, 20_000, 5)
	if got := c.Rounded(); sumOf(got) != 0 {
		t.Errorf("%v", got)
	}
	c.spread(r, 8000, 18_000, 10)
	if got := fmt.Sprint(c.Rounded()); got != "[1 1 1]" {
		t.Errorf("a tenth each: %s", got)
	}
}

func TestWorstSecond(t *testing.T) {
	due := []store.Millis{5400, 1000, 7001}
	bounds := Seconds(due)
	if got := fmt.Sprint(bounds); got != "[1000 2000 5000 6000 7000 8000]" {
		t.Fatalf("bounds %s", got)
	}
	counts := []int64{99, 10, 99, 30, 99, 20, 99}
	own := func(second store.Millis) int64 { return int64(second / 7000) }
	c, found := Worst(due, bounds, counts, own, 10)
	if !found || c.At != 5000 || c.Due != 30 || c.Limit != 10 {
		t.Errorf("%+v", c)
	}
	if c, found := Worst(due, bounds, counts, func(store.Millis) int64 { return 1 }, 31); found {
		t.Errorf("as much as the limit is none too many: %+v", c)
	}
	if c, found := Worst(due, bounds, counts, func(store.Millis) int64 { return 1 }, 30); !found || c.Due != 31 {
		t.Errorf("its own counts: %+v", c)
	}
}

func TestSolve(t *testing.T) {
	at := store.Millis(1_906_588_800_000) // 2 June 2030, 00:00
	counts := make([]int64, 62)
	for i := range counts {
		counts[i] = 100
	}
	counts[1+17], counts[0], counts[61] = 3, 0, 0
	c := Collision{At: at, Due: 50_000, Limit: 10_000}
	s := &schedule.Schedule{Name: "s", Spec: schedule.Spec{Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "0 0 * * *"}}}}}
	c.Solve(s, counts)
	if c.Emptiest != at.Add(17*time.Minute) || c.EmptiestDue != 3 || c.Slack != 18*time.Minute || c.Cron != "H 0 * * *" {
		t.Errorf("%+v", c)
	}

	seen := make(map[store.Millis]bool)
	for i := range 50 { // where all are as empty, not all are sent to the same minute
		s.Name = fmt.Sprint(i)
		c.Solve(s, make([]int64, 62))
		seen[c.Emptiest] = true
	}
	if len(seen) < 20 {
		t.Errorf("50 schedules are sent to %d minutes", len(seen))
	}
}

func TestSpreadCron(t *testing.T) {
	for expression, want := range map[string]string{
		"0 9 * * MON-FRI": "H 9 * * MON-FRI", "30 * * * *": "H * * * *", "*/5 * * * *": "H */5 * * * *", "H 3 * * *": "",
		"0 0 9 * * *": "H H 9 * * *", "15 */5 * * * *": "H */5 * * * *", "*/5 * * * * *": "", "@daily": "H 0 * * *", "@Hourly": "H * * * *", "": "", "@reboot": "",
	} {
		if got := spreadCron(expression); got != want {
			t.Errorf("%q: %q, want %q", expression, got, want)
		} else if got != "" {
			spec := timetable.Spec{Entries: []timetable.Entry{{Cron: got}}}
			if _, err := timetable.New(spec, "s", time.Now()); err != nil {
				t.Errorf("%q: %v", got, err)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		rate  store.Rate
		want  int64
		rated bool
	}{
		{store.Rate{}, 10_000, false},
		{store.Rate{Count: 50, Period: time.Second, Burst: 1}, 50, true},
		{store.Rate{Count: 60, Period: time.Minute, Burst: 30}, 30, true},
		{store.Rate{Count: 1, Period: time.Hour}, 1, true},
		{store.Rate{Kind: store.SlidingWindow, Count: 500, Period: time.Minute}, 500, true},
		{store.Rate{Count: 90_000, Period: time.Second}, 10_000, false},
	} {
		got, rated := Limit(&store.Topic{Limits: store.TopicLimits{Rate: c.rate}}, 10_000)
		if got != c.want || rated != c.rated {
			t.Errorf("%+v: %d, %t", c.rate, got, rated)
		}
	}
}

func TestBusiest(t *testing.T) {
	f := New(Range{From: 0, Bucket: 2 * time.Second, Count: 5})
	copy(f.Pending, []float64{10, 21, 20, 50, 0})
	copy(f.Later, []float64{0, 0, 1, 0, 99})
	got := f.Busiest(10, 2)
	if len(got) != 2 || got[0].At != 6000 || got[0].Due != 50 || got[1].At != 8000 || got[1].Limit != 20 {
		t.Errorf("%+v", got)
	}
}

package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestSchedule runs the scenarios of testdata. Times are of 1 June 2030, UTC; a run is
// called by the time of its occurrence, and one of a trigger by its request.
func TestSchedule(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // what a property left behind
		}
		x := &scenario{names: make(map[string]string)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.T, x.TestData = t, d
			return x.run()
		})
	})
}

const day = "2030-06-01T"

var reasons = [...]string{"", "overlap", "superseded", "buffer full", "missed", "paused", "excluded", "refused"}

// scenario is a schedule in the hands of a keeper that does what steps say.
type scenario struct {
	*testing.T
	*datadriven.TestData

	s     *Schedule
	table *timetable.Timetable
	wake  store.Millis
	names map[string]string // id -> name
	off   int               // the hour that calendars leave out
}

func (x *scenario) run() string {
	now := x.time("at")
	switch x.Cmd {
	case "new":
		x.off = x.hourOff()
		x.s = &Schedule{Spec: x.spec(), Name: "nightly", Life: 7, Phase: Active, Anchor: now, Decided: now}
		x.table = x.tableOf(x.s.Spec)
		return x.step(now, nil)
	case "wake":
		return x.step(now, nil)
	case "sleep": // until the schedule wakes, which is to be before the time
		return x.sleep(now)
	case "done", "failed", "removed":
		outcome := map[string]Outcome{"done": Done, "failed": Failed, "removed": Removed}[x.Cmd]
		return x.step(now, Ended{ID: x.id("run"), Outcome: outcome, At: now, Started: now - 1})
	case "cancelled": // which leaves a dead letter
		return x.step(now, Ended{ID: x.id("run"), Outcome: Removed, Dead: true, At: now, Started: now - 1})
	case "requeued":
		return x.step(now, Requeued{ID: x.id("run")})
	case "begun":
		return x.step(now, Begun{ID: x.id("run")})
	case "pause":
		return x.step(now, Pause{By: "ada", Note: "why"})
	case "resume":
		return x.step(now, Resume{By: "ada"})
	case "trigger":
		var request string
		x.ScanArgs(x.T, "request", &request)
		return x.step(now, Trigger{Request: request, Overlap: x.overlap(Skip)})
	case "backfill":
		return x.step(now, StartBackfill{ID: "b", From: x.time("from"), To: x.time("to"), Overlap: x.overlap(BufferAll)})
	case "cancel-backfill":
		return x.step(now, CancelBackfill{ID: "b"})
	case "edit":
		spec := x.spec()
		off := x.hourOff()
		out := x.step(now, Edit{Spec: spec, Table: x.tableOf(spec), Excluded: without(off), Anew: x.HasArg("anew")})
		x.off = off
		return out
	case "calendar": // is changed
		x.off = x.hourOff()
		return ""
	case "coming": // what a preview says
		return x.coming(now)
	case "delete":
		return x.step(now, Delete{CancelOpen: x.HasArg("cancel")})
	}
	x.Fatalf(x.T, "unknown command %s", x.Cmd)
	return ""
}

func (x *scenario) step(now store.Millis, e Event) string {
	before := fmt.Sprintf("%+v", *x.s)
	env := Env{Now: now, Lead: 5 * time.Second, Table: x.table, Refused: x.HasArg("refused"), Place: func(_, latest store.Millis) store.Millis { return latest }, Excluded: without(x.off)}
	s, out := Step(x.s, e, env)
	if out.Behind {
		x.Fatalf(x.T, "more is to be decided first")
	}
	doubts := len(out.Doubt)
	if doubts > 0 {
		s, out = StepAll(x.s, []Event{e, Watched{}}, env)
	}
	if after := fmt.Sprintf("%+v", *x.s); after != before {
		x.Fatalf(x.T, "the step changed the schedule before it:\n%s\n%s", before, after)
	}
	x.s, x.wake = s, out.Wake
	if edit, ok := e.(Edit); ok {
		x.table = edit.Table
	}
	if doubts > 0 {
		return fmt.Sprintf("looks at %d\n%s", doubts, x.told(out))
	}
	return x.told(out)
}

// hourOff is the hour that calendars leave out; 13 where nothing is said.
func (x *scenario) hourOff() int {
	hour := 13
	x.MaybeScanArgs(x.T, "off", &hour)
	return hour
}

func without(hour int) func(time.Time) bool {
	return func(at time.Time) bool { return at.Hour() == hour }
}

func (x *scenario) coming(now store.Millis) string {
	var b strings.Builder
	from, n := now, 3
	if x.HasArg("from") {
		from = x.time("from")
	}
	for f := range x.s.Coming(Env{Now: now, Table: x.table, Excluded: without(x.off)}, from) {
		if n--; n < 0 {
			break
		}
		fmt.Fprintf(&b, "%s due %s %s\n", clock(f.At), clock(f.Due), f.Skipped)
	}
	return b.String()
}

// sleep wakes the schedule whenever it is to be, up to a time.
func (x *scenario) sleep(until store.Millis) string {
	var out strings.Builder
	for n := 0; x.wake != 0 && x.wake <= until; n++ {
		if n > 1000 {
			x.Fatalf(x.T, "the schedule wakes over and over at %s", clock(x.wake))
		}
		at := x.wake
		fmt.Fprintf(&out, "%s:\n%s", clock(at), x.step(at, nil))
	}
	return out.String()
}

func (x *scenario) told(out Effects) string {
	var b strings.Builder
	for i, m := range out.Make {
		name := clock(m.At)
		switch m.Origin {
		case ByTrigger:
			name = "trigger"
		case ByBackfill:
			name += " once more"
		}
		x.names[m.ID], x.names[x.s.RunID(m.Run)] = name, name
		if x.HasArg("brief") && i > 0 && i < len(out.Make)-1 {
			continue
		}
		if m.Flow {
			name = "workflow " + name
		}
		fmt.Fprintf(&b, "make %s", name)
		if m.Due != m.At && m.Origin != ByBackfill {
			fmt.Fprintf(&b, " due %s", clock(m.Due))
		}
		b.WriteByte('\n')
	}
	for _, r := range out.Remove {
		fmt.Fprintf(&b, "take back %s\n", x.names[r.ID])
	}
	for _, id := range out.Cancel {
		fmt.Fprintf(&b, "cancel %s\n", x.names[id])
	}
	for _, id := range out.Discard {
		fmt.Fprintf(&b, "discard %s\n", x.names[id])
	}
	for _, id := range out.CancelFlow {
		fmt.Fprintf(&b, "cancel workflow %s\n", x.names[id])
	}
	for _, skip := range out.Skips {
		fmt.Fprintf(&b, "skip %s %s", clock(skip.At), reasons[skip.Reason])
		if skip.Count > 1 {
			fmt.Fprintf(&b, " (the last of %d)", skip.Count)
		}
		b.WriteByte('\n')
	}
	if out.Over {
		fmt.Fprintln(&b, "refused: it is finished")
	}
	if out.RunOpen != "" {
		fmt.Fprintf(&b, "refused: %s is open\n", x.names[out.RunOpen])
	}
	if out.Full {
		fmt.Fprintln(&b, "refused: it is full")
	}
	switch {
	case out.Gone:
		b.WriteString("gone\n")
	case x.s.Phase != Active:
		fmt.Fprintf(&b, "%s\n", [...]string{"", "active", "paused by " + x.s.PausedBy, "finished"}[x.s.Phase])
	}
	if x.HasArg("all") {
		b.WriteString(x.all())
	}
	if out.Wake != 0 && !out.Gone {
		fmt.Fprintf(&b, "wake %s\n", clock(out.Wake))
	}
	return b.String()
}

// all is what a schedule remembers.
func (x *scenario) all() string {
	var b strings.Builder
	for _, r := range x.s.Open {
		fmt.Fprintf(&b, "open %s\n", x.names[x.s.ID(r.Occurrence)])
	}
	for _, o := range x.s.Waiting {
		fmt.Fprintf(&b, "waiting %s\n", clock(o.At))
	}
	for _, h := range x.s.History {
		fmt.Fprintf(&b, "history %s %s%s", clock(h.At), [...]string{"", "done", "failed", "removed"}[h.Outcome],
			reasons[h.Reason])
		if h.Count > 1 {
			fmt.Fprintf(&b, " (the last of %d)", h.Count)
		}
		b.WriteByte('\n')
	}
	for _, f := range x.s.Backfills {
		fmt.Fprintf(&b, "backfill up to %s, made %d\n", clock(f.Done), f.Made)
	}
	fmt.Fprintf(&b, "made %d, totals %v, skipped %v\n", x.s.Made, x.s.Totals, x.s.Skipped)
	return b.String()
}

func clock(at store.Millis) string {
	text := at.Time().Format("15:04:05.999")
	if at.Time().YearDay() != 152 {
		text = at.Time().Format("01-02T") + text
	}
	return text
}

func (x *scenario) time(key string) store.Millis {
	var text string
	x.ScanArgs(x.T, key, &text)
	return x.parse(text)
}

func (x *scenario) parse(text string) store.Millis {
	if strings.Contains(text, "T") {
		text = "2030-" + text
	} else {
		text = day + text
	}
	at, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		x.Fatalf(x.T, "%v", err)
	}
	return store.Millis(at.UnixMilli())
}

// id is that of a run by its name.
func (x *scenario) id(key string) string {
	var name string
	x.ScanArgs(x.T, key, &name)
	if x.HasArg("once-more") {
		name += " once more"
	}
	for id, n := range x.names {
		if n == name && !strings.Contains(id, "/") {
			return id
		}
	}
	x.Fatalf(x.T, "there is no run %s", name)
	return ""
}

func (x *scenario) overlap(otherwise Overlap) Overlap {
	names := []string{"", "skip", "buffer-one", "buffer-all", "cancel-other", "allow"}
	var text string
	x.MaybeScanArgs(x.T, "overlap", &text)
	if text == "" {
		return otherwise
	}
	return Overlap(slices.Index(names, text))
}

// spec reads the arguments and the entries of a timetable, one a line.
func (x *scenario) spec() Spec {
	spec := Spec{Overlap: x.overlap(Skip), CatchUp: Last, Grace: time.Minute, History: 10, Calendars: []string{fmt.Sprint("not at ", x.hourOff())}}
	var catchUp, within, jitter, payload string
	x.MaybeScanArgs(x.T, "catch-up", &catchUp)
	if catchUp != "" {
		spec.CatchUp = CatchUp(slices.Index([]string{"", "last", "all", "none"}, catchUp))
	}
	x.MaybeScanArgs(x.T, "within", &within)
	x.MaybeScanArgs(x.T, "jitter", &jitter)
	spec.Within, _ = time.ParseDuration(within)
	spec.Jitter, _ = time.ParseDuration(jitter)
	x.MaybeScanArgs(x.T, "pause-at", &spec.PauseAt)
	x.MaybeScanArgs(x.T, "history", &spec.History)
	if x.HasArg("max-runs") {
		var n string
		x.ScanArgs(x.T, "max-runs", &n)
		spec.MaxRuns, _ = strconv.ParseInt(n, 10, 64)
	}
	if x.HasArg("slack") {
		spec.Template.Slack = 15 * time.Minute
	}
	x.MaybeScanArgs(x.T, "payload", &payload)
	spec.Template.Task.Payload = []byte(payload)
	if x.HasArg("label") {
		spec.Labels = []store.Attribute{{Key: "team", Value: "data"}}
	}
	spec.Untracked = x.HasArg("untracked")
	if x.HasArg("audience") {
		spec.Audience = &Target{Name: "users"}
	}
	if x.HasArg("workflow") {
		spec.Workflow = &graph.Definition{Steps: []graph.Step{{Name: "a", Task: &graph.Template{}}}}
	}
	for line := range strings.Lines(x.Input) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var e timetable.Entry
		switch kind {
		case "cron":
			e.Cron = rest
		case "every", "every-from-end":
			e.Every, _ = time.ParseDuration(rest)
			e.FromEnd = kind == "every-from-end"
		case "at":
			e.At = []time.Time{x.parse(rest).Time()}
		}
		spec.Timetable.Entries = append(spec.Timetable.Entries, e)
	}
	return spec
}

func (x *scenario) tableOf(spec Spec) *timetable.Timetable {
	at := x.time("at")
	if x.s != nil && !x.HasArg("anew") {
		at = x.s.Anchor
	}
	table, err := timetable.New(spec.Timetable, "nightly", at.Time())
	if err != nil {
		x.Fatalf(x.T, "%v", err)
	}
	return table
}

// TestEachOccurrenceIsDecidedOnce plays random events, and counts: each occurrence so far
// has a run, waits, or was skipped for a reason.
func TestEachOccurrenceIsDecidedOnce(t *testing.T) {
	start := time.Date(2030, 6, 1, 8, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		g := game{T: t, live: make(map[string]Run)}
		spec := Spec{
			Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "*/7 * * * * *"}}},
			Overlap:   Overlap(rapid.IntRange(1, 5).Draw(t, "overlap")),
			CatchUp:   CatchUp(rapid.IntRange(1, 3).Draw(t, "catch-up")),
			Grace:     time.Duration(rapid.IntRange(1, 60).Draw(t, "grace")) * time.Second,
			PauseAt:   rapid.IntRange(0, 2).Draw(t, "pause at"),
			History:   rapid.IntRange(0, 10).Draw(t, "history"),
		}
		table, err := timetable.New(spec.Timetable, "s", start)
		if err != nil {
			t.Fatal(err)
		}
		g.now = store.Millis(start.UnixMilli())
		g.s, g.table = &Schedule{Spec: spec, Name: "s", Life: 1, Phase: Active, Anchor: g.now, Decided: g.now}, table
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			g.now = g.now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")))
			g.step(g.event())
		}
		named := int64(0)
		for at, ok := table.Next(start); ok && !at.After(g.s.Decided.Time()); at, ok = table.Next(at) {
			named++
		}
		for _, at := range g.s.Early {
			if at > g.s.Decided {
				named++ // it has had its run, and is to be passed over
			}
		}
		if decided := g.made + g.skipped + g.waiting(); decided != named {
			t.Fatalf("%d occurrences: %d runs made, %d skipped, %d waiting", named, g.made, g.skipped, g.waiting())
		}
	})
}

// game is a schedule, the tasks that it made and have not ended, and what was counted.
type game struct {
	*rapid.T
	s             *Schedule
	table         *timetable.Timetable
	now           store.Millis
	live          map[string]Run // one that has Begun was released, and is due later
	box           []Ended        // ends of tasks that are yet to be told, in order
	ends          int            // of them, those of runs that no step took back
	made, skipped int64          // of the timetable
}

func (g *game) event() Event {
	kind := rapid.IntRange(0, 9).Draw(g.T, "event")
	if ids := slices.Sorted(maps.Keys(g.live)); kind < 3 && len(ids) > 0 {
		id := rapid.SampledFrom(ids).Draw(g.T, "id")
		delete(g.live, id)
		outcome := Outcome(rapid.IntRange(1, 3).Draw(g.T, "outcome"))
		g.box, g.ends = append(g.box, Ended{ID: id, Outcome: outcome, At: g.now}), g.ends+1
		return nil
	}
	switch kind {
	case 9:
		for id, run := range g.live { // workers had all of them, and gave them back
			run.Begun, run.Due = true, g.now+1
			g.live[id] = run
		}
	case 0, 1, 2, 8:
		if len(g.box) > 0 {
			e := g.box[0]
			g.box = g.box[1:]
			return e
		}
	case 3:
		return Pause{By: "ada"}
	case 4, 5:
		return Resume{}
	case 6:
		return Trigger{Request: fmt.Sprint(rapid.IntRange(1, 5).Draw(g.T, "request")), Overlap: Overlap(rapid.IntRange(1, 5).Draw(g.T, "trigger overlap"))}
	case 7:
		return Edit{Spec: g.s.Spec, Table: g.table}
	}
	return nil
}

func (g *game) step(e Event) {
	before := len(g.s.Recalled)
	s, out := StepAll(g.s, []Event{e, Watched{}}, Env{Now: g.now, Lead: 5 * time.Second, Table: g.table})
	for _, r := range out.Remove {
		run, there := g.live[r.ID]
		if there && !run.Begun && run.Due != r.Due {
			g.Fatalf("takes back a run that is due at %v if it is due at %v", run.Due.Time(), r.Due.Time())
		}
		if !there || run.Due != r.Due { // the commit fails
			g.step(Begun{ID: r.ID})
			g.step(e)
			return
		}
	}
	g.s = s
	if _, told := e.(Ended); told && len(s.Recalled) >= before {
		g.ends--
	}
	g.Logf("%s %T%+v: make %v, skip %v, remove %v; decided %s, open %v, waiting %v", clock(g.now), e, e, out.Make, out.Skips, out.Remove, clock(s.Decided), s.Open, s.Waiting)
	for _, r := range out.Remove {
		id, o := r.ID, g.live[r.ID]
		g.box = append(g.box, Ended{ID: id, Outcome: Removed, At: g.now})
		if o.At <= g.now {
			g.Fatalf("takes back a run of %v at %v", o.At.Time(), g.now.Time())
		}
		delete(g.live, id)
		g.made--
	}
	for _, m := range out.Make {
		if _, there := g.live[m.ID]; there {
			g.Fatalf("makes %s twice", m.ID)
		}
		if m.Due < m.At || m.At > g.now.Add(5*time.Second) {
			g.Fatalf("makes a run of %v at %v, due %v", m.At.Time(), g.now.Time(), m.Due.Time())
		}
		g.live[m.ID] = m.Run
		if m.Origin == ByTimetable {
			g.made++
		}
	}
	for _, skip := range out.Skips {
		if skip.Origin == ByTimetable {
			g.skipped += skip.Count
		}
	}
	if len(s.Open) != len(g.live)+g.ends {
		g.Fatalf("%d runs are open, %d tasks live, %d ends to be told", len(s.Open), len(g.live), g.ends)
	}
	if out.Wake != 0 && out.Wake < g.now && s.Phase == Active {
		g.Fatalf("wakes at %v, and it is %v", out.Wake.Time(), g.now.Time())
	}
}

func (g *game) waiting() (n int64) {
	for _, o := range g.s.Waiting {
		if o.Origin == ByTimetable {
			n++
		}
	}
	return n
}

// TestAnEditKeepsAScheduleThatIsLetGoInTheSameStep has the last run of a finished schedule end, which was requeued,
// when the schedule has been kept for long enough, and an edit come with that.
func TestAnEditKeepsAScheduleThatIsLetGoInTheSameStep(t *testing.T) {
	now := store.Millis(time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	decided := now.Add(-keepFinished - time.Hour)
	spec := Spec{Timetable: timetable.Spec{Entries: []timetable.Entry{{At: []time.Time{decided.Time()}}}}, Overlap: Skip, CatchUp: Last, History: 10}
	run := Run{Occurrence: Occurrence{At: decided, Origin: ByTimetable}, Due: decided, Begun: true}
	s := &Schedule{Spec: spec, Name: "x", Life: 7, Phase: Finished, Anchor: decided, Decided: decided, Open: []Run{run}}
	table, err := s.Table()
	if err != nil {
		t.Fatal(err)
	}
	ended := Ended{ID: s.ID(run.Occurrence), Outcome: Done, At: now}
	if _, out := StepAll(s, []Event{ended}, Env{Now: now, Lead: Lead, Table: table}); !out.Gone {
		t.Fatal("without the edit it is not let go")
	}
	edit := Edit{Spec: spec, Anew: true}
	edit.Spec.Timetable = timetable.Spec{Entries: []timetable.Entry{{Every: time.Minute}}}
	if edit.Table, err = timetable.New(edit.Spec.Timetable, s.Name, now.Time()); err != nil {
		t.Fatal(err)
	}
	edited, out := StepAll(s, []Event{ended, edit}, Env{Now: now, Lead: Lead, Table: table})
	if out.Gone || edited.Phase != Active || out.Wake == 0 {
		t.Errorf("gone is %t, the phase %v, and it wakes at %d", out.Gone, edited.Phase, out.Wake)
	}
}

// TestARunThatIsRequeuedAndDiesAgainKeepsItsDeadLetter: another run took its place, and a user wanted it all the same. All of
// that comes in one step.
func TestARunThatIsRequeuedAndDiesAgainKeepsItsDeadLetter(t *testing.T) {
	now := store.Millis(time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	spec := Spec{Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: time.Hour}}}, Overlap: CancelOther, CatchUp: Last}
	run := Run{Occurrence: Occurrence{At: now, Origin: ByTimetable}, Due: now, Begun: true, Replaced: true}
	s := &Schedule{Spec: spec, Name: "x", Life: 7, Phase: Active, Anchor: now, Decided: now, Open: []Run{run}}
	table, err := s.Table()
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID(run.Occurrence)
	events := []Event{Ended{ID: id, Outcome: Removed, Dead: true, At: now}, Requeued{ID: id}, Ended{ID: id, Outcome: Failed, At: now + 1}}
	after, out := StepAll(s, events, Env{Now: now + 2, Lead: Lead, Table: table})
	if len(out.Discard) > 0 || after.Totals[Failed] != 1 {
		t.Errorf("discarded are %v, and ended %v", out.Discard, after.Totals)
	}
}

// TestARunIsWatchedThoughTheClockWasAheadWhenItWasLast: else nobody looks at it before the clock comes there again.
func TestARunIsWatchedThoughTheClockWasAheadWhenItWasLast(t *testing.T) {
	now := store.Millis(time.Date(2030, 6, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	due := now.Add(-2 * watchEvery)
	spec := Spec{Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: 24 * time.Hour}}}, Overlap: Skip, CatchUp: Last}
	s := &Schedule{Spec: spec, Name: "x", Life: 7, Phase: Active, Anchor: due, Decided: due, Watched: now.Add(72 * time.Hour)}
	s.Open = []Run{{Occurrence: Occurrence{At: due, Origin: ByTimetable}, Due: due, Begun: true}}
	table, err := s.Table()
	if err != nil {
		t.Fatal(err)
	}
	if _, out := Step(s, nil, Env{Now: now, Lead: Lead, Table: table}); len(out.Doubt) != 1 {
		t.Errorf("in doubt are %v, and it wakes in %v", out.Doubt, out.Wake.Sub(now))
	}
}

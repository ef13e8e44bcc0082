package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// In some runs users change what the schedules are: timetables, zones and calendars, often just before a time,
// when its run is made already. A run is of the definition of its time; an edit takes back what only the one before
// named, and loses nothing of what it names itself.

// simDays is the calendar that schedules may have. It leaves out some parts of the run.
const simDays = "days"

// simEdit is a definition from a moment on.
type simEdit struct {
	since    store.Millis // when it was committed
	table    *timetable.Timetable
	excluded func(time.Time) bool
	jitter   time.Duration
	edits    int64
}

// drawEdited draws whether definitions change, from a source of its own like drawIdle.
func (s *sim) drawEdited(p *simPlan) bool {
	return p.schedules > 0 && rand.New(rand.NewPCG(s.seed, 53)).IntN(2) == 0
}

// makeDays makes the calendar, from a source of its own like drawIdle.
func (s *sim) makeDays() {
	if !s.plan.edited {
		return
	}
	rng := rand.New(rand.NewPCG(s.seed, 56))
	var days timetable.Calendar
	for at := s.start; at.Before(s.start.Add(s.plan.active)); {
		at = at.Add(simBetween(rng, time.Second, 40*time.Second))
		to := at.Add(simBetween(rng, time.Second, 40*time.Second))
		days.Spans = append(days.Spans, timetable.Span{From: at, To: to})
		at = to
	}
	c, err := schedule.CalendarCell(simDays, &days)
	if err != nil {
		panic(err)
	}
	s.calendars = schedule.Calendars{simDays: &days}
	if _, r, err := s.on(schedule.CalendarShard).Commit(simContext, schedule.CalendarShard, nil, []store.Commit{{Puts: []store.Put{{Cell: c}}}}); err != nil || r[0].Status != store.OK {
		panic(fmt.Sprint("the calendar is not made: ", r, err))
	}
}

// edited has users change what schedules are until the producers stop.
func (s *sim) edited() {
	if !s.plan.edited {
		return
	}
	rng := rand.New(rand.NewPCG(s.seed, 54))
	for i := range s.plan.schedules {
		name := fmt.Sprintf("schedule%d", i)
		s.editNext(rng, name)
	}
	for range 1 + rng.IntN(4) {
		at, lasts := simBetween(rng, 20*time.Second, s.plan.active-time.Minute), simBetween(rng, time.Second, 40*time.Second)
		if span := s.calendars[simDays].Spans; rng.IntN(2) == 0 { // what was missed last is left out
			out := span[rng.IntN(len(span))]
			end := out.From.Add(min(out.To.Sub(out.From), simBetween(rng, time.Second, 10*time.Second))).Sub(s.start)
			lasts = simBetween(rng, 2*time.Second, 40*time.Second)
			at = min(max(time.Second, end-lasts), s.plan.active-time.Minute)
		}
		s.after(at, func() { s.stall(lasts) })
	}
}

// stall stops all nodes for a while, so that times are missed.
func (s *sim) stall(lasts time.Duration) {
	s.excuse(lasts)
	for _, n := range s.nodes {
		s.pause(n)
		s.after(lasts, func() { s.resume(n) })
	}
}

// drawTimetable draws one that ends when the producers do. In another zone it has other times.
func (s *sim) drawTimetable(rng *rand.Rand, spec *schedule.Spec) {
	t := timetable.Spec{End: s.start.Add(s.plan.active)}
	switch rng.IntN(4) {
	case 0:
		t.Entries = []timetable.Entry{{Every: simBetween(rng, 2*time.Second, 40*time.Second), FromEnd: true}}
	case 1:
		t.Entries = []timetable.Entry{{Every: simBetween(rng, 4*time.Second, 40*time.Second)}}
	default:
		hour := s.start.UTC().Hour()
		t.Zone = []string{"UTC", "Asia/Kolkata"}[rng.IntN(2)]
		t.Entries = []timetable.Entry{
			{Cron: fmt.Sprintf("*/%d * %d * * *", 3+rng.IntN(27), hour)}, {Cron: fmt.Sprintf("*/%d * %d * * *", 3+rng.IntN(27), (hour+5)%24)},
		}
	}
	spec.Timetable, spec.Jitter = t, 0
	if e := t.Entries[0]; e.Every >= 4*time.Second && !e.FromEnd && rng.IntN(4) > 0 {
		spec.Jitter = simBetween(rng, time.Second, e.Every/2)
	}
}

// drawCatchUp draws what becomes of times that are missed or left out, and how much is remembered.
func (s *sim) drawCatchUp(rng *rand.Rand, spec *schedule.Spec) {
	spec.CatchUp, spec.Grace = []schedule.CatchUp{schedule.Last, schedule.Last, schedule.All}[rng.IntN(3)], time.Second
	if spec.Calendars = nil; rng.IntN(2) == 0 {
		spec.Calendars = []string{simDays}
	}
	spec.History = []int{0, 1, 5, schedule.MaxHistory}[rng.IntN(4)]
}

// editNext has a user edit a schedule some time, mostly within the lead of its next time.
func (s *sim) editNext(rng *rand.Rand, name string) {
	in := simBetween(rng, time.Second, 30*time.Second)
	s.after(in, func() {
		if time.Since(s.start) > s.plan.active-time.Minute {
			return
		}
		book := s.schedules[schedule.CellID(name)]
		wait := time.Duration(0)
		last := book.edits[len(book.edits)-1]
		now := s.now(book.shard)
		if at, ok := last.table.Next(now.Time()); ok && !last.table.FromEnd() {
			ahead := at.Sub(now.Time())
			switch rng.IntN(4) {
			case 0:
				wait = ahead + time.Duration(rng.IntN(3)-1)*time.Millisecond
			case 1, 2:
				wait = ahead - time.Duration(rng.Int64N(int64(2*schedule.Lead)))
			}
			if last.jitter > 0 && rng.IntN(2) == 0 { // when its run is put off
				s.after(ahead+time.Duration(rng.Int64N(int64(last.jitter))), func() { s.pauseSchedule(name, true) })
				s.after(ahead+last.jitter+simBetween(rng, time.Millisecond, 40*time.Second), func() { s.pauseSchedule(name, false) })
			}
		}
		act := rng.IntN(6)
		var drawn schedule.Spec
		s.drawTimetable(rng, &drawn)
		s.drawCatchUp(rng, &drawn)
		s.after(max(0, wait), func() {
			s.askForEdit(name, func(spec *schedule.Spec) {
				switch act {
				case 0: // of nothing that names times
					spec.Template.Task.Payload = append(slices.Clip(spec.Template.Task.Payload), '.')
				case 1, 2, 3:
					spec.Timetable, spec.Jitter = drawn.Timetable, drawn.Jitter
				}
				if act > 1 {
					spec.CatchUp, spec.Grace, spec.Calendars, spec.History = drawn.CatchUp, drawn.Grace, drawn.Calendars, drawn.History
				}
			})
			s.editNext(rng, name)
		})
	})
}

func (s *sim) askForEdit(name string, edit func(*schedule.Spec)) {
	n, book := s.anyNode(), s.schedules[schedule.CellID(name)]
	if n == nil || book.busy {
		return
	}
	book.busy = true
	s.log("%s: a user asks %s for an edit", name, n.key)
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		return s.putEdited(ctx, n, name, edit)
	}, func(err error) {
		s.log("%s: the edit: %v", name, err)
		book.busy = false
	})
}

func (s *sim) putEdited(ctx context.Context, n *simNode, name string, edit func(*schedule.Spec)) error {
	was, err := n.use.Schedules.Get(ctx, simTopic, name)
	if err != nil {
		return err
	}
	spec := was.Spec
	edit(&spec)
	_, err = n.use.Schedules.Put(ctx, schedules.Definition{Topic: simTopic, Name: name, Spec: spec}, nil)
	return err
}

// definition is what a schedule as it is stored means.
func (s *sim) definition(one *schedule.Schedule) simEdit {
	table, err := one.Table()
	if err != nil {
		panic(err)
	}
	e := simEdit{table: table, jitter: one.Jitter, edits: one.Edits}
	if e.excluded = s.calendars.Excluded(one, table.Zone()); e.excluded == nil {
		e.excluded = func(time.Time) bool { return false }
	}
	return e
}

// names reports whether a definition has a run at a time. One whose intervals count from ends may have it at any.
func (e *simEdit) names(at store.Millis) bool {
	next, ok := e.table.Next((at - 1).Time())
	return e.table.FromEnd() || ok && store.Millis(next.UnixMilli()) == at && !e.excluded(at.Time())
}

// until calls f with the times that a definition names behind one moment up to another, and does not leave out.
func (e *simEdit) until(from, to store.Millis, f func(at store.Millis)) {
	for n := 0; n < 1000; n++ {
		next, ok := e.table.Next(from.Time())
		if from = store.Millis(next.UnixMilli()); !ok || from > to {
			return
		}
		if !e.excluded(from.Time()) {
			f(from)
		}
	}
}

// simSteps is how long a step takes where nothing is slow.
const simSteps = 2 * time.Second

// simUnsure is how long before its commit a step may have been decided.
const simUnsure = 15 * time.Second

// ofItsTime judges that a run that is made is named by a definition that there was at its time.
func (s *sim) ofItsTime(book *simSchedule, r *simMade) {
	if !s.plan.edited || len(book.edits) == 0 {
		return
	}
	for i := range book.edits {
		e := &book.edits[i]
		began := i == 0 || e.since.Add(-simUnsure) <= r.at
		ended := i+1 < len(book.edits) && book.edits[i+1].since < r.at
		if began && !ended && e.names(r.at) {
			return
		}
	}
	s.brokenBy("definition of its time", "strayed: %s makes its run of %v, which no definition of that time names", r.schedule, r.at.Time())
}

// judgeSteps is judgeStep for all of some commits: the rule and the fault of each.
func (s *sim) judgeSteps(m *memstore.Store, sh store.Shard, commits []store.Commit) [][2]string {
	faults := make([][2]string, len(commits))
	for i := range commits {
		for k := range commits[i].Puts {
			if rule, fault := s.judgeStep(m, sh, &commits[i].Puts[k]); fault != "" {
				faults[i] = [2]string{rule, fault}
			}
		}
	}
	return faults
}

// judgeStep judges what a commit makes of a schedule, before it is made; empty: nothing is wrong.
func (s *sim) judgeStep(m *memstore.Store, sh store.Shard, put *store.Put) (rule, fault string) {
	book := s.schedules[put.ID]
	if !s.plan.edited || book == nil || len(book.edits) == 0 || len(put.Body) == 0 {
		return "", ""
	}
	next, err := schedule.FromCell(put.Cell)
	cells, err2 := m.Cells(simContext, sh, []store.CellID{put.ID})
	if err != nil || err2 != nil || cells[0].Version == 0 || cells[0].Version != put.If {
		return "", "" // the commit fails, or it moves
	}
	was, err := schedule.FromCell(cells[0])
	if err != nil || next.Audience != nil {
		return "", ""
	}
	now := s.now(sh)
	if fault = s.knowsRequeued(next, put.ID); fault != "" {
		return "requeued runs are open", fault
	}
	if fault = s.putsOff(was, next, now); fault != "" {
		return "what is not due is taken back", fault
	}
	if next.Edits == was.Edits {
		return "the last that is not left out", s.caughtUp(was, next, now)
	}
	s.sometimes("a definition changes")
	if was.Decided > now {
		s.sometimes("a definition changes within the lead of a run that is made")
	}
	if fault = s.takesBack(book, next, now); fault != "" {
		return "definition of its time", fault
	}
	if fault = s.goesBack(was, next, now); fault != "" {
		return "times before an edit", fault
	}
	return "edits keep intervals", s.keepsInterval(was, next, now)
}

// goesBack judges that an edit that ends intervals from ends names nothing of before it.
func (s *sim) goesBack(was, next *schedule.Schedule, now store.Millis) (fault string) {
	a, b := s.definition(was), s.definition(next)
	if !a.table.FromEnd() || b.table.FromEnd() || was.Phase != schedule.Active || next.Phase != schedule.Active || time.Now().Before(s.late.slow) {
		return ""
	}
	s.sometimes("an edit from intervals that count from ends to times")
	b.until(next.Decided, now.Add(-simSteps), func(at store.Millis) {
		fault = fmt.Sprintf("strayed: an edit of %s at %v begins with times from %v on", next.Name, now.Time(), next.Decided.Time())
	})
	before := slices.Concat(occurrencesOf(was.Open), was.Waiting)
	for i := range was.Dead { // one may be requeued, which the same step hears
		before = append(before, was.Dead[i].Occurrence)
	}
	old := make(map[store.Millis]bool) // whose intervals have begun: those that are left out end at once
	a.until(was.Decided, now, func(at store.Millis) { old[at] = true })
	for _, o := range slices.Concat(occurrencesOf(next.Open), next.Waiting) {
		if o.Origin == schedule.ByTimetable && o.At < now.Add(-simSteps) && !old[o.At] && !slices.Contains(before, o) {
			fault = fmt.Sprintf("strayed: an edit of %s at %v makes its run of %v, which is before it", next.Name, now.Time(), o.At.Time())
		}
	}
	return fault
}

// takesBack judges that an edit takes back what it does not name, and loses nothing that it does.
func (s *sim) takesBack(book *simSchedule, next *schedule.Schedule, now store.Millis) (fault string) {
	d := s.definition(next)
	there := make(map[store.Millis]bool)
	for _, at := range next.Early {
		there[at] = true
	}
	for _, r := range slices.Concat(occurrencesOf(next.Open), next.Waiting) {
		if there[r.At] = true; r.At > now && !slices.Contains(next.Early, r.At) && r.Origin == schedule.ByTimetable && !d.names(r.At) && !begun(next, r) {
			fault = fmt.Sprintf("strayed: an edit of %s at %v leaves its run of %v, which it does not name", next.Name, now.Time(), r.At.Time())
		}
	}
	if d.table.FromEnd() || next.Phase != schedule.Active {
		return fault
	}
	d.until(now, next.Decided, func(at store.Millis) {
		if !there[at] {
			fault = fmt.Sprintf("lost: an edit of %s at %v names %v, which is decided, and has no run", next.Name, now.Time(), at.Time())
		}
	})
	return fault
}

func occurrencesOf(open []schedule.Run) (all []schedule.Occurrence) {
	for i := range open {
		all = append(all, open[i].Occurrence)
	}
	return all
}

func begun(one *schedule.Schedule, o schedule.Occurrence) bool {
	return slices.ContainsFunc(one.Open, func(r schedule.Run) bool { return r.Occurrence == o && r.Begun })
}

// putsOff judges that a pause takes back the runs that jitter has put off until later than now.
func (s *sim) putsOff(was, next *schedule.Schedule, now store.Millis) (fault string) {
	if was.Phase != schedule.Active || next.Phase != schedule.Paused {
		return ""
	}
	for _, r := range was.Open {
		if r.Due > now && r.At <= now && r.Origin == schedule.ByTimetable {
			s.sometimes("a pause while a run is put off by jitter")
		}
	}
	for _, r := range next.Open {
		if r.Due > now && !r.Begun && r.Origin == schedule.ByTimetable {
			fault = fmt.Sprintf("strayed: a pause of %s at %v leaves its run of %v, which is due at %v", next.Name, now.Time(), r.At.Time(), r.Due.Time())
		}
	}
	return fault
}

// keepsInterval judges that an edit of something else does not begin an interval anew.
func (s *sim) keepsInterval(was, next *schedule.Schedule, now store.Millis) string {
	a, b := s.definition(was), s.definition(next)
	if !a.table.FromEnd() || !reflect.DeepEqual(was.Timetable, next.Timetable) || len(was.Open)+len(next.Open) > 0 || next.Phase != schedule.Active {
		return ""
	}
	before, ok := a.table.Next(was.Decided.Time())
	after, ok2 := b.table.Next(next.Decided.Time())
	if !ok || !ok2 || !before.After(now.Time()) {
		return ""
	}
	s.sometimes("an edit of something else within an interval")
	if before.Equal(after) {
		return ""
	}
	return fmt.Sprintf("put off: an edit of %s at %v leaves its timetable, and moves its next time from %v to %v", next.Name, now.Time(), before, after)
}

// caughtUp judges that of the times that were missed, and that no calendar leaves out, the last is not one that is
// left out of what is caught up with.
func (s *sim) caughtUp(was, next *schedule.Schedule, now store.Millis) string {
	missed := next.Skipped[schedule.Missed] - was.Skipped[schedule.Missed]
	d := s.definition(was)
	if was.CatchUp != schedule.Last || was.Within > 0 || d.table.FromEnd() || was.Phase != schedule.Active || time.Now().Before(s.late.slow) {
		return ""
	}
	n, clear := int64(0), true
	d.until(was.Decided, next.Decided, func(at store.Millis) {
		due := store.Millis(timetable.Jitter(was.Life, at.Time(), was.Jitter).UnixMilli())
		switch late := now.Sub(due); {
		case slices.Contains(was.Early, at):
		case was.Paused.From < at && at <= was.Paused.Until:
		case late > was.Grace+simSteps:
			n++
		case late > was.Grace:
			clear = false
		}
	})
	if n == 0 || !clear {
		return ""
	}
	s.sometimes("times were missed, and the last is caught up with")
	if last, ok := d.last(min(next.Decided, now.Add(-was.Grace-simSteps))); ok && d.excluded(last) {
		s.sometimes("times were missed, and a calendar leaves out the last")
	}
	if missed < n {
		return ""
	}
	return fmt.Sprintf("missed: %s at %v catches up with the last time, and makes no run of %d that were missed", next.Name, now.Time(), n)
}

// last is the last time of a timetable up to a moment, of those of the last minute.
func (e *simEdit) last(up store.Millis) (last time.Time, ok bool) {
	for at, more := e.table.Next(up.Add(-time.Minute).Time()); more && at.UnixMilli() <= int64(up); at, more = e.table.Next(at) {
		last, ok = at, true
	}
	return last, ok
}

// defined writes down a definition that is committed.
func (s *sim) defined(sh store.Shard, put *store.Put) {
	book := s.schedules[put.ID]
	if !s.plan.edited || book == nil || len(put.Body) == 0 {
		return
	}
	one, err := schedule.FromCell(put.Cell)
	if err != nil {
		return
	}
	if e := s.definition(one); len(book.edits) == 0 || book.edits[len(book.edits)-1].edits != e.edits {
		e.since = s.now(sh)
		book.edits = append(book.edits, e)
	}
}

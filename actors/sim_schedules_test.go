package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// A run may have schedules, which end when the producers do. What their owners commit is
// written down as what a producer asks for, so the ledger judges the tasks; and it is looked
// at here, whether each occurrence has its run or a reason which is so, and no more. Users ask
// nodes, which fail them like anybody, or are answered at once and always.

// simSchedule is a schedule and what was committed of it.
type simSchedule struct {
	shard  store.Shard
	start  store.Millis
	table  *timetable.Timetable
	made   map[string]bool // runs of the timetable, without those that were taken back
	paused store.Millis    // since when; 0: it is not, or nobody knows
	busy   bool            // a user waits for an answer
	asked  int             // triggers
	edits  []simEdit       // definitions, in order
}

// drawSchedules draws how many schedules there are, from a source of its own like drawIdle.
func (s *sim) drawSchedules(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 11))
	if rng.Float64() < 0.6 || p.rewind > 0 || p.drops > 0 {
		return 0
	}
	return 1 + rng.IntN(5)
}

func simScheduleName(i int) string { return fmt.Sprintf("schedule%d", i) }

// schedule puts the schedules of the plan.
func (s *sim) schedule() {
	rng := rand.New(rand.NewPCG(s.seed, 12))
	between := func(a, b time.Duration) time.Duration {
		return (a + time.Duration(rng.Int64N(int64(b-a)))).Truncate(time.Millisecond)
	}
	for i := range s.plan.schedules {
		name := simScheduleName(i)
		bare := schedule.Schedule{Name: name}
		sh := s.shardOf(bare.ID(schedule.Occurrence{}))
		start := s.now(sh)
		one := &schedule.Schedule{
			Spec: schedule.Spec{
				Timetable: timetable.Spec{
					Entries: []timetable.Entry{{Every: between(2*time.Second, 40*time.Second)}},
					End:     start.Add(s.plan.active).Time(),
				},
				Overlap: schedule.Overlap(1 + rng.IntN(5)),
				CatchUp: schedule.CatchUp(1 + rng.IntN(3)), Grace: between(time.Second, time.Minute), History: schedule.MaxHistory,
				Template: schedule.Template{Task: store.Task{Payload: []byte("run"), MaxRetries: rng.IntN(3)}},
			},
			Name: name, Life: rng.Uint64(), Phase: schedule.Active, Anchor: start, Decided: start,
		}
		if s.plan.edited {
			s.drawTimetable(rng, &one.Spec)
			s.drawCatchUp(rng, &one.Spec)
		}
		table, err := one.Table()
		if err != nil {
			panic(err)
		}
		s.schedules[schedule.CellID(name)] = &simSchedule{shard: sh, start: start, table: table, made: map[string]bool{}}
		s.change(one, 0, nil)
		if rng.IntN(2) == 0 {
			at := between(time.Second, s.plan.active)
			s.after(at, func() { s.pauseSchedule(name, true) })
			s.after(at+between(time.Millisecond, time.Minute), func() { s.pauseSchedule(name, false) })
		}
		for range rng.IntN(6) {
			act := rng.IntN(6)
			s.after(between(time.Second, s.plan.active), func() { s.askForSchedule(name, act) })
		}
		s.after(s.plan.active+time.Second, func() { s.pauseSchedule(name, false) })
	}
}

// askForSchedule has a user ask some node to trigger a schedule, to edit it, to pause or to
// resume it. One call about a schedule is made at a time.
func (s *sim) askForSchedule(name string, act int) {
	n, book := s.anyNode(), s.schedules[schedule.CellID(name)]
	if n == nil || book.busy || time.Since(s.start) > s.plan.active {
		return
	}
	book.busy = true
	book.asked++
	request := fmt.Sprint(name, "#", book.asked)
	overlap := schedule.Overlap(1 + s.rng.IntN(5))
	if act == 3 {
		book.paused = 0
	}
	since, fill := s.between(time.Second, time.Minute), schedule.BufferAll+schedule.Overlap(2*s.rng.IntN(2))
	if act > 3 && s.chance(0.5) {
		s.after(s.between(0, 3*time.Second), func() { s.pauseSchedule(name, true) })
		s.after(s.between(10*time.Second, time.Minute), func() { s.pauseSchedule(name, false) })
	}
	s.log("%s: a user asks for %d", name, act)
	s.spawn(n, func() (err error) {
		ctx, cancel := n.timeout()
		defer cancel()
		switch act {
		case 0:
			_, err = n.use.Schedules.Trigger(ctx, schedules.Trigger{Topic: simTopic, Name: name, Overlap: overlap, Request: request})
		case 1:
			err = s.editSchedule(ctx, n, name, overlap)
		case 2:
			_, err = n.use.Schedules.Pause(ctx, simTopic, name, "sim", "")
		case 4, 5:
			err = s.backfill(ctx, n, name, request, since, fill)
		default:
			_, err = n.use.Schedules.Resume(ctx, simTopic, name, "sim", "")
		}
		return err
	}, func(err error) {
		book.busy = false
		if act == 2 && err == nil {
			book.paused = s.now(book.shard)
		}
	})
}

// editSchedule gives a schedule another overlap, and its runs another payload.
func (s *sim) editSchedule(ctx context.Context, n *simNode, name string, overlap schedule.Overlap) error {
	was, err := n.use.Schedules.Get(ctx, simTopic, name)
	if err != nil {
		return err
	}
	spec := was.Spec
	spec.Overlap = overlap
	spec.Template.Task.Payload = append(slices.Clip(spec.Template.Task.Payload), '+')
	_, err = n.use.Schedules.Put(ctx, schedules.Definition{Topic: simTopic, Name: name, Spec: spec}, nil)
	return err
}

// meddleWith pauses a schedule now and then, or resumes it, while its owner makes up its mind.
func (s *sim) meddleWith(ids []store.CellID) {
	if len(ids) == 0 || time.Since(s.start) > s.plan.active || !s.chance(0.03) {
		return
	}
	id := ids[s.rng.IntN(len(ids))]
	if book := s.schedules[id]; book != nil && !book.busy {
		s.after(s.between(0, 5*time.Millisecond), func() { s.pauseSchedule(id.Key(), book.paused == 0) })
	}
}

// readSchedule returns a schedule as it is stored; nil when it is on its way to another shard.
func (s *sim) readSchedule(id store.CellID) (*schedule.Schedule, int64) {
	sh, there := s.home(id, s.schedules[id].shard)
	if !there {
		return nil, 0
	}
	s.schedules[id].shard = sh
	cells, err := s.on(sh).Cells(simContext, sh, []store.CellID{id})
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	one, err := schedule.FromCell(cells[0])
	if err != nil {
		s.broken("%s cannot be read: %v", id.Key(), err)
		return nil, 0
	}
	return one, cells[0].Version
}

func (s *sim) pauseSchedule(name string, paused bool) {
	one, version := s.readSchedule(schedule.CellID(name))
	book := s.schedules[schedule.CellID(name)]
	if one == nil || paused && book.busy { // nobody would know whose change is the last
		return
	}
	if paused {
		if one.Phase == schedule.Active && s.change(one, version, schedule.Pause{By: "sim"}) {
			book.paused = s.now(book.shard)
		}
		return
	}
	book.paused = 0
	s.change(one, version, schedule.Resume{By: "sim"})
}

// change makes a change of a user, which is answered at once. It reports false when the schedule is about
// to move.
func (s *sim) change(one *schedule.Schedule, version int64, e schedule.Event) bool {
	book := s.schedules[schedule.CellID(one.Name)]
	topic, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil {
		panic(err)
	}
	now := s.now(book.shard)
	table, excluded := book.table, func(time.Time) bool { return false }
	if s.plan.edited {
		d := s.definition(one)
		table, excluded = d.table, d.excluded
	}
	for {
		// The owner makes the runs, as nobody would tell it of others.
		next, out := schedule.Step(one, e, schedule.Env{Now: now, Refused: true, Table: table, Excluded: excluded})
		c, err := schedule.Commit(next, &out, version, &topic, now)
		if err != nil {
			panic(err)
		}
		schedule.Nudge(&c, now)
		results := s.commit(book.shard, nil, []store.Commit{c})
		switch r := results[0]; r.Status {
		case store.OK:
			return true
		case store.Closed:
			return false
		case store.WrongState:
			one, _ = schedule.StepAll(one, []schedule.Event{schedule.Begun{ID: r.ID}}, schedule.Env{Now: now, Lead: 0, Table: table, Excluded: excluded})
		default:
			panic(fmt.Sprintf("a change of %s: %+v", one.Name, r))
		}
	}
}

// commit has the store make commits, and writes down what they made.
func (s *sim) commit(sh store.Shard, f *store.Fence, commits []store.Commit) []store.CommitResult {
	pending, faults := s.pendingOf(sh, commits), s.judgeSteps(s.on(sh), sh, commits)
	_, results, err := s.on(sh).Commit(simContext, sh, f, commits)
	if err != nil {
		return nil
	}
	for i, r := range results {
		if r.Status == store.OK {
			s.committed(sh, &commits[i], pending)
			if f := faults[i]; f[1] != "" {
				s.brokenBy(f[0], "%s", f[1])
			}
		}
	}
	return results
}

// pendingOf says of the tasks that commits remove, and that are in the shard, whether they are pending.
func (s *sim) pendingOf(sh store.Shard, commits []store.Commit) map[string]bool {
	var ids []string
	for i := range commits {
		ids = append(ids, commits[i].Removed()...)
	}
	_, found, err := s.on(sh).Get(simContext, sh, ids)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	pending := make(map[string]bool)
	for _, t := range found {
		if t.State != store.StateUnknown {
			pending[t.ID] = t.State.Pending()
		}
	}
	return pending
}

// doubts says of each commit, before it is made, what speaks against the reasons for which it
// skips occurrences; empty: nothing.
func (s *sim) doubts(m *memstore.Store, sh store.Shard, commits []store.Commit) []string {
	doubts := make([]string, len(commits))
	for i := range commits {
		for _, put := range commits[i].Puts {
			if s.schedules[put.Cell.ID] != nil && len(put.Body) > 0 {
				doubts[i] = s.doubt(m, sh, &put)
			}
		}
	}
	return doubts
}

func (s *sim) doubt(m *memstore.Store, sh store.Shard, put *store.Put) string {
	next, err := schedule.FromCell(put.Cell)
	cells, err2 := m.Cells(simContext, sh, []store.CellID{put.ID})
	if err != nil || err2 != nil || cells[0].Version != put.If {
		return "" // the commit fails
	}
	was, err := schedule.FromCell(cells[0])
	if err != nil || next.Skipped[schedule.Overlapped] == was.Skipped[schedule.Overlapped] {
		return ""
	}
	i := len(next.History) - 1
	for i >= 0 && next.History[i].Reason != schedule.Overlapped {
		i--
	}
	if i < 0 || s.wasOpen(m, sh, was, next.History[i].At) {
		return ""
	}
	for _, r := range next.Open { // one of before that is made as late
		if r.Origin != schedule.ByTimetable || r.At < next.History[i].At {
			return ""
		}
	}
	return fmt.Sprintf("unreasonable: %s skips that of %v at %v, as a run is open, and none is since before", next.Name, next.History[i].At.Time(), s.now(sh).Time())
}

// wasOpen reports whether a run of a schedule was open at a moment, or is: none whose end was
// told before that.
func (s *sim) wasOpen(m *memstore.Store, sh store.Shard, one *schedule.Schedule, since store.Millis) bool {
	ended := make(map[string]store.Millis)
	parcels, err := m.Parcels(simContext, sh, store.InBox, one.Taken, 10_000)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	for i := range parcels {
		if e, ok := schedule.Told(&parcels[i]).(schedule.Ended); ok {
			ended[e.ID] = parcels[i].At
		}
	}
	for _, r := range one.Open {
		if at, told := ended[one.ID(r.Occurrence)]; !told || at >= since {
			return true
		}
	}
	return false
}

// mostLead is how far ahead a run of a shard may be made. A node takes the store for one clock
// until it has heard of the other.
func (s *sim) mostLead(sh store.Shard) time.Duration {
	return schedule.Lead + time.Second + max(0, -s.ahead(sh))
}

func (s *sim) committed(sh store.Shard, c *store.Commit, pending map[string]bool) {
	s.once(c)
	s.beganChildren(sh, c)
	for i := range c.Puts {
		s.defined(sh, &c.Puts[i])
	}
	client := s.client("schedules")
	others := notOfTimetable(c)
	for _, id := range c.Cancels {
		if _, there := pending[id]; there && !pending[id] {
			client.ask(history.Event{Op: history.Cancel, Task: id})(history.Event{Outcome: "requested"}, nil)
		}
	}
	for _, r := range c.Removes {
		if pending[r.ID] {
			for _, book := range s.schedules {
				if r.Due != 0 { // it is taken back, not cancelled
					delete(book.made, r.ID)
				}
			}
			client.ask(history.Event{Op: history.Delete, Task: r.ID})(history.Event{}, nil)
		}
	}
	for _, put := range c.Puts {
		if put.ID.Kind() == store.CellWalk && put.If == 0 && len(put.Body) > 0 {
			w := s.walkIn(put.Cell)
			s.ordered(w)
			s.madeRun(sh, &simMade{w.Run, w.Schedule, w.Occurrence, w.At}, others)
		}
	}
	for _, t := range c.Adds {
		if t.StepOf == nil && t.RunOf == nil {
			s.chained(t)
			continue
		}
		if t.StepOf != nil {
			s.away[t.ID] = sh.Topic == simAway
			s.madeStep(t)
			continue
		}
		if t.RunOf.Recipient == "" {
			s.madeRun(sh, &simMade{t.ID, t.RunOf.Schedule, t.RunOf.Occurrence, t.Due}, others)
		}
		client.ask(history.Event{Op: history.Enqueue, Task: t.ID, Due: int64(t.Due), Sum: string(t.Payload), Attempts: t.MaxRetries + 1})(
			history.Event{Due: int64(t.Due)}, nil)
	}
}

// simMade is a run that a schedule makes: a task, or one that goes through the audience.
type simMade struct {
	id, schedule string
	at, due      store.Millis
}

// madeRun writes down a run, and looks whether it may be there: others are not of the timetable.
func (s *sim) madeRun(sh store.Shard, r *simMade, others map[string]bool) {
	if others[r.id] {
		return
	}
	book, now := s.schedules[schedule.CellID(r.schedule)], s.now(sh)
	switch {
	case book.made[r.id]:
		s.broken("doubled: %s makes its run of %v again", r.schedule, r.at.Time())
	case r.due < r.at || r.at.Sub(now) > s.mostLead(sh):
		s.broken("premature: %s makes its run of %v, due %v, at %v", r.schedule, r.at.Time(), r.due.Time(), now.Time())
	case book.paused != 0 && r.at > book.paused:
		s.broken("strayed: %s makes its run of %v, and is paused since %v", r.schedule, r.at.Time(), book.paused.Time())
	}
	s.ofItsTime(book, r)
	book.made[r.id] = true
}

// notOfTimetable are the runs that a commit adds for other reasons.
func notOfTimetable(c *store.Commit) map[string]bool {
	others := make(map[string]bool)
	for _, put := range c.Puts {
		if put.Cell.ID.Kind() != store.CellSchedule || len(put.Body) == 0 {
			continue
		}
		if one, err := schedule.FromCell(put.Cell); err == nil {
			for _, r := range one.Open {
				others[one.ID(r.Occurrence)] = r.Origin != schedule.ByTimetable
			}
		}
	}
	return others
}

// schedulesOver reports whether all schedules have finished, and are where they are to stay.
func (s *sim) schedulesOver() bool {
	for id := range s.schedules {
		one, _ := s.readSchedule(id)
		if one != nil && finished(one) && s.stays(s.schedules[id].shard) {
			continue
		}
		if one != nil && one.Phase == schedule.Paused { // a pause that nobody was answered
			s.pauseSchedule(id.Key(), false)
		}
		return false
	}
	return true
}

// finished reports whether a schedule has no run left, and hears of none: one whose run
// was requeued is told of its end after the run is gone.
func finished(one *schedule.Schedule) bool {
	return one.Phase == schedule.Finished && len(one.Open)+len(one.Waiting)+len(one.Recalled) == 0
}

// auditSchedules looks whether each occurrence has become something.
func (s *sim) auditSchedules() {
	var ids []store.CellID
	for i := range s.plan.schedules {
		ids = append(ids, schedule.CellID(fmt.Sprintf("schedule%d", i)))
	}
	if s.audience != nil {
		ids = append(ids, schedule.CellID(simMails))
		if s.audience.local {
			ids = append(ids, schedule.CellID(simLocals))
		}
	}
	for _, id := range ids {
		book := s.schedules[id]
		one, _ := s.readSchedule(id)
		if one == nil {
			s.broken("%s is gone", id.Key())
			continue
		}
		named := int64(schedule.Count(book.table, book.start+1, book.start.Add(s.plan.active), 1<<20))
		skipped := int64(0)
		for _, n := range one.Skipped {
			skipped += n
		}
		for _, h := range one.History {
			if h.Origin != schedule.ByTimetable {
				skipped -= h.Count
			}
		}
		switch {
		case !finished(one):
			s.broken("%s has not finished: %+v", one.Name, one)
		case !s.stays(book.shard):
			s.broken("stranded: %s is in %v, which is of before a reshard", one.Name, book.shard)
		case s.plan.edited: // each step was judged when it was made
		case len(one.History) == schedule.MaxHistory: // it may have forgotten skips of triggers
		case one.Made != int64(len(book.made)) || one.Made+skipped != named:
			s.broken("vanished: of %d occurrences %s made %d, with %d runs, and skipped %v", named, one.Name, one.Made, len(book.made), one.Skipped)
		}
	}
}

// simCells is a store that keeps cells, too.
type simCells struct{ *simStore }

var _ store.Cells = simCells{}

func (st simCells) Commit(ctx context.Context, sh store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	turn := st.s.whose()
	asked, _ := ctx.Value(simAsked{}).(*simAsk)
	op := "commit"
	if slices.ContainsFunc(commits, func(c store.Commit) bool { return c.Receive != nil }) {
		op = simBrings
	}
	return askAll(ctx, st.simStore, op, sh, true, func(m *memstore.Store) (store.Stamp, []store.CommitResult, error) {
		walks := st.s.walksOf(m, sh, commits)
		pending := st.s.pendingOf(sh, commits)
		reasons := st.s.doubts(m, sh, commits)
		faults := st.s.judgeSteps(m, sh, commits)
		if st.s.faults.full[sh.For(0)] > 0 && slices.ContainsFunc(commits, func(c store.Commit) bool { return life.BringsWork(&c) }) {
			return store.Stamp{}, nil, store.ErrFull
		}
		forgotten := st.s.forgotten(m, sh, commits)
		stamp, results, err := m.Commit(simContext, sh, f, st.s.forgets(commits))
		for i := range results {
			made := asMade(&commits[i], &results[i])
			if results[i].Status == store.OK {
				st.s.conserves(sh, made, forgotten[i])
				st.s.chainOn(sh, made)
				st.s.meddleWithReceived(st.node, &commits[i])
			}
			switch {
			case results[i].Status != store.OK:
			case st.s.isAudience(sh):
				st.s.audienceChanged(sh, &commits[i], asked)
			case sh == audience.Catalog():
				st.s.recorded(&commits[i])
			default:
				st.s.committed(sh, made, pending)
				st.s.walked(turn, &commits[i], walks)
				if f := faults[i]; f[1] != "" {
					st.s.brokenBy(f[0], "%s", f[1])
				}
				if reasons[i] != "" {
					st.s.broken("%s", reasons[i])
				}
			}
		}
		if f != nil {
			err = st.s.fenced(st.node, "commit", sh, *f, err)
		}
		return stamp, results, err
	})
}

func (st simCells) Cells(ctx context.Context, sh store.Shard, ids []store.CellID) ([]store.Cell, error) {
	turn := st.s.whose()
	return askStore(ctx, st.simStore, "cells", sh, false, func(m *memstore.Store) ([]store.Cell, error) {
		st.s.audienceRead(turn, sh, ids)
		st.s.meddleWith(ids)
		st.s.meddleWithFlows(ids)
		return m.Cells(simContext, sh, ids)
	})
}

func (st simCells) Server(ctx context.Context, sh store.Shard) uint64 {
	return st.s.mem.Server(ctx, sh)
}

func (st simCells) Wakes(ctx context.Context, sh store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	return askAll(ctx, st.simStore, "wakes", sh, false, func(m *memstore.Store) (store.Stamp, []store.Wake, error) { return m.Wakes(simContext, sh, q) })
}

func (st simCells) WakeHistogram(ctx context.Context, sh store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	return askAll(ctx, st.simStore, "wake histogram", sh, false, func(m *memstore.Store) (store.Stamp, []int64, error) {
		return m.WakeHistogram(simContext, sh, bounds)
	})
}

func (st simCells) Listed(ctx context.Context, sh store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error) {
	return askStore(ctx, st.simStore, "listed", sh, false, func(m *memstore.Store) ([]store.Cell, error) {
		return m.Listed(simContext, sh, list, after, limit)
	})
}

func (st simCells) CellPage(ctx context.Context, sh store.Shard, kind byte, cursor string, limit int) ([]store.Cell, string, error) {
	var next string
	cells, err := askStore(ctx, st.simStore, "cell page", sh, false, func(m *memstore.Store) (cells []store.Cell, err error) {
		cells, next, err = m.CellPage(simContext, sh, kind, cursor, limit)
		return cells, err
	})
	return cells, next, err
}

func (st simCells) Told(ctx context.Context, sh store.Shard, q store.ToldQuery) ([]store.Parcel, []store.Cell, error) {
	var cells []store.Cell
	parcels, err := askStore(ctx, st.simStore, "told", sh, false, func(m *memstore.Store) (parcels []store.Parcel, err error) {
		parcels, cells, err = m.Told(simContext, sh, q)
		_, ids := q.Cut(parcels)
		st.s.meddleWith(ids)
		st.s.meddleWithFlows(ids)
		return parcels, err
	})
	return parcels, cells, err
}

func (st simCells) Parcels(ctx context.Context, sh store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	return askStore(ctx, st.simStore, "parcels", sh, false, func(m *memstore.Store) ([]store.Parcel, error) {
		if box == store.OutBox {
			st.s.walksMessages(st.node, after)
		}
		return m.Parcels(simContext, sh, box, after, limit)
	})
}

func (st simCells) Queues(ctx context.Context, sh store.Shard, after store.Queue, limit int) ([]store.QueueHead, error) {
	return askStore(ctx, st.simStore, "queues", sh, false, func(m *memstore.Store) ([]store.QueueHead, error) {
		return m.Queues(simContext, sh, after, limit)
	})
}

func (st simCells) Messages(ctx context.Context, sh store.Shard, q store.Queue, after int64, limit, bytes int) (store.MessagePage, error) {
	return askStore(ctx, st.simStore, "messages", sh, false, func(m *memstore.Store) (store.MessagePage, error) {
		st.s.walksMessages(st.node, after)
		return m.Messages(simContext, sh, q, after, limit, bytes)
	})
}

func (st simCells) Receipts(ctx context.Context, sh store.Shard, queues []store.Queue) ([]store.Receipt, error) {
	return askStore(ctx, st.simStore, "receipts", sh, false, func(m *memstore.Store) ([]store.Receipt, error) {
		return m.Receipts(simContext, sh, queues)
	})
}

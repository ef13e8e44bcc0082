package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// A run may have schedules, which end when the producers do. What their owners commit is
// written down as what a producer asks for, so the ledger judges the tasks; and it is looked
// at here, whether each occurrence has its run or a reason, and no more.

// simSchedule is a schedule and what was committed of it.
type simSchedule struct {
	shard  store.Shard
	start  store.Millis
	table  *timetable.Timetable
	made   map[string]bool // runs, without those that were taken back
	paused store.Millis    // since when; 0: it is not
}

// drawSchedules draws how many schedules there are, from a source of its own like drawIdle.
func (s *sim) drawSchedules(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 11))
	if rng.Float64() < 0.6 || p.rewind > 0 || p.drops > 0 {
		return 0
	}
	return 1 + rng.IntN(5)
}

// schedule puts the schedules of the plan.
func (s *sim) schedule() {
	rng := rand.New(rand.NewPCG(s.seed, 12))
	between := func(a, b time.Duration) time.Duration {
		return (a + time.Duration(rng.Int64N(int64(b-a)))).Truncate(time.Millisecond)
	}
	for i := range s.plan.schedules {
		name := fmt.Sprintf("schedule%d", i)
		bare := schedule.Schedule{Name: name}
		sh := s.shardOf(bare.ID(schedule.Occurrence{}))
		start := s.now(sh)
		one := &schedule.Schedule{
			Spec: schedule.Spec{
				Timetable: timetable.Spec{
					Entries: []timetable.Entry{{Every: between(2*time.Second, 40*time.Second)}},
					End:     start.Add(s.plan.active).Time(),
				},
				Overlap: []schedule.Overlap{schedule.Skip, schedule.BufferOne, schedule.BufferAll, schedule.Allow}[rng.IntN(4)],
				CatchUp: schedule.CatchUp(1 + rng.IntN(3)), Grace: between(time.Second, time.Minute), History: rng.IntN(5),
				Template: schedule.Template{Task: store.Task{Payload: []byte("run"), MaxRetries: rng.IntN(3)}},
			},
			Name: name, Life: rng.Uint64(), Phase: schedule.Active, Anchor: start, Decided: start,
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
		s.after(s.plan.active+time.Second, func() { s.pauseSchedule(name, false) })
	}
}

// meddleWith pauses a schedule now and then, or resumes it, while its owner makes up its mind.
func (s *sim) meddleWith(ids []store.CellID) {
	if len(ids) == 0 || time.Since(s.start) > s.plan.active || !s.chance(0.03) {
		return
	}
	id := ids[s.rng.IntN(len(ids))]
	if book := s.schedules[id]; book != nil {
		s.after(s.between(0, 5*time.Millisecond), func() { s.pauseSchedule(id.Key(), book.paused == 0) })
	}
}

// read returns a schedule as it is stored.
func (s *sim) readSchedule(id store.CellID) (*schedule.Schedule, int64) {
	sh := s.schedules[id].shard
	cells, err := s.on(sh).Cells(simContext, sh, []store.CellID{id})
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	one, err := schedule.FromCell(cells[0])
	if err != nil {
		s.broken("%s is gone: %v", id.Key(), err)
		return nil, 0
	}
	return one, cells[0].Version
}

func (s *sim) pauseSchedule(name string, paused bool) {
	one, version := s.readSchedule(schedule.CellID(name))
	if one == nil {
		return
	}
	book := s.schedules[schedule.CellID(name)]
	if paused {
		s.change(one, version, schedule.Pause{By: "sim"})
		book.paused = s.now(book.shard)
		return
	}
	book.paused = 0
	s.change(one, version, schedule.Resume{By: "sim"})
}

// change makes a change of a user, which is answered at once.
func (s *sim) change(one *schedule.Schedule, version int64, e schedule.Event) {
	book := s.schedules[schedule.CellID(one.Name)]
	topic, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil {
		panic(err)
	}
	now := s.now(book.shard)
	for {
		// The owner makes the runs, as nobody would tell it of others.
		next, out := schedule.Step(one, e, schedule.Env{Now: now, Refused: true, Table: book.table})
		c, err := schedule.Commit(next, &out, version, &topic, now)
		if err != nil {
			panic(err)
		}
		schedule.Nudge(&c, now)
		results := s.commit(book.shard, nil, []store.Commit{c})
		switch r := results[0]; r.Status {
		case store.OK:
			return
		case store.WrongState:
			one, _ = schedule.StepAll(one, []schedule.Event{schedule.Begun{ID: r.ID}}, schedule.Env{Now: now, Lead: 0, Table: book.table})
		default:
			panic(fmt.Sprintf("a change of %s: %+v", one.Name, r))
		}
	}
}

// commit has the store make commits, and writes down what they made.
func (s *sim) commit(sh store.Shard, f *store.Fence, commits []store.Commit) []store.CommitResult {
	pending := s.pendingOf(sh, commits)
	_, results, err := s.on(sh).Commit(simContext, sh, f, commits)
	if err != nil {
		return nil
	}
	for i, r := range results {
		if r.Status == store.OK {
			s.committed(sh, &commits[i], pending)
		}
	}
	return results
}

// pendingOf are the tasks that commits remove, as far as they are pending.
func (s *sim) pendingOf(sh store.Shard, commits []store.Commit) map[string]bool {
	var ids []string
	for i := range commits {
		for _, r := range commits[i].Removes {
			ids = append(ids, r.ID)
		}
	}
	_, found, err := s.on(sh).Get(simContext, sh, ids)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	pending := make(map[string]bool)
	for _, t := range found {
		pending[t.ID] = t.State.Pending()
	}
	return pending
}

func (s *sim) committed(sh store.Shard, c *store.Commit, pending map[string]bool) {
	client, now := s.client("schedules"), s.now(sh)
	for _, r := range c.Removes {
		if pending[r.ID] {
			for _, book := range s.schedules {
				delete(book.made, r.ID)
			}
			client.ask(history.Event{Op: history.Delete, Task: r.ID})(history.Event{}, nil)
		}
	}
	for _, t := range c.Adds {
		book := s.schedules[schedule.CellID(t.RunOf.Schedule)]
		switch at := t.RunOf.Occurrence; {
		case book.made[t.ID]:
			s.broken("doubled: %s makes its run of %v again", t.RunOf.Schedule, at.Time())
		case t.Due < at || at.Sub(now) > schedule.Lead+time.Second:
			s.broken("premature: %s makes its run of %v, due %v, at %v", t.RunOf.Schedule, at.Time(), t.Due.Time(), now.Time())
		case book.paused != 0 && at > book.paused:
			s.broken("strayed: %s makes its run of %v, and is paused since %v", t.RunOf.Schedule, at.Time(), book.paused.Time())
		}
		book.made[t.ID] = true
		client.ask(history.Event{Op: history.Enqueue, Task: t.ID, Due: int64(t.Due), Sum: string(t.Payload), Attempts: t.MaxRetries + 1})(
			history.Event{Due: int64(t.Due)}, nil)
	}
}

// schedulesOver reports whether all schedules have finished.
func (s *sim) schedulesOver() bool {
	for id := range s.schedules {
		if one, _ := s.readSchedule(id); one != nil && one.Phase != schedule.Finished {
			return false
		}
	}
	return true
}

// auditSchedules looks whether each occurrence has become something.
func (s *sim) auditSchedules() {
	for i := range s.plan.schedules {
		id := schedule.CellID(fmt.Sprintf("schedule%d", i))
		book := s.schedules[id]
		one, _ := s.readSchedule(id)
		if one == nil {
			continue
		}
		named := int64(schedule.Count(book.table, book.start+1, book.start.Add(s.plan.active), 1<<20))
		skipped := int64(0)
		for _, n := range one.Skipped {
			skipped += n
		}
		switch {
		case one.Phase != schedule.Finished || len(one.Open)+len(one.Waiting)+len(one.Recalled) > 0:
			s.broken("%s has not finished: %+v", one.Name, one)
		case one.Made != int64(len(book.made)) || one.Made+skipped != named:
			s.broken("vanished: of %d occurrences %s made %d, with %d tasks, and skipped %v", named, one.Name, one.Made, len(book.made), one.Skipped)
		}
	}
}

// simCells is a store that keeps cells, too.
type simCells struct{ *simStore }

var _ store.Cells = simCells{}

func (st simCells) Commit(ctx context.Context, sh store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	return askAll(ctx, st.simStore, "commit", sh, true, func(m *memstore.Store) (store.Stamp, []store.CommitResult, error) {
		pending := st.s.pendingOf(sh, commits)
		stamp, results, err := m.Commit(simContext, sh, f, commits)
		for i := range results {
			if results[i].Status == store.OK {
				st.s.committed(sh, &commits[i], pending)
			}
		}
		if f != nil {
			err = st.s.fenced(st.node, "commit", sh, *f, err)
		}
		return stamp, results, err
	})
}

func (st simCells) Cells(ctx context.Context, sh store.Shard, ids []store.CellID) ([]store.Cell, error) {
	return askStore(ctx, st.simStore, "cells", sh, false, func(m *memstore.Store) ([]store.Cell, error) {
		st.s.meddleWith(ids)
		return m.Cells(simContext, sh, ids)
	})
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

func (st simCells) Parcels(ctx context.Context, sh store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	return askStore(ctx, st.simStore, "parcels", sh, false, func(m *memstore.Store) ([]store.Parcel, error) {
		return m.Parcels(simContext, sh, box, after, limit)
	})
}

package checker

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// audience is a register under check, with the runs that went through it.
type audience struct {
	*register
	*evidence
	table  *ledger.Timetable
	spread *ledger.Spread
	runs   []*run
}

// run is one of an audience. The ledger works out the places by itself.
type run struct {
	at      int64 // its occurrence, ms
	certain bool  // the schedule was there before it
	tasks   map[string][]*story
	begun   int64          // no later than that it had begun, mono; never when nobody knows
	marks   map[int][]mark // in each shard of the audience
}

// mark is a place up to which a run had come in its shard at a moment at the latest.
type mark struct {
	offset time.Duration
	by     int64 // mono
}

// audience is a register, as rules look at it; nil when there were no runs.
func (ev *evidence) audience(r *register) *audience {
	if len(r.puts) == 0 {
		return nil
	}
	a := &audience{register: r, evidence: ev, table: r.puts[0].Timetable, spread: r.puts[0].Spread}
	since := answered(r.puts)
	for at, ok := a.table.FromMS, a.table.FromMS <= a.table.ToMS; ok; at, ok = a.table.Next(at) {
		from, _ := ev.clock.Bounds(at)
		a.runs = append(a.runs, &run{at: at, certain: from > since, tasks: map[string][]*story{}, begun: never, marks: map[int][]mark{}})
	}
	for _, m := range r.members {
		for _, s := range m.tasks {
			a.enter(m, s)
		}
	}
	return a
}

// enter gives a task to its run.
func (a *audience) enter(m *member, s *story) {
	i := slices.IndexFunc(a.runs, func(r *run) bool { return r.at == s.occurrence })
	if i < 0 {
		a.offend(verdict.Strayed, m, "it has a task of a run at %s, which nobody asked for", clockTime(s.occurrence))
		return
	}
	r := a.runs[i]
	r.tasks[m.id] = append(r.tasks[m.id], s)
	if s.created == 0 || s.loose() || a.undone(s.created) {
		return
	}
	_, by := a.clock.Bounds(s.created)
	n := a.spread.Shard(m.id)
	r.begun, r.marks[n] = min(r.begun, by), append(r.marks[n], mark{a.spread.Place(m.id), by})
}

// offend complains of what a recipient got.
func (a *audience) offend(v verdict.Violation, m *member, why string, args ...any) {
	a.evidence.offend(v, a.topic, m.id, m.events, why, args...)
}

// long reports whether everything of a run was long ago when the store was read. One that was made late
// began then, which may be an hour ahead of a clock that was set back.
func (a *audience) long(r *run) bool {
	begin := r.at
	if f := a.found[r.at]; f != nil {
		begin = max(begin, f.Walk.Begin)
	}
	_, to := a.clock.Bounds(begin + a.spread.WindowMS)
	return a.to > to+a.stuckAfter*millisecond
}

// passed reports whether a run had come by the place of a recipient before a moment.
func (a *audience) passed(r *run, m *member, moment int64) bool {
	own := a.spread.Place(m.id)
	return slices.ContainsFunc(r.marks[a.spread.Shard(m.id)], func(p mark) bool { return p.offset > own && p.by+lookTakes < moment })
}

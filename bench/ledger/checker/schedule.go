package checker

import (
	"maps"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// schedule is a diary under check, with the occurrences that its timetables name: those that
// the ledger counts by itself, without anything of the product.
type schedule struct {
	*diary
	*evidence
	timeline []*ledger.Event

	named   []int64          // occurrences that may be decided, in order
	certain map[int64]bool   // those that must be
	made    map[int64]*made  // what is known to have been made of them
	others  map[string]bool  // ids of runs outside the timetable
	reasons map[int64]reason // why there was none, as far as the schedule says
}

// made is the runs of an occurrence, as they were seen or remembered.
type made struct {
	ids  []string
	seen []*story // of these, those that anybody had or found
}

// reason is why an occurrence has no run.
type reason struct {
	why string
	// vague: it is one of several occurrences, and which of them there were is not certain.
	vague bool
}

// schedule is a diary, as rules look at it.
func (ev *evidence) schedule(d *diary) *schedule {
	s := &schedule{diary: d, evidence: ev, timeline: d.events, certain: map[int64]bool{}, made: map[int64]*made{}, others: map[string]bool{}, reasons: map[int64]reason{}}
	s.name()
	s.gatherRuns()
	s.gatherReasons()
	return s
}

// offend complains of the schedule.
func (s *schedule) offend(v verdict.Violation, why string, args ...any) {
	s.evidence.offend(v, s.topic, s.diary.name, s.timeline, why, args...)
}

// name finds the occurrences of all timetables, as long as each was in force.
func (s *schedule) name() {
	named := map[int64]bool{}
	for i, put := range s.puts {
		if !put.may() {
			continue
		}
		for at, ok := put.Timetable.FromMS, put.Timetable.FromMS <= put.Timetable.ToMS; ok; at, ok = put.Timetable.Next(at) {
			if s.mayName(i, at) {
				named[at] = true
				s.certain[at] = s.certain[at] || s.mustName(i, at)
			}
		}
	}
	s.named = slices.Sorted(maps.Keys(named))
	s.certain = maps.Collect(func(yield func(int64, bool) bool) {
		for at, must := range s.certain {
			if must && !yield(at, true) {
				return
			}
		}
	})
}

// mayName reports whether put i may have counted at an occurrence of its timetable. One that
// a worker has in hand just before its time is left alone by an edit.
func (s *schedule) mayName(i int, at int64) bool {
	from, to := s.clock.Bounds(at)
	if to+behindStore < s.puts[i].Mono {
		return false
	}
	for _, later := range s.puts[i+1:] {
		if later.did() && from > later.to+heldAhead*millisecond {
			return false
		}
	}
	return true
}

// behindStore is how far the clock of a node may be behind that of its store, ns: it counts a put from
// then on. The machine may be busy.
const behindStore = 100 * millisecond

// mustName reports whether put i counted at an occurrence for certain.
func (s *schedule) mustName(i int, at int64) bool {
	from, to := s.clock.Bounds(at)
	if !s.puts[i].did() || from <= s.puts[i].to {
		return false
	}
	return !slices.ContainsFunc(s.puts[i+1:], func(later *op) bool { return later.may() && to >= later.Mono })
}

// gatherRuns sorts what is known of runs by their occurrences.
func (s *schedule) gatherRuns() {
	for _, o := range s.triggers {
		if o.answer != nil && o.answer.ID != "" {
			s.others[o.answer.ID] = true
		}
	}
	var past []ledger.Past
	if s.found != nil && s.found.Standing != nil {
		past = s.found.Standing.Past
	}
	for _, p := range past {
		if p.ID != "" && p.Origin != ledger.ByTimetable {
			s.others[p.ID] = true
		}
	}
	for _, run := range s.runs {
		if s.others[run.id] || s.byTrigger(run) {
			s.others[run.id] = true
			continue
		}
		m := s.madeOf(run.occurrence)
		m.ids, m.seen = append(m.ids, run.id), append(m.seen, run)
	}
	for _, p := range past {
		if m := s.madeOf(p.At); p.ID != "" && !s.others[p.ID] && !slices.Contains(m.ids, p.ID) {
			m.ids = append(m.ids, p.ID)
		}
	}
}

func (s *schedule) madeOf(at int64) *made {
	if s.made[at] == nil {
		s.made[at] = &made{}
	}
	return s.made[at]
}

// byTrigger reports whether a run that no timetable names is that of a trigger whose answer
// nobody has.
func (s *schedule) byTrigger(run *story) bool {
	if slices.Contains(s.named, run.occurrence) {
		return false
	}
	return slices.ContainsFunc(s.triggers, func(o *op) bool { return o.result == ledger.Unknown && s.clock.Within(run.occurrence, o.Mono, o.to) })
}

// hasRun reports whether an occurrence had a run.
func (s *schedule) hasRun(at int64) bool { return s.made[at] != nil && len(s.made[at].ids) > 0 }

// gatherReasons gives the skips that the schedule remembers to occurrences without a run. Of
// several in a row it tells the last, and how many they are.
func (s *schedule) gatherReasons() {
	if s.found == nil || s.found.Standing == nil {
		return
	}
	var skips []ledger.Past
	for _, p := range s.found.Standing.Past {
		if p.Skipped != "" && p.Origin == ledger.ByTimetable {
			skips = append(skips, p)
		}
	}
	slices.SortStableFunc(skips, func(a, b ledger.Past) int { return int(a.At - b.At) })
	for _, p := range skips {
		s.reasons[p.At] = reason{why: p.Skipped}
		s.spreadReason(p)
	}
}

// spreadReason gives the reason of several skips to the nearest before the last of them.
func (s *schedule) spreadReason(p ledger.Past) {
	last, _ := slices.BinarySearch(s.named, p.At)
	vague := false
	for i, left := last-1, p.Count-1; i >= 0 && left > 0; i-- {
		at := s.named[i]
		if _, taken := s.reasons[at]; taken || s.hasRun(at) {
			continue
		}
		vague = vague || !s.certain[at]
		s.reasons[at] = reason{p.Skipped, vague}
		if s.certain[at] {
			left--
		}
	}
}

// decidedBy is the latest moment at which an occurrence can have been decided: before a run
// of a later one came, and before the schedule was read.
func (s *schedule) decidedBy(at int64) int64 {
	by := int64(never)
	if s.found != nil {
		by = s.found.Mono
	}
	for later, m := range s.made {
		if later <= at {
			continue
		}
		for _, run := range m.seen {
			if len(run.deliveries) > 0 && !run.loose() {
				by = min(by, run.deliveries[0].Mono)
			}
		}
	}
	return by
}

// mayBeOpen reports whether a run may have been open between two moments. Of those of the
// timetable it is one of before an occurrence. What is made ahead of its time is not open.
func (s *schedule) mayBeOpen(before, from, to int64) bool {
	for at, m := range s.made {
		if at >= before || s.clock.Reached(at-heldAhead) > to {
			continue
		}
		if len(m.seen) < len(m.ids) {
			return true // nobody saw how it went
		}
		for _, run := range m.seen {
			if s.heardBy(run) >= from {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.runs, func(run *story) bool {
		return s.others[run.id] && s.heardBy(run) >= from && s.clock.Reached(run.occurrence) <= to
	}) ||
		slices.ContainsFunc(s.triggers, func(o *op) bool { return o.may() && o.Mono < to && (o.answer == nil || o.answer.ID == "") })
}

// heardBy is the moment by which the schedule heard that a run was over; never when nobody knows.
// One that moves to another shard hears of it when the owners of both are there: where something was
// broken as the run ended, that is when all has settled.
func (s *schedule) heardBy(run *story) int64 {
	over := run.overBy()
	by := over
	for _, f := range s.faults {
		switch {
		case f.From > over || f.To != never && f.To+effective.Nanoseconds() < over:
		case f.To == never:
			return never
		default:
			by = max(by, f.To+effective.Nanoseconds())
		}
	}
	return by
}

// overBy is the moment by which the run was over; never when nobody knows.
func (s *story) overBy() int64 {
	if s.loose() {
		return never
	}
	by := int64(never)
	for _, o := range s.settles {
		if ends := o.Op == ledger.Ack || o.Op == ledger.Nack && o.Final; ends && o.did() {
			by = min(by, o.to)
		}
	}
	return by
}

// undoneAt reports whether a fault may have undone what was decided of an occurrence.
func (s *schedule) undoneAt(at int64) bool {
	return s.undone(at) || s.clock.WasSet() && s.changed() || slices.ContainsFunc(s.runs, func(run *story) bool { return run.occurrence == at && run.loose() })
}

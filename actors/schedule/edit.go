package schedule

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

// An edit splits time: what was named up to then is decided by the definition of before, and what comes by
// the new one, its calendars included. No occurrence is decided by half of each.

// editing is what a step does about an edit.
type editing struct{ *step }

// edit gives the schedule another spec. Effects.Behind: more is to be decided before it than a commit has
// room for.
func (p editing) edit(e Edit) {
	if e.Anew { // intervals count from the moment that is stored, whatever the caller took for it
		e.Table = e.Table.MadeAt(p.Now.Time())
	}
	switch {
	case !e.Anew && p.s.runsAs(&e.Spec):
		p.s.History = lastOf(p.s.History, e.Spec.History)
	case !e.Anew && p.s.sameTimes(&e.Spec):
		p.decideByNow() // the rest is named by the new spec, too
		p.putBack(p.takeBack(notDue), &e)
	case !p.decideByNow() || !p.leaveOut():
		p.out.Behind = true
		return
	default:
		back := p.takeBack(notDue)
		if !p.Table.FromEnd() || !e.Table.FromEnd() || e.Anew {
			p.s.Decided = p.lastDecided()
		}
		p.putBack(back, &e)
	}
	if p.s.Untracked && !e.Spec.Untracked {
		p.s.Open = nil // nobody will say that they ended
	}
	p.out.keepSpec(p.s.Spec)
	p.s.Spec, p.Table, p.Excluded = e.Spec, e.Table, e.Excluded
	p.s.Edits++
	if e.Anew {
		p.s.Anchor = p.Now
	}
	if p.s.Phase == Finished {
		p.s.Phase, p.out.Gone = Active, false // it may have been let go by what was decided before
	}
}

// runsAs reports whether both specs make the same runs of the same occurrences: they differ in what is for
// people only.
func (s *Spec) runsAs(other *Spec) bool {
	same := *other
	same.Labels, same.History, same.PauseAt = s.Labels, s.History, s.PauseAt
	return s.Same(&same)
}

// sameTimes reports whether both specs name the same occurrences.
func (s *Spec) sameTimes(other *Spec) bool {
	a, b := Spec{Timetable: s.Timetable}, Spec{Timetable: other.Timetable}
	return a.Same(&b)
}

// decideByNow decides what was named so far, and nothing ahead. It reports false when there is more.
func (p editing) decideByNow() bool {
	lead := p.Lead
	defer func() { p.Lead = lead }()
	p.Lead = 0
	for range 10 {
		if p.s.Phase != Active || !p.decideAll() {
			p.passOver()
			return true
		}
		if p.madeEnough() {
			break
		}
	}
	return false
}

// passOver has a schedule that may make no more runs name nothing up to now, also when it may make more again.
func (p editing) passOver() {
	if p.s.Phase != Finished && !p.s.usedUp() {
		return
	}
	if at, ok := p.next(p.s.Decided); ok && at <= p.Now { // else a delay that counts from an end goes on
		p.s.Decided = p.Now
	}
}

// leaveOut skips what was named so far and cannot be decided now: a timetable that is replaced names it no
// more, and one that takes its place begins now. It reports false when there is more.
func (p editing) leaveOut() bool {
	for range perStep {
		at, ok := p.next(p.s.Decided)
		if !ok || at > p.Now || p.waitsForEnd() {
			return true
		}
		p.s.Decided = at
		if !slices.Contains(p.s.Early, at) {
			p.skip(Occurrence{At: at, Origin: ByTimetable}, p.whyLeftOut(at))
		}
	}
	return false
}

func (p editing) whyLeftOut(at store.Millis) Reason {
	switch {
	case p.s.Phase == Paused && at > p.s.Paused.From:
		return WasPaused
	case p.Refused:
		return Refused
	case p.s.Overlap == Allow && len(p.s.Open) >= MaxOpen:
		return BufferFull
	}
	return Missed
}

// lastDecided is the last occurrence to come that stays decided, or the present: the new
// timetable may name something between now and what was taken back. There are some when the
// clock was set back; what a worker has of those to come is in Early besides.
func (p editing) lastDecided() store.Millis {
	last := p.Now
	if p.s.Decided <= p.Now || p.Table.FromEnd() {
		return last
	}
	at, ok := p.next(p.Now)
	for n := 0; ok && at <= p.s.Decided; n++ {
		if n == perStep {
			return p.s.Decided
		}
		if !slices.Contains(p.s.Early, at) {
			last = at
		}
		at, ok = p.next(at)
	}
	return last
}

// putBack has occurrences that were named so far, and whose runs were taken back before they were due, wait
// for their runs to be made by the new spec. One that this does not name is not made.
func (p editing) putBack(back []Occurrence, e *Edit) {
	for _, o := range back {
		at, ok := e.Table.Next((o.At - 1).Time())
		switch {
		case !ok || at.UnixMilli() != int64(o.At):
		case e.Excluded != nil && e.Excluded(at):
			p.skip(o, Excluded)
		default:
			p.waitBefore(o)
		}
	}
}

// waitBefore has an occurrence wait for its run, before those of later times.
func (p *step) waitBefore(o Occurrence) {
	if len(p.s.Waiting) >= MaxWaiting {
		p.skip(o, BufferFull)
		return
	}
	i := slices.IndexFunc(p.s.Waiting, func(w Occurrence) bool { return w.At > o.At })
	if i < 0 {
		i = len(p.s.Waiting)
	}
	p.s.Waiting = slices.Insert(p.s.Waiting, i, o)
}

package schedule

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// retryRefused is the pause before a topic that took no task is asked again.
const retryRefused = time.Second

// decide decides occurrences in order as far as now and the lead let it, and says when
// to go on.
func (p *step) decide() {
	p.out.Wake = 0
	p.letIn()
	backfills{p}.run()
	switch p.s.Phase {
	case Active:
		p.decideAll()
	case Finished:
		if len(p.s.Backfills) == 0 {
			p.rest()
		}
	}
	p.watch()
}

// watchEvery is how long a run is open before its task is looked at, and again after that.
const watchEvery = time.Hour

// watch has runs looked at that have been open for long: an end that was not told would
// stop the schedule for ever.
func (p *step) watch() {
	p.out.Doubt = nil
	var long []string
	next, watched := store.Millis(0), p.s.Watched
	if watched > p.Now { // by a clock that was set back since
		watched = 0
	}
	for _, r := range p.s.Open {
		if r.Walk || r.Flow { // one lasts for as long as its window, the other tells its end in the commit of it
			continue
		}
		if at := max(r.Due, watched).Add(watchEvery); next == 0 || at < next {
			next = at
		}
		if r.Due.Add(watchEvery) <= p.Now {
			long = append(long, p.s.ID(r.Occurrence))
		}
	}
	switch {
	case next == 0 || p.s.Untracked:
	case next > p.Now:
		p.wake(next)
	default:
		p.out.Doubt = long
		p.wake(p.Now)
	}
}

// decideAll reports whether there is more, for the next commit.
func (p *step) decideAll() bool {
	for range perStep {
		at, ok := p.next(p.s.Decided)
		if !ok || p.s.usedUp() {
			p.end()
			return false
		}
		if p.holdsBack() {
			return false
		}
		if lead := p.lead(); p.waits(at, lead) > p.Now {
			p.wake(p.waits(at, min(lead, Lead)))
			return false
		}
		if p.madeEnough() || p.isRemoved(Occurrence{At: at, Origin: ByTimetable}) {
			break
		}
		if !p.decideOne(at) {
			p.wake(p.Now.Add(retryRefused))
			return false
		}
	}
	p.wake(p.Now)
	return true
}

// usedUp reports whether the timetable has made, or will have when those are made that wait, all the runs
// that it may.
func (s *Schedule) usedUp() bool { return s.MaxRuns > 0 && s.runsLeft() <= 0 }

func (s *Schedule) runsLeft() int64 {
	left := s.MaxRuns - s.Made
	for _, o := range s.Waiting {
		if o.Origin == ByTimetable {
			left--
		}
	}
	return left
}

// wake has the schedule go on at a moment, or before.
func (p *step) wake(at store.Millis) {
	if p.out.Wake == 0 || at < p.out.Wake {
		p.out.Wake = at
	}
}

// isRemoved reports whether the run of an occurrence is taken back in this step: the same
// commit cannot make it anew.
func (p *step) isRemoved(o Occurrence) bool {
	return len(p.out.Remove) > 0 && slices.ContainsFunc(p.out.Remove, func(r store.Remove) bool { return r.ID == p.s.ID(o) })
}

// waits is when an occurrence can be decided, with a lead. What is decided ahead is made: that it is
// not is decided at its time, by what is known then.
func (p *step) waits(at store.Millis, lead time.Duration) store.Millis {
	switch {
	case p.s.Audience != nil || p.s.Workflow != nil: // which cannot be taken back in one commit
		return max(at, p.due(Occurrence{At: at, Origin: ByTimetable}))
	case p.s.Overlap != Allow && len(p.s.Open) > 0:
		return at // the end of the run wakes the schedule before, if it comes
	case p.excludes(at) && !slices.Contains(p.s.Early, at):
		return at
	}
	return at.Add(-lead)
}

// excludes reports whether calendars leave an occurrence out.
func (p *step) excludes(at store.Millis) bool { return p.Excluded != nil && p.Excluded(at.Time()) }

// holdsBack reports whether the end of a run has to come first, whatever the time: the
// next occurrence counts from it, or too many are open.
func (p *step) holdsBack() bool {
	return p.waitsForEnd() || p.s.Overlap == Allow && len(p.s.Open) >= MaxOpen && !p.s.Untracked
}

// waitsForEnd reports whether the next occurrence is named when a run ends.
func (p *step) waitsForEnd() bool {
	return p.Table.FromEnd() && slices.ContainsFunc(p.s.Open, func(r Run) bool { return r.Origin == ByTimetable })
}

// isBusy reports whether a run is open that what overlaps has to wait for. Of one that is not tracked nobody
// tells when it ends.
func (p *step) isBusy() bool { return len(p.s.Open) > 0 && !p.s.Untracked }

// end marks a schedule without occurrences as finished, once its runs are over.
func (p *step) end() {
	if len(p.s.Open) > 0 || len(p.s.Waiting) > 0 || len(p.s.Backfills) > 0 {
		if p.s.Untracked { // of which nobody tells: they are over at their times
			for _, r := range p.s.Open {
				p.wake(max(r.At, r.Due))
			}
		}
		return
	}
	p.s.Phase, p.s.Decided = Finished, max(p.s.Decided, p.Now)
	p.rest()
}

// rest keeps a finished schedule for a while, and then lets it go.
func (p *step) rest() {
	if p.out.Wake = p.s.Decided.Add(keepFinished); p.out.Wake <= p.Now {
		p.out.Gone, p.out.Wake = true, 0
	}
}

// decideOne decides the occurrence behind those that are decided, unless it is to be tried
// again.
func (p *step) decideOne(at store.Millis) bool {
	before := p.s.Decided
	p.s.Decided = at
	if slices.Contains(p.s.Early, at) {
		return true
	}
	o := Occurrence{At: at, Origin: ByTimetable}
	switch {
	case p.s.Paused.has(at):
		p.skip(o, WasPaused)
	case p.excludes(at):
		p.skip(o, Excluded)
	case p.isLate(at) && !(missed{p}).catchesUp(at):
		p.skip(o, Missed)
	case p.Refused && (len(p.s.Open) == 0 || p.s.Overlap == Allow):
		if !p.isLate(at) {
			p.s.Decided = before
			return false
		}
		p.skip(o, Refused)
	default:
		p.take(o, p.s.Overlap)
	}
	return true
}

// isLate reports whether nobody decided an occurrence in time: its run would have been due before the grace.
func (p *step) isLate(at store.Millis) bool {
	return p.Now.Sub(p.due(Occurrence{At: at, Origin: ByTimetable})) > p.s.Grace
}

// missed is what a step does about occurrences that nobody decided in time.
type missed struct{ *step }

// catchesUp reports whether a run is made of an occurrence that was missed.
func (p missed) catchesUp(at store.Millis) bool {
	if p.s.Within > 0 && p.Now.Sub(at) > p.s.Within {
		return false
	}
	switch p.s.CatchUp {
	case Last:
		_, later := p.missedBehind(at)
		return !later
	case All:
		return !p.tooMany(at)
	}
	return false
}

// missedBehind is the next occurrence behind one that was missed, too, and for no other reason has no run.
func (p missed) missedBehind(at store.Millis) (store.Millis, bool) {
	for range maxLookedAt {
		next, ok := p.next(at)
		if !ok || !p.isLate(next) {
			return 0, false
		}
		if !p.excludes(next) && !p.s.Paused.has(next) && !slices.Contains(p.s.Early, next) {
			return next, true
		}
		at = next
	}
	return 0, false
}

// maxLookedAt bounds how many occurrences are passed over that are left out, in search of one that is not.
const maxLookedAt = 1_000_000

// tooMany reports whether so many occurrences behind one were missed that it is none of
// the last.
func (p missed) tooMany(at store.Millis) bool {
	if p.ahead == 0 || p.ahead < at {
		p.ahead, p.between = at, 0
	}
	for ; p.between < MaxCaught; p.between++ {
		next, ok := p.missedBehind(p.ahead)
		if !ok {
			return false
		}
		p.ahead = next
	}
	p.between--
	return true
}

// take makes a run of an occurrence, or lets it wait, or skips it.
func (p *step) take(o Occurrence, overlap Overlap) {
	if !p.isBusy() || overlap == Allow {
		p.make(o)
		return
	}
	p.out.Overlaps = true
	switch overlap {
	case Skip:
		p.skip(o, Overlapped)
	case BufferAll:
		if len(p.s.Waiting) >= MaxWaiting {
			p.skip(o, BufferFull)
			return
		}
		p.s.Waiting = append(p.s.Waiting, o)
	case CancelOther:
		p.cancelOpen()
		for i := range p.s.Open {
			p.s.Open[i].Replaced = true
		}
		p.waitAlone(o)
		p.letIn()
	case BufferOne:
		p.waitAlone(o)
	}
}

// cancelOpen asks all runs that are open to end. Those that this very step makes are not made:
// what a commit adds it cannot cancel.
func (p *step) cancelOpen() {
	kept := p.s.Open[:0]
	for _, r := range p.s.Open {
		id := p.s.ID(r.Occurrence)
		switch {
		case p.out.drop(id):
			p.notMade(r.Occurrence)
			continue
		case r.Walk:
			p.out.CancelWalk = append(p.out.CancelWalk, id)
		case r.Flow:
			p.out.CancelFlow = append(p.out.CancelFlow, p.s.RunID(r))
		default:
			p.out.Cancel = append(p.out.Cancel, id)
		}
		kept = append(kept, r)
	}
	p.s.Open = kept
}

// notMade is what becomes of an occurrence whose run a step has made and dropped.
func (p *step) notMade(o Occurrence) {
	switch o.Origin {
	case ByTimetable:
		p.s.Made--
	case ByBackfill:
		for i := range p.s.Backfills {
			if b := &p.s.Backfills[i]; hashOf(b.ID) == o.N {
				b.Made--
			}
		}
	}
	p.skip(o, Superseded)
}

// lead is how far ahead a run is made. One of an audience, or one that is a workflow, begins at
// its time: what it does could not be taken back in one commit.
func (p *step) lead() time.Duration {
	if p.s.Audience != nil || p.s.Workflow != nil {
		return 0
	}
	return p.Lead
}

func (p *step) waitAlone(o Occurrence) {
	for _, w := range p.s.Waiting {
		p.skip(w, Superseded)
	}
	p.s.Waiting = append(p.s.Waiting[:0], o)
}

// letIn makes runs of those that wait, in order, once none is open or beside those that are.
func (p *step) letIn() {
	for len(p.s.Waiting) > 0 && p.s.Phase == Active && p.letsIn(p.s.Waiting[0]) {
		o := p.s.Waiting[0]
		switch {
		case p.Refused:
			p.wake(p.Now.Add(retryRefused))
			return
		case p.madeEnough(), p.isRemoved(o):
			p.wake(p.Now)
			return
		}
		p.s.Waiting = p.s.Waiting[1:]
		p.make(o)
	}
}

// letsIn reports whether the run of one that waits can be made.
func (p *step) letsIn(o Occurrence) bool {
	return !p.isBusy() || p.s.Overlap == Allow && o.Origin == ByTimetable && len(p.s.Open) < MaxOpen
}

// inTime is how late a run of an audience may be decided and have the places of its recipients where
// they are. One that is later begins when it is decided, and what it spreads does not come at once.
const inTime = time.Second

func (p *step) make(o Occurrence) {
	r := Run{Occurrence: o, Due: p.due(o), Walk: p.s.Audience != nil, Flow: p.s.Workflow != nil}
	if late := p.Now.Sub(r.Due); late > 0 && !(r.Walk && late < inTime) {
		r.Due = p.Now
	}
	r.Begun = r.Flow // it is not taken back
	if slack := p.s.Template.Slack; slack > 0 && p.Place != nil {
		r.Due = p.Place(r.Due, max(r.Due, p.due(o).Add(slack)))
	}
	p.out.Make = append(p.out.Make, Make{ID: p.s.ID(o), Run: r})
	if o.Origin == ByTimetable {
		p.s.Made++
	}
	if !p.s.Untracked || r.At > p.Now || r.Due > p.Now && len(p.s.Open) < MaxOpen { // what is not due yet may be taken back
		p.s.Open = append(p.s.Open, r)
	}
}

// due is the time of an occurrence, moved by the jitter.
func (p *step) due(o Occurrence) store.Millis {
	if o.Origin != ByTimetable {
		return o.At // which the present has passed
	}
	return store.Millis(timetable.Jitter(p.s.Life, o.At.Time(), p.s.Jitter).UnixMilli())
}

func (p *step) skip(o Occurrence, why Reason) {
	p.remember(Past{Occurrence: o, Reason: why})
}

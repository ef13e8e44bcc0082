package schedule

import (
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// keepFinished is how long a schedule stays that will do nothing any more.
const keepFinished = 7 * 24 * time.Hour

// Step returns what becomes of a schedule at an event, and what it takes. It changes
// nothing of s.
func Step(s *Schedule, e Event, env Env) (*Schedule, Effects) { return StepAll(s, []Event{e}, env) }

// StepAll is Step with several events, in order: all of them are one commit.
func StepAll(s *Schedule, events []Event, env Env) (*Schedule, Effects) {
	p := &step{Env: env, s: s.clone()}
	p.s.passUntracked(env.Now)
	p.s.Early = slices.DeleteFunc(p.s.Early, func(at store.Millis) bool { return at <= min(env.Now, s.Decided) })
	for _, e := range events {
		if again, ok := e.(Requeued); ok {
			p.Requeued = append(slices.Clip(p.Requeued), again.ID)
		}
	}
	for i, e := range events {
		p.happened(e)
		if p.out.Gone || i > 0 && p.out.refuses() { // a refusal changes nothing of what was decided before it
			break
		}
		if more := i+1 < len(events) && ofRun(e) && ofRun(events[i+1]); !more {
			p.decide()
		}
	}
	return p.s, p.out
}

// ofRun reports whether an event is what became of a run. All of those that are known come before
// anything is decided: no run is open that has ended.
func ofRun(e Event) bool {
	switch e.(type) {
	case Ended, Requeued, Begun:
		return true
	}
	return false
}

func (p *step) happened(e Event) {
	switch e := e.(type) {
	case Ended:
		p.ended(e)
	case Requeued:
		p.s.requeued(e.ID)
	case Begun:
		p.begun(e.ID)
	case Watched:
		p.s.Watched = p.Now
	case Edit:
		editing{p}.edit(e)
	case Pause:
		if p.s.Phase == Active && !(editing{p}).decideByNow() { // what was named before it, by what names it now
			p.out.Behind = true
			return
		}
		p.pause(e.By, e.Note)
	case Resume:
		p.resume(e)
	case Trigger:
		p.trigger(e)
	case StartBackfill:
		backfills{p}.start(e)
	case CancelBackfill:
		backfills{p}.cancel(e.ID)
	case Delete:
		p.delete(e)
	}
}

// step is one Step on its way.
type step struct {
	Env
	s   *Schedule
	out Effects

	// Of tooMany: how many missed occurrences lie behind the one that is decided, up to
	// this one.
	between int
	ahead   store.Millis
}

func (s *Schedule) clone() *Schedule {
	c := *s
	c.Open, c.Waiting, c.History, c.Requests = slices.Clone(s.Open), slices.Clone(s.Waiting), slices.Clone(s.History), slices.Clone(s.Requests)
	c.Early, c.Recalled, c.Backfills, c.Dead = slices.Clone(s.Early), slices.Clone(s.Recalled), slices.Clone(s.Backfills), slices.Clone(s.Dead)
	c.Totals, c.Skipped = maps.Clone(s.Totals), maps.Clone(s.Skipped)
	if c.Totals == nil {
		c.Totals = make(map[Outcome]int64)
	}
	if c.Skipped == nil {
		c.Skipped = make(map[Reason]int64)
	}
	return &c
}

// ended closes a run.
func (p *step) ended(e Ended) {
	if e.Outcome == Removed && p.s.recalled(e.ID) {
		return
	}
	i := slices.IndexFunc(p.s.Open, func(r Run) bool { return p.s.ID(r.Occurrence) == e.ID })
	if i < 0 {
		return
	}
	r := p.s.Open[i]
	p.early(r)
	p.s.Open = slices.Delete(p.s.Open, i, i+1)
	p.s.Totals[e.Outcome]++
	past := Past{Occurrence: r.Occurrence, Due: r.Due, Flow: r.Flow, Outcome: e.Outcome, Started: e.Started, Ended: e.At}
	p.remember(past)
	switch {
	case e.Outcome == Removed && e.Dead && r.Replaced && !slices.Contains(p.Requeued, e.ID):
		p.out.Discard = append(p.out.Discard, e.ID)
	case e.Outcome == Failed, e.Outcome == Removed && (e.Dead || r.Flow):
		p.s.mourn(past)
	}
	if p.Table.FromEnd() && r.Origin == ByTimetable {
		p.s.Decided = max(p.s.Decided, e.At)
	}
	switch e.Outcome {
	case Done:
		p.s.Failures = 0
	case Failed:
		p.s.Failures++
		if p.s.PauseAt > 0 && p.s.Failures >= p.s.PauseAt && p.s.Phase == Active {
			p.pause("failures", "")
			p.out.Paused = true
		}
	}
}

func (p *step) begun(id string) {
	for i := range p.s.Open {
		if p.s.ID(p.s.Open[i].Occurrence) == id {
			p.s.Open[i].Begun = true
			p.early(p.s.Open[i])
		}
	}
}

// early remembers that an occurrence to come has been: one before it may yet be taken
// back, and what follows on that be decided anew.
func (p *step) early(r Run) {
	if r.Origin == ByTimetable && r.At > p.Now && !slices.Contains(p.s.Early, r.At) {
		p.s.Early = append(p.s.Early, r.At)
	}
}

func (p *step) pause(by, note string) {
	if p.over() || p.s.Phase != Active {
		return
	}
	for _, o := range p.takeBack(notDue) {
		p.waitBefore(o)
	}
	if at, ok := p.next(p.s.Decided); !ok || !p.s.Paused.has(at) { // else the pause before left some that are to be skipped still
		p.s.Paused = Span{From: p.Now}
	}
	p.s.Phase, p.s.PausedBy, p.s.Note = Paused, by, note
}

// resume skips what was named during the pause, and what was taken back at its beginning and would have
// been due by now.
func (p *step) resume(e Resume) {
	if p.over() || p.s.Phase != Paused {
		return
	}
	p.s.Phase, p.s.PausedBy, p.s.Note, p.s.Failures = Active, "", e.Note, 0
	p.s.Paused.Until = p.Now
	p.s.Waiting = slices.DeleteFunc(p.s.Waiting, func(o Occurrence) bool {
		late := o.Origin == ByTimetable && p.s.Paused.has(p.due(o).Add(p.s.Template.Slack))
		if late {
			p.skip(o, WasPaused)
		}
		return late
	})
}

// over reports whether nothing can be asked of the schedule any more, and notes that something was.
func (p *step) over() bool {
	p.out.Over = p.s.Phase == Finished
	return p.out.Over
}

// trigger makes a run now, unless the request is known.
func (p *step) trigger(e Trigger) {
	if e.Request != "" && slices.Contains(p.s.Requests, e.Request) {
		return
	}
	if p.over() {
		return
	}
	switch stays := p.s.stays(p.Now); {
	case e.Overlap == Skip && stays >= 0:
		p.out.RunOpen = p.s.RunID(p.s.Open[stays])
		return
	case e.Overlap != Skip && !(editing{p}).decideByNow(): // what was named before it comes before it
		p.out.Behind = true
		return
	case p.s.isFull(e.Overlap, p.Now):
		p.out.Full = true
		return
	}
	if p.s.Phase == Finished { // by what was named before: the run is to end first
		p.s.Phase = Active
	}
	if e.Overlap != Allow {
		p.takeBack(ahead)
	}
	o := Occurrence{At: p.Now, Origin: ByTrigger, N: hashOf(e.Request)}
	if e.Request != "" {
		p.s.Requests = lastOf(append(p.s.Requests, e.Request), requests)
	}
	p.take(o, e.Overlap)
}

// NumberOf tells the occurrences of triggers and backfills apart, see Occurrence.N.
func NumberOf(request string) uint64 { return hashOf(request) }

func hashOf(request string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(request)) // never fails
	return h.Sum64()
}

// delete ends the schedule: what was made ahead is taken back.
func (p *step) delete(e Delete) {
	p.takeBack(notDue)
	if e.CancelOpen {
		p.cancelOpen()
	}
	p.out.Gone, p.out.Wake = true, 0
}

// reach says which runs are taken back.
type reach uint8

const (
	ahead  reach = iota // of occurrences to come
	notDue              // those, and others that jitter or slack has put off until later than now
)

// takeBack takes back runs of the timetable that nobody can have. Occurrences to come are decided
// anew; it returns the others, which have been named. A run that a worker has had stays: the store says so, and the step is
// taken again with Begun.
func (p *step) takeBack(far reach) (named []Occurrence) {
	kept := p.s.Open[:0]
	for _, r := range p.s.Open {
		if !r.canBeTakenBack(p.Now, far) {
			kept = append(kept, r)
			continue
		}
		p.unmake(r)
		p.s.Made--
		if r.At > p.Now || p.Table.FromEnd() {
			p.s.Decided = min(p.s.Decided, p.before(r.At))
		} else {
			named = append(named, r.Occurrence)
		}
	}
	p.s.Open = kept
	return named
}

// canBeTakenBack reports whether a run of the timetable has not come to its time.
func (r *Run) canBeTakenBack(now store.Millis, far reach) bool {
	pending := r.At > now || far == notDue && r.Due > now
	return pending && !r.Begun && !r.Walk && r.Origin == ByTimetable
}

// unmake takes the task of a run back, or does not make it after all.
func (p *step) unmake(r Run) {
	id := p.s.ID(r.Occurrence)
	if p.out.drop(id) {
		return
	}
	p.out.Remove = append(p.out.Remove, store.Remove{ID: id, Due: r.Due})
	if !p.s.Untracked {
		p.s.Recalled = append(p.s.Recalled, r.At)
	}
}

// before is a moment such that at is the first occurrence behind it.
func (p *step) before(at store.Millis) store.Millis {
	if p.Table.FromEnd() {
		return at.Add(-p.s.Timetable.Entries[0].Every)
	}
	return at - 1
}

// remember appends to the history; skips of one reason in a row are one entry.
func (p *step) remember(h Past) {
	if h.Reason != 0 {
		p.s.Skipped[h.Reason]++
		h.Count = 1
		p.out.Skips = gather(p.out.Skips, h)
	}
	p.s.History = lastOf(gather(p.s.History, h), p.s.Spec.History)
}

func gather(list []Past, h Past) []Past {
	if n := len(list); n > 0 && h.Reason != 0 && list[n-1].Reason == h.Reason && list[n-1].Origin == h.Origin {
		list[n-1].Occurrence, list[n-1].Count = h.Occurrence, list[n-1].Count+1
		return list
	}
	return append(list, h)
}

func lastOf[T any](list []T, n int) []T {
	return slices.Delete(list, 0, max(len(list)-n, 0))
}

// next is the first occurrence behind a moment.
func (p *step) next(after store.Millis) (store.Millis, bool) {
	at, ok := p.Table.Next(after.Time())
	return store.Millis(at.UnixMilli()), ok
}

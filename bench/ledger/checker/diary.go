package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// diary is all that is known about one schedule.
type diary struct {
	topic, name string
	events      []*ledger.Event
	puts        []*op
	turns       []*op // pauses and resumes
	triggers    []*op
	runs        []*story // tasks that it made, as far as anybody saw them
	found       *ledger.Event
}

// diary returns the one of a schedule.
func (h *History) diary(topic, name string) *diary {
	key := topic + "/" + name
	d := h.schedules[key]
	if d == nil {
		d = &diary{topic: topic, name: name}
		h.schedules[key] = d
	}
	return d
}

// add takes an event about the schedule itself.
func (d *diary) add(e *ledger.Event, calls map[uint64]*op) {
	d.events = append(d.events, e)
	switch {
	case e.Kind == ledger.Found:
		d.found = e
	case e.Op == ledger.PutSchedule:
		record(&d.puts, e, calls)
	case e.Op == ledger.PauseSchedule || e.Op == ledger.ResumeSchedule:
		record(&d.turns, e, calls)
	case e.Op == ledger.Trigger:
		record(&d.triggers, e, calls)
	}
}

// calls are all about the schedule.
func (d *diary) calls() []*op { return slices.Concat(d.puts, d.turns, d.triggers) }

// changed reports whether anything was done to the schedule that takes runs back.
func (d *diary) changed() bool { return len(d.puts) > 1 || len(d.turns)+len(d.triggers) > 0 }

// changedAfter reports whether anything like that may have been done after a moment.
func (d *diary) changedAfter(mono int64) bool {
	return slices.ContainsFunc(d.calls(), func(o *op) bool { return o.may() && o.to > mono })
}

// sort puts everything in order.
func (d *diary) sort() {
	slices.SortStableFunc(d.events, func(a, b *ledger.Event) int { return cmp.Compare(a.Mono, b.Mono) })
	for _, ops := range [][]*op{d.puts, d.turns, d.triggers} {
		slices.SortStableFunc(ops, func(a, b *op) int { return cmp.Compare(a.Mono, b.Mono) })
	}
	slices.SortFunc(d.runs, func(a, b *story) int {
		return cmp.Or(cmp.Compare(a.occurrence, b.occurrence), cmp.Compare(a.id, b.id))
	})
}

// adopt gives a task to the schedule that made it. That is an enqueue, which nobody wrote
// down: after the schedule was first put, and before the task was first seen. Where runs
// cancel each other the schedule may have ended it, too.
func (h *History) adopt(s *story) {
	d := h.diary(s.topic, s.schedule)
	d.runs = append(d.runs, s)
	first, since := s.events[0], h.from
	for _, e := range s.events {
		if e.Mono < first.Mono {
			first = e
		}
	}
	if len(d.puts) > 0 {
		since = d.puts[0].Mono
	}
	made := &ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Topic: s.topic, Task: s.id, Mono: since, Due: s.occurrence, Sum: first.Sum, Schedule: s.schedule}
	answer := &ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Topic: s.topic, Task: s.id, Mono: first.Mono, Due: s.occurrence, Result: ledger.OK}
	s.enqueues = append(s.enqueues, &op{Event: made, answer: answer, result: ledger.OK, to: first.Mono})
	if slices.ContainsFunc(d.puts, func(o *op) bool { return o.Timetable.Overlap == ledger.CancelOther }) {
		ask := &ledger.Event{Kind: ledger.Call, Op: ledger.Cancel, Topic: s.topic, Task: s.id, Mono: since, Final: true, Schedule: s.schedule}
		s.cancels = append(s.cancels, &op{Event: ask, result: ledger.Unknown, to: never})
	}
}

// runLives is how many lives the task of a run may have had: one, and as many as may be
// when it may have been taken back, or a fault may have undone one of them.
func (s *story) runLives() int {
	undone := s.takenBack ||
		slices.ContainsFunc(s.enqueues, func(o *op) bool { return o.excused }) ||
		slices.ContainsFunc(s.settles, func(o *op) bool { return o.excused }) ||
		slices.ContainsFunc(s.deliveries, func(d *delivery) bool { return d.loose })
	if undone {
		return 2
	}
	return 1
}

// loose reports whether a fault may have undone the run, or what was done with it, or had it made anew.
func (s *story) loose() bool { return s.runLives() > 1 }

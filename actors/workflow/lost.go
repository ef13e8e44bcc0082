package workflow

import (
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// IsStuck reports whether a workflow that is open has no cause to go on: nothing of it is made,
// and no time wakes it. There is no such workflow, but by a fault.
func (s *Stored) IsStuck() bool {
	return s.w.Phase.Open() && !s.w.IsPaused && s.Cell.Wake == 0 && (s.count(UnitMade)+s.count(UnitUndoing) == 0 || s.timedOutBefore())
}

// timedOutBefore reports whether a workflow timed out under a version that let it wait for workers.
func (s *Stored) timedOutBefore() bool {
	return timedOut(s.w) && s.Cell.Wake == 0 && s.count(UnitMade) > 0
}

// HasTasks reports whether a workflow may have tasks that are not over, here or elsewhere.
func (s *Stored) HasTasks() bool {
	return s.w.Phase.Open() && s.count(UnitMade)+s.count(UnitUndoing) > 0
}

func (s *Stored) count(state UnitState) int {
	if int(state) >= len(s.body.Counts) {
		return 0
	}
	return int(s.body.Counts[state])
}

// OpenTasks are the tasks that are not over: the ids of those in the shard of the workflow, and
// those in other topics.
func (w *Workflow) OpenTasks() (here []string, away []TaskRef) {
	for unit := range w.Units {
		u := &w.Units[unit]
		if !u.hasTask() || u.State == UnitMade && w.of().find(unit).Task == nil {
			continue
		}
		if task := (tasks{w}).of(unit); task.Topic == "" {
			here = append(here, task.ID)
		} else {
			away = append(away, task)
		}
	}
	return here, away
}

// OpenChildren are the children in other topics that have not ended.
func (w *Workflow) OpenChildren() (away []ChildRef) {
	for unit := range w.Units {
		if n := w.of().find(unit); w.Units[unit].State == UnitMade && n.Child != nil && n.Child.Topic != "" {
			away = append(away, tasks{w}.child(unit))
		}
	}
	return away
}

// Lost is the end of a task of which nothing is left, and nobody told: its topic was deleted.
func (t TaskRef) Lost(now store.Millis) Event {
	return Ended{Task: t.ID, Outcome: UnitFailed, Why: WhyDeleted, At: now, Error: "topic " + t.Topic + " was deleted"}
}

// Lost is the same for a child.
func (r ChildRef) Lost(now store.Millis) Event {
	return TaskRef{Topic: r.Topic, ID: r.Task}.Lost(now)
}

// LostEnds are those of tasks that are over, as they are found.
func LostEnds(found []store.Snapshot, now store.Millis) (lost []Event) {
	for i := range found {
		t := &found[i]
		e := Ended{Task: t.ID, Outcome: UnitFailed, Why: WhyDead, At: t.Finished, Error: t.LastError}
		switch {
		case t.State.Live():
			continue
		case t.State == store.StateDone:
			e.Outcome, e.Why = UnitDone, WhyNone
		case t.State == store.StateExpired:
			e.Why = WhyExpired
		case t.State == store.StateUnknown:
			e.Why, e.At = WhyDeleted, now
		}
		lost = append(lost, e)
	}
	return lost
}

// TakesSignal refuses a signal for a workflow that has ended, or that keeps as many as it can.
// One that is known is taken: it changes nothing.
func (s *Stored) TakesSignal(e *Signal) *refusal.Error {
	w := s.w
	switch {
	case e.ID != "" && slices.Contains(w.Known, e.ID):
		return nil
	case !w.Phase.Open():
		return finished(w)
	case w.keptOf(e.Name) >= MaxKeptSignals:
		return &refusal.Error{Reason: refusal.TooManySignals, Field: "signal", State: w.State().String(),
			Message: fmt.Sprintf("%d signals %q wait already for workflow %s", MaxKeptSignals, e.Name, w.ID)}
	}
	return nil
}

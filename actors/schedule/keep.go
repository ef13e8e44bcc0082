package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// Look is a look of its owner at the cell of a schedule that woke, or that parcels are for.
type Look struct {
	Cell    store.Cell
	Parcels []store.Parcel // for it, in order
	Topic   *store.Topic

	// Of the runs that were in Doubt, those whose tasks have ended; nil: they were not
	// looked at.
	Lost []Ended

	// Of the dead letters that the step was to discard, those that somebody has requeued: they are not there any
	// more. What tells of that may come later.
	Requeued []string

	// What is told to it and is on its way from shards of before a reshard.
	UnderWay []store.Parcel

	// What commits of this look failed for.
	Begun []string // runs that were to be taken back, and are not as they were made
	Alien []string // ids of runs under which there are tasks or workflows that the schedule did not make
}

// Kept is what becomes of the cell at a look.
type Kept struct {
	Commit   store.Commit // without puts: there is nothing to change
	Schedule *Schedule    // nil: it is gone, or was not readable
	Effects
}

// Keep steps a schedule over what there is at a look. An error wraps ErrCorrupt, and the
// commit takes the cell to those that are left alone.
func Keep(l Look, env Env) (Kept, error) {
	s, err := l.schedule()
	if s == nil && err == nil {
		return Kept{}, nil
	}
	if err == nil {
		env.Table, err = s.Table()
	}
	if err != nil {
		return Kept{Commit: putAside(l.Cell)}, asCorrupt(err)
	}
	env.Refused = env.Refused || l.Topic.MaxPayload > 0 && len(s.Template.Task.Payload) > l.Topic.MaxPayload
	env.Excluded = env.Known.Excluded(s, env.Table.Zone())
	env.Requeued = l.Requeued
	s, out := StepAll(s, l.events(s), env)
	for i := range l.Parcels {
		s.Taken = max(s.Taken, l.Parcels[i].Number)
	}
	own := out
	own.Make = l.own(out.Make)
	c, err := Commit(s, &own, l.Cell.Version, l.Topic, env.Now)
	if err != nil {
		return Kept{Commit: putAside(l.Cell)}, asCorrupt(err)
	}
	if put := &c.Puts[0]; put.Wake == l.Cell.Wake && bytes.Equal(put.Body, l.Cell.Body) {
		c = store.Commit{}
	}
	return Kept{Commit: c, Schedule: s, Effects: out}, nil
}

// schedule is the one that is there, or that arrives; nil: neither.
func (l *Look) schedule() (s *Schedule, err error) {
	if l.Cell.Version != 0 {
		return FromCell(l.Cell)
	}
	s, l.Parcels = arrived(l.Cell.ID.Key(), l.Parcels)
	return s, nil
}

// events are what happened since the schedule was looked at last. That it woke is one of
// them; a run whose id is another task's has ended as soon as it was made.
func (l *Look) events(s *Schedule) (events []Event) {
	for _, id := range l.Begun {
		events = append(events, Begun{ID: id})
	}
	for i := range l.Parcels {
		if p := &l.Parcels[i]; p.Number > s.Taken {
			if e := Told(p); e != nil {
				events = append(events, e)
			}
		}
	}
	events = append(events, s.EndsOf(l.UnderWay)...)
	for _, e := range l.Lost {
		events = append(events, e)
	}
	if l.Lost != nil {
		events = append(events, Watched{})
	}
	events = append(events, nil)
	for _, id := range l.Alien {
		events = append(events, Ended{ID: id, Outcome: Removed})
	}
	return events
}

// own leaves out runs whose ids are others'.
func (l *Look) own(runs []Make) []Make {
	if len(l.Alien) == 0 {
		return runs
	}
	return slices.DeleteFunc(slices.Clone(runs), func(m Make) bool { return slices.Contains(l.Alien, m.ID) })
}

// FlowIn finds the run of a workflow by its cell; an empty id for none.
func (k *Kept) FlowIn(id store.CellID) (run string) {
	for i := range k.Make {
		if m := &k.Make[i]; m.Flow && workflow.CellID(k.Schedule.RunID(m.Run)) == id {
			return m.ID
		}
	}
	return ""
}

// putAside has a cell that cannot be read wake nobody. What it says stays, for who can.
func putAside(c store.Cell) store.Commit {
	version := c.Version
	c.Wake, c.List, c.Listed = 0, CorruptList, 0
	return store.Commit{Puts: []store.Put{{Cell: c, If: version}}}
}

func asCorrupt(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// LostEnds says which runs have ended, as their tasks are found.
func LostEnds(found []store.Snapshot, now store.Millis) []Ended {
	lost := []Ended{}
	for i := range found {
		t := &found[i]
		e := Ended{ID: t.ID, Outcome: Removed, At: now}
		switch {
		case t.State.Live():
			continue
		case t.State == store.StateDone:
			e.Outcome, e.At = Done, t.Finished
		case t.State != store.StateUnknown && t.Reason == store.ReasonCancelled:
			e.Dead = true
		case t.State != store.StateUnknown && t.Reason != store.ReasonCancelled:
			e.Outcome, e.At = Failed, t.Finished
		}
		lost = append(lost, e)
	}
	return lost
}

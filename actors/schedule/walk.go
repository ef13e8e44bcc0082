package schedule

import (
	walk "github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// A run of an audience is a cell beside that of its schedule: the walk, which makes the
// tasks. Its first state is the order for it, and a part has the template. It is asked
// to end by a parcel, and tells the schedule by one that it is over. The two share the
// messages and nothing else.

func walkID(run string) store.CellID { return store.CellID(store.CellWalk) + store.CellID(run) }

// putWalk adds a walk to a commit.
func (s *Schedule) putWalk(c *store.Commit, m *Make) error {
	a := s.Audience
	body, err := (&walk.Walk{Order: &walk.Order{
		Run: m.ID, Schedule: s.Name, At: int64(m.Due), Occurrence: int64(m.At),
		Audience: a.Name, Kind: a.Kind, Quiet: int32(a.Quiet),
		WindowMs: a.Window.Milliseconds(), GrainMs: a.Grain.Milliseconds(), SpreadFrom: a.SpreadFrom,
		Rotate: a.Rotate, Local: s.local(m), Tracked: !a.Untracked,
	}}).MarshalVT()
	if err != nil {
		return err
	}
	template, err := s.Template.record()
	if err != nil {
		return err
	}
	part, err := template.MarshalVT()
	if err != nil {
		return err
	}
	c.Puts = append(c.Puts,
		store.Put{Cell: store.Cell{ID: walkID(m.ID), Wake: m.Due, Body: body}},
		store.Put{Cell: store.Cell{ID: store.CellID(walkPart + m.ID), Body: part}, If: store.AnyVersion})
	return nil
}

// local reports whether a run is at the time of each recipient. One by hand is at once.
func (s *Schedule) local(m *Make) bool {
	return s.Timetable.Zone == timetable.Recipient && m.Origin != ByTrigger
}

const walkPart = "F" // the kind of the part of a walk

// CancelWalk is what a walk is told that is to end.
func CancelWalk() []byte {
	b, _ := (&walk.ToWalk{Cancel: true}).MarshalVT() // never fails
	return b
}

// IsCancelWalk reports whether a parcel is such.
func IsCancelWalk(p *store.Parcel) bool {
	var m walk.ToWalk
	return p.Ended == nil && m.UnmarshalVT(p.Body) == nil && m.Cancel
}

// TellEnd is what a walk tells its schedule when it is over: what the end of a task would.
func TellEnd(schedule, run string, kind store.ChangeKind, started, now store.Millis) store.Parcel {
	body, _ := (&cell.Sent{Ended: &cell.Ended{
		Id: run, Kind: int32(kind), At: int64(now), Started: int64(started),
	}}).MarshalVT() // never fails
	return store.Parcel{To: CellID(schedule), Body: body}
}

func encodeTarget(t *Target) *cell.Target {
	if t == nil {
		return nil
	}
	return &cell.Target{
		Name: t.Name, Kind: t.Kind, WindowMs: t.Window.Milliseconds(), GrainMs: t.Grain.Milliseconds(),
		SpreadFrom: t.SpreadFrom, Quiet: int32(t.Quiet), Rotate: t.Rotate, Untracked: t.Untracked,
	}
}

func (d *decoder) target(c *cell.Target) *Target {
	if c == nil {
		return nil
	}
	d.check(min(c.WindowMs, c.GrainMs, c.SpreadFrom, int64(c.Quiet)) >= 0 && c.Quiet < 256, "audience %q", c.Name)
	return &Target{
		Name: c.Name, Kind: c.Kind, Window: millis(c.WindowMs), Grain: millis(c.GrainMs),
		SpreadFrom: c.SpreadFrom, Quiet: uint8(c.Quiet), Rotate: c.Rotate, Untracked: c.Untracked,
	}
}

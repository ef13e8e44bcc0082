package workflow

import (
	"bytes"
	"slices"

	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// Told is what a parcel means to the workflow that it is for; nil for one of which it knows
// nothing.
func Told(p *store.Parcel) Event {
	e := p.Ended
	switch {
	case e == nil:
		return toldByBody(p)
	case e.Kind == store.ChangeRequeued:
		return nil // it ended, and that was taken
	}
	said := growthOf(e.Say)
	ended := Ended{Task: e.ID, Outcome: UnitFailed, At: p.At, Begun: e.Started, Error: e.Error, Result: e.Result, Trace: traceOf(said)}
	switch {
	case e.Kind == store.ChangeDone:
		ended.Outcome, ended.Growth = UnitDone, said
	case e.Kind == store.ChangeDeleted:
		ended.Why = WhyDeleted
	case e.Reason == store.ReasonExpired:
		ended.Why = WhyExpired
	default:
		ended.Why = WhyDead
	}
	return ended
}

// growthOf reads what an ack said, or another end; nil for nothing, and for what its ack would not have
// let through.
func growthOf(say []byte) *graph.Growth {
	if len(say) == 0 {
		return nil
	}
	g, err := graph.DecodeGrowth(say)
	if err != nil {
		return nil
	}
	return g
}

func toldByBody(p *store.Parcel) Event {
	var c cell.Sent
	if c.UnmarshalVT(p.Body) != nil {
		return nil
	}
	switch {
	case c.Signal != nil:
		return Signal{Name: c.Signal.Name, Payload: c.Signal.Payload, ID: c.Signal.Id, At: store.Millis(c.Signal.At)}
	case c.Ended != nil:
		return toldOfEnd(c.Ended)
	}
	if c.Order > 0 && c.Order <= int32(AskedToResume) {
		return Ordered{What: Asked(c.Order), Number: c.Number}
	}
	return nil
}

// toldOfEnd reads the end of a child, or of a task in another topic.
func toldOfEnd(c *cell.Ended) Event {
	said := growthOf(c.Growth)
	e := Ended{
		Task: c.Task, Outcome: UnitFailed, Why: Why(c.Why), At: store.Millis(c.At), Begun: store.Millis(c.Begun), Error: string(c.Error), Result: c.Result, Trace: traceOf(said),
	}
	if c.Outcome == int32(UnitDone) {
		e.Outcome, e.Growth = UnitDone, said
	}
	if e.Why > lastWhy {
		e.Why = WhyDead
	}
	return e
}

// Parcel is a signal as it is left for a workflow.
func (s *Signal) Parcel(id string) (store.Parcel, error) {
	body, err := (&cell.Sent{Signal: &cell.Signal{Name: s.Name, Payload: s.Payload, Id: s.ID, At: int64(s.At)}}).MarshalVT()
	return store.Parcel{To: CellID(id), Body: body}, err
}

// Nudge has a commit of a user leave a parcel for the workflow, which says nothing, when there
// is something to do soon: that the in-box has got further is seen by the owner of the shard
// within a second or so, also when nobody told it of the commit.
func Nudge(c *store.Commit, now store.Millis) {
	if put := &c.Puts[0]; put.Wake != 0 && put.Wake < now.Add(soon) {
		c.Send = append(c.Send, store.Parcel{To: put.ID, Body: []byte{}})
	}
}

// Take steps a workflow over what it is told, what has happened besides, and the time that it
// is. Parcels that it has taken before change nothing.
func Take(w *Workflow, parcels []store.Parcel, events []Event, env Env) (*Workflow, Effects) {
	events, taken := slices.Clone(events), w.Taken
	for i := range parcels {
		p := &parcels[i]
		if p.Number <= taken {
			continue
		}
		taken = p.Number
		if e := Told(p); e != nil {
			events = append(events, e)
		}
	}
	after, out, _ := Apply(w, events, env) // none of them is refused
	after.Taken = taken
	return after, out
}

// Changes reports whether a commit makes anything of a header that is not so.
func Changes(c *store.Commit, header store.Cell) bool {
	put := &c.Puts[0]
	return put.Wake != header.Wake || !bytes.Equal(put.Body, header.Body) || len(c.Puts) > 1
}

package workflow

import (
	"strings"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/store"
)

// The task of a step in another topic tells its end to an address there, which is no cell. The
// owner of that shard sends the end on to the topic of the workflow.

// homeID is the address of a workflow of a topic in all others.
func homeID(topic, id string) store.CellID {
	return store.CellID([]byte{store.CellHome}) + store.CellID(store.FlatName(topic)+"/"+id)
}

// homeOf reads it.
func homeOf(address store.CellID) (topic, id string) {
	topic, id, _ = strings.Cut(address.Key(), "/")
	return store.UnflatName(topic), id
}

// GoesHome reports whether a parcel is of the end of a task whose workflow is in another topic.
func GoesHome(p *store.Parcel) bool { return p.To.Kind() == store.CellHome }

// Home is the end that a parcel tells, for the out-box: on its way to the workflow. ok is false
// when there is nothing to tell.
func Home(p *store.Parcel) (end store.Parcel, ok bool, err error) {
	e, of := Told(p).(Ended)
	if !of {
		return end, false, nil
	}
	topic, id := homeOf(p.To)
	end, err = e.parcel(topic, id, p.Ended.Say)
	return end, true, err
}

// parcel is an end as it goes to a workflow, in a topic if it is another one; say is what the ack said.
func (e *Ended) parcel(topic, id string, say []byte) (store.Parcel, error) {
	body, err := (&cell.Sent{Ended: &cell.Ended{
		Task: e.Task, Outcome: int32(e.Outcome), Why: int32(e.Why), At: int64(e.At), Begun: int64(e.Begun),
		Error: []byte(e.Error), Result: e.Result, Growth: say,
	}}).MarshalVT()
	p := store.Parcel{Topic: topic, To: CellID(id), Body: body}
	if topic != "" {
		p.Class = store.ClassCompletion
	}
	return p, err
}

// Refused is what becomes of a task or a child of the out-box that its topic refuses for good, if it is
// a step's: the step fails.
func Refused(p *store.Parcel, why string, now store.Millis) (c store.Commit, isStep bool) {
	return instead(p, Ended{Outcome: UnitFailed, Why: WhyRefused, At: now, Error: why})
}

// TakenBack is what becomes of a task or a child that still lies in the out-box, and that is asked to
// end by another parcel there: it never was.
func TakenBack(p, ask *store.Parcel, now store.Millis) (c store.Commit, isStep bool) {
	c, isStep = instead(p, Ended{Outcome: UnitFailed, Why: WhyDeleted, At: now})
	c.Drop = append(c.Drop, ask.Number)
	return c, isStep
}

// Vain is what a workflow is told that asks something of a task or a child whose topic is not there any
// more.
func Vain(ask *store.Parcel, now store.Millis) store.Commit {
	c, _ := instead(ask, Ended{Outcome: UnitFailed, Why: WhyDeleted, At: now})
	return c
}

// instead forgets a parcel of the out-box, and tells the workflow that it is of, which is in the same
// shard, an end.
func instead(p *store.Parcel, e Ended) (c store.Commit, isStep bool) {
	id, task := senderOf(p)
	c.Drop = []int64{p.Number}
	if id == "" {
		return c, false
	}
	e.Task = task
	end, err := e.parcel("", id, nil)
	c.Send = []store.Parcel{end}
	return c, err == nil
}

// senderOf is the workflow that sent a parcel, and by what it knows the task or the child; none for the
// task of an ack.
func senderOf(p *store.Parcel) (id, task string) {
	switch {
	case message.HasTask(p):
		t, err := message.Task(p, "")
		if err != nil || t.Tells == "" || t.Tells.Kind() != store.CellHome {
			return "", ""
		}
		_, id = homeOf(t.Tells)
		return id, t.ID
	case message.Begins(p), message.Orders(p):
		var c cell.Sent
		if c.UnmarshalVT(p.Body) != nil {
			return "", ""
		}
		return c.GetParent().GetId(), c.GetParent().GetTask()
	}
	return string(p.Body), p.To.Key()
}

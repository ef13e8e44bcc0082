package workflow

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// begin puts a child: its cells, in the commit of its parent. What it begins with is made by
// the owner of the shard, which finds it awake. One in another topic goes there by parcel.
func (w *Workflow) begin(c *store.Commit, b *Begin, x Context) error {
	n := w.of().find(b.Unit)
	child := New(b.ID, w.lifeOf(b), &n.Child.Definition, x.Now)
	child.Parent, child.Depth, child.Run = &Parent{ID: w.ID, Task: b.Task}, w.Depth+1, w.Run.quiet()
	if b.Topic != "" {
		child.Parent.Topic = x.Topic.Name
		p, err := child.parcel(b.Topic)
		c.Send = append(c.Send, p)
		return err
	}
	made, err := Commit(nil, child, &Effects{Wake: x.Now}, Context{Now: x.Now})
	c.Puts = append(c.Puts, made.Puts...)
	return err
}

// lifeOf follows from the parent, so that the commit repeated is the same.
func (w *Workflow) lifeOf(b *Begin) uint64 {
	var life [8]byte
	binary.BigEndian.PutUint64(life[:], w.Life)
	sum := sha256.Sum256(append(life[:], b.Task...))
	return binary.BigEndian.Uint64(sum[:])
}

// parcel is a child of which nothing is made yet, as it goes to another topic.
func (w *Workflow) parcel(topic string) (p store.Parcel, err error) {
	begin := &cell.Beginning{Life: w.Life, Depth: int32(w.Depth), Run: w.Run.encode()}
	if begin.Definition, err = w.Def.Encode(); err != nil {
		return p, err
	}
	body, err := (&cell.Sent{Begin: begin, Parent: w.Parent.encode()}).MarshalVT()
	return store.Parcel{Class: store.ClassWork, Topic: topic, To: store.CellID(store.CellBegin) + store.CellID(w.ID), Body: body}, err
}

// Arrived is what begins the child that a parcel brings, where it begins.
func Arrived(p *store.Parcel, now store.Millis) (c store.Commit, err error) {
	var m cell.Sent
	if err := m.UnmarshalVT(p.Body); err != nil {
		return c, fmt.Errorf("%w: %w", cell.ErrCorrupt, err)
	}
	begin := m.GetBegin()
	d, err := graph.DecodeDefinition(begin.GetDefinition())
	if err != nil {
		return c, err
	}
	child := New(p.To.Key(), begin.Life, d, now)
	child.Parent, child.Depth, child.Run = decodeParent(m.Parent), int(begin.Depth), decodeRun(begin.Run)
	if c, err = Commit(nil, child, &Effects{Wake: now}, Context{Now: now}); err == nil {
		Nudge(&c, now)
	}
	return c, err
}

// Brought reports whether a cell is the child that a parcel brings. A failover of the store where the
// parcel was sent from may have undone that it arrived.
func Brought(c store.Cell, p *store.Parcel) bool {
	var there cell.Workflow
	var m cell.Sent
	return there.UnmarshalVT(c.Body) == nil && m.UnmarshalVT(p.Body) == nil && m.Begin != nil && there.Life == m.Begin.Life
}

// parcel is an order as it lies in the in-box, or goes to another topic from a workflow.
func (o *Order) parcel(from string) (store.Parcel, error) {
	m, to, class := &cell.Sent{Order: int32(o.What), Number: o.Number}, CellID(o.ID), store.Class(0)
	if o.Topic != "" {
		m.Parent, to, class = &cell.Parent{Id: from, Task: o.Task}, store.CellID(store.CellOrder)+store.CellID(o.ID), store.ClassAsk
	}
	body, err := m.MarshalVT()
	return store.Parcel{Class: class, Topic: o.Topic, To: to, Body: body}, err
}

// Delivered is an order from another topic as it lies in the in-box.
func Delivered(p *store.Parcel) store.Parcel {
	return store.Parcel{To: CellID(p.To.Key()), Body: p.Body}
}

// AsksToEnd reports whether that is what a parcel of the out-box asks of a task or a child.
func AsksToEnd(p *store.Parcel) bool {
	var m cell.Sent
	return !message.Orders(p) || m.UnmarshalVT(p.Body) == nil && Asked(m.Order) == AskedToEnd
}

// ordered does what is asked of a child, if nothing newer was: orders come again, and past each other.
func (p *transition) ordered(e Ordered) {
	if !p.w.Phase.Open() || e.Number != 0 && e.Number <= p.w.Ordered {
		return
	}
	p.w.Ordered = max(p.w.Ordered, e.Number)
	switch e.What { // which is not refused while it is open
	case AskedToEnd:
		_ = p.cancel(Cancel{})
	case AskedToPause:
		_ = p.pause(Pause{})
	case AskedToResume:
		_ = p.resume(Resume{})
	}
}

// tellParent is what a child that has ended leaves for its parent.
func (w *Workflow) tellParent(out *Effects, x Context) (store.Parcel, error) {
	e := Ended{Task: w.Parent.Task, Outcome: UnitDone, At: w.Ended, Begun: w.Created, Result: x.valueOf(w.result(), out)}
	if w.Phase != Done {
		e.Outcome, e.Why, e.Error = UnitFailed, WhyChild, w.complaint()
	}
	say, refused := (&graph.Growth{Trace: out.Trace}).Say()
	if refused != nil {
		return store.Parcel{}, refused
	}
	return e.parcel(w.Parent.Topic, w.Parent.ID, say)
}

// complaint is why a workflow did not end well, in a line.
func (w *Workflow) complaint() string {
	switch {
	case w.Phase == Cancelled:
		return "cancelled"
	case w.Failed == "":
		return w.Cause.String()
	}
	text := w.Cause.String() + ": " + w.Failed
	if e := w.failure(); e != "" {
		text += ": " + e
	}
	return text
}

func (p *Parent) encode() *cell.Parent {
	if p == nil {
		return nil
	}
	return &cell.Parent{Id: p.ID, Topic: p.Topic, Task: p.Task}
}

func decodeParent(c *cell.Parent) *Parent {
	if c == nil {
		return nil
	}
	return &Parent{ID: c.Id, Topic: c.Topic, Task: c.Task}
}

package workflow

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/store"
)

// begin puts a child: its cells, in the commit of its parent. What it begins with is made by
// the owner of the shard, which finds it awake.
func (w *Workflow) begin(c *store.Commit, b *Begin, now store.Millis) error {
	n := w.of().find(b.Unit)
	child := New(b.ID, w.lifeOf(b), &n.Child.Definition, now)
	child.Parent, child.Depth, child.Run = &Parent{ID: w.ID, Task: b.Task}, w.Depth+1, w.Run.quiet()
	made, err := Commit(nil, child, &Effects{Wake: now}, Context{Now: now})
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

// parcel is an order as it lies in the in-box.
func (o *Order) parcel() (store.Parcel, error) {
	body, err := (&cell.Sent{Order: int32(o.What)}).MarshalVT()
	return store.Parcel{To: CellID(o.ID), Body: body}, err
}

// tellParent is what a child that has ended leaves for its parent.
func (w *Workflow) tellParent(out *Effects, x Context) (store.Parcel, error) {
	e := &cell.Ended{Task: w.Parent.Task, Outcome: int32(UnitDone), At: int64(w.Ended), Begun: int64(w.Created), Result: x.valueOf(w.result(), out)}
	if w.Phase != Done {
		e.Outcome, e.Why, e.Error = int32(UnitFailed), int32(WhyChild), []byte(w.complaint())
	}
	body, err := (&cell.Sent{Ended: e}).MarshalVT()
	return store.Parcel{To: CellID(w.Parent.ID), Body: body}, err
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

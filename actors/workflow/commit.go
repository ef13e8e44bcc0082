package workflow

import (
	"bytes"
	"slices"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/store"
)

// Values are the bodies of parts by number.
type Values map[int64][]byte

// Context is what a commit needs besides a workflow and the effects of a step.
type Context struct {
	Topic  *store.Topic
	Now    store.Millis
	Values Values // of the parts that Wants names
}

// Wants are the parts whose values go into the tasks that a step made.
func Wants(w *Workflow, out *Effects) (parts []int64) {
	add := func(v Value) {
		if v.Part != 0 && !slices.Contains(parts, v.Part) && !slices.ContainsFunc(out.Parts, func(p Part) bool { return p.Number == v.Part }) {
			parts = append(parts, v.Part)
		}
	}
	for i := range out.Make {
		for _, in := range (inputs{w}).of(&out.Make[i]) {
			add(in.value)
		}
		if w.of().find(out.Make[i].Unit).Input {
			add(w.input())
		}
		if !out.Make[i].Undo {
			add(w.Units[out.Make[i].Unit].Journal)
		}
	}
	if out.Ended && w.Parent != nil {
		add(w.result())
	}
	return parts
}

// PartID names the cell of a value.
func (w *Workflow) PartID(part int64) store.CellID { return w.partID(valuePart, part) }

// Commit returns what a step comes to in the store: of w, which it returned, and its effects.
// Before is what the step was of; nil: the workflow is new.
func Commit(before *Stored, w *Workflow, out *Effects, x Context) (c store.Commit, err error) {
	if out.Gone {
		return w.deletion(before, out), nil
	}
	put := store.Put{Cell: store.Cell{ID: CellID(w.ID), Wake: out.Wake, List: ListOf(w.Phase), Listed: store.MaxDue - w.Created}, First: store.FirstVersion(w.Life)}
	if !w.Phase.Open() {
		put.Listed = store.MaxDue - w.Ended
	}
	if put.Body, err = w.header(); err != nil {
		return c, err
	}
	if before != nil {
		put.If = before.Cell.Version
	}
	c.Puts = append(c.Puts, put)
	if err := w.putParts(&c, before, out); err != nil {
		return c, err
	}
	if err := w.putTasks(&c, out, x); err != nil {
		return c, err
	}
	for i := range out.Begin {
		if err := w.begin(&c, &out.Begin[i], x); err != nil {
			return c, err
		}
	}
	return c, w.send(&c, before, out, x)
}

// putTasks makes tasks, and has others end. What is in another topic goes there by parcel.
func (w *Workflow) putTasks(c *store.Commit, out *Effects, x Context) error {
	for i := range out.Make {
		m := &out.Make[i]
		t := w.task(m, out, x)
		if m.Topic == "" {
			c.Adds = append(c.Adds, t)
			continue
		}
		p, err := message.Parcel(m.Topic, t)
		if err != nil {
			return err
		}
		c.Send = append(c.Send, p)
	}
	for _, t := range out.Ask {
		if t.Topic != "" {
			c.Send = append(c.Send, message.Ask(t.Topic, t.ID, w.ID))
			continue
		}
		c.Removes = append(c.Removes, store.Remove{ID: t.ID}) // when it is pending
		c.Cancels = append(c.Cancels, t.ID)                   // when it runs
	}
	for _, t := range out.Withdraw {
		c.Removes = append(c.Removes, store.Remove{ID: t.ID})
	}
	return nil
}

// send tells children what is asked of them, and a schedule or a parent how it ended.
func (w *Workflow) send(c *store.Commit, before *Stored, out *Effects, x Context) error {
	for i := range out.Orders {
		p, err := out.Orders[i].parcel(w.ID)
		if err != nil {
			return err
		}
		c.Send = append(c.Send, p)
	}
	if err := w.tellSchedule(c, before, out); err != nil {
		return err
	}
	if !out.Ended || w.Parent == nil {
		return nil
	}
	p, err := w.tellParent(out, x)
	c.Send = append(c.Send, p)
	return err
}

// putParts puts what has changed beside the header.
func (w *Workflow) putParts(c *store.Commit, before *Stored, out *Effects) error {
	put := func(id store.CellID, body []byte) {
		c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: id, Body: body}, If: store.AnyVersion})
	}
	if before == nil {
		body, err := w.Def.Encode()
		if err != nil {
			return err
		}
		put(w.partID(definitionPart, 0), body)
	}
	for n := 1; n <= pages(len(w.Units)); n++ {
		body, err := w.page(n)
		if err != nil {
			return err
		}
		if id := w.partID(pagePart, int64(n)); before == nil || !bytes.Equal(before.old[id], body) {
			put(id, body)
		}
	}
	if before != nil {
		for n := pages(len(w.Units)) + 1; n <= len(before.old); n++ {
			put(w.partID(pagePart, int64(n)), nil)
		}
	}
	for i := range out.Parts {
		p := &out.Parts[i]
		kind := valuePart
		if p.Growth {
			kind = growthPart
		}
		put(w.partID(kind, p.Number), p.Body)
	}
	for _, d := range out.Drop {
		put(w.dropID(d), nil)
	}
	return nil
}

func (w *Workflow) dropID(d Dropped) store.CellID {
	if d.Growth {
		return w.partID(growthPart, d.Number)
	}
	return w.partID(valuePart, d.Number)
}

// deletion deletes all cells that are left.
func (w *Workflow) deletion(before *Stored, out *Effects) (c store.Commit) {
	c.Puts = []store.Put{
		{Cell: store.Cell{ID: CellID(w.ID)}, If: before.Cell.Version},
		{Cell: store.Cell{ID: w.partID(definitionPart, 0)}, If: store.AnyVersion},
	}
	for id := range before.old {
		c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: id}, If: store.AnyVersion})
	}
	for _, d := range out.Drop {
		c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: w.dropID(d)}, If: store.AnyVersion})
	}
	return c
}

// Landed reports whether a commit that is Stale is so because it was made before, and its
// answer lost: the header is as it was to become.
func Landed(c *store.Commit, r *store.CommitResult) bool {
	put := &c.Puts[0]
	if len(put.Body) == 0 {
		return r.Cell.Version == 0
	}
	return r.Cell.ID == put.ID && r.Cell.Version == put.Next(put.If) && r.Cell.Wake == put.Wake && bytes.Equal(r.Cell.Body, put.Body)
}

// PutAside has a header that cannot be read wake nobody. What it says stays, for who can.
func PutAside(c store.Cell) store.Commit {
	version := c.Version
	c.Wake, c.List, c.Listed = 0, CorruptList, 0
	return store.Commit{Puts: []store.Put{{Cell: c, If: version}}}
}

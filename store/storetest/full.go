package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// Room is a store under test whose room a case takes and gives back.
type Room struct {
	store.Store
	// SetFull returns when the store is full, or has room again. nil: it has no bound of its own, and
	// takes what others refuse.
	SetFull func(full bool)
}

// RunFull runs the cases of a full store, on a store that keeps cells, as Run does the others.
func RunFull(t *testing.T, open func(t *testing.T) Room) {
	for _, c := range []fullEntry{
		{"Full/RefusesWhatBringsWork", fullRefuses},
		{"Full/CarriesOn", fullCarriesOn},
		{"Full/SettlesTasks", fullSettles},
		{"Full/Queues", fullQueues},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := open(t)
			cells, ok := room.Store.(store.Cells)
			if !ok {
				t.Fatalf("%T keeps no cells", room.Store)
			}
			f := newFixture(t, room.Store)
			c.run(&fullFixture{cellFixture{f, cells, f.now()}, room.SetFull})
		})
	}
}

// fullFixture is a store under test that may be full.
type fullFixture struct {
	cellFixture
	setFull func(full bool)
}

type fullEntry struct {
	name string
	run  func(f *fullFixture)
}

// full has the store be full, if it can be, or have room again.
func (f *fullFixture) full(full bool) {
	if f.setFull != nil {
		f.setFull(full)
	}
}

// refuses checks that an error is what a full store answers to what brings work.
func (f *fullFixture) refuses(what string, err error) {
	f.Helper()
	switch {
	case f.setFull == nil:
		f.ok(what, err)
	case !errors.Is(err, store.ErrFull):
		f.Errorf("%s: %v, want %v", what, err, store.ErrFull)
	}
}

// toldTask is a task whose end tells a cell.
func toldTask(id string, due store.Millis) *store.Task {
	t := task(id, due)
	t.Tells = "sa"
	return t
}

// everything is all that a case can see in the shard.
func (f *fullFixture) everything() string {
	f.Helper()
	kept, _, err := f.cells.CellPage(f.ctx, f.shard, store.CellSchedule, "", 100)
	f.ok("cell page", err)
	slices.SortFunc(kept, func(a, b store.Cell) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	_, kinds, err := f.s.Get(f.ctx, f.shard, []string{"pending", "running", "new", "other"})
	f.ok("get", err)
	states := make([]store.State, len(kinds))
	for i := range kinds {
		states[i] = kinds[i].State
	}
	stats := f.stats()
	return fmt.Sprintf("cells %+v, wakes %s, listed %v, tasks %v, window %v, in %v, out %v, seq %d, pending %d, running %d, cells %d, parcels %d",
		kept, f.wakes(store.WakeQuery{To: store.MaxDue, Limit: 100}), f.listed("all", store.Wake{}, 100), states, f.window(),
		f.parcels(store.InBox), f.parcels(store.OutBox), stats.Seq, stats.Pending, stats.Running, stats.Cells, stats.Parcels)
}

// work are calls of Commit that bring work, all of cell "sa" in version 1, by what they bring.
func work(due store.Millis) map[string][]store.Commit {
	next := func(edit func(c *store.Commit)) store.Commit {
		c := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sa", Wake: 9, List: "all", Body: []byte("two")}, If: 1}}, Removes: []store.Remove{{ID: "pending"}}}
		edit(&c)
		return c
	}
	fresh := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sb", Wake: 5, List: "all", Body: []byte("one")}}}}
	carriesOn := next(func(*store.Commit) {})
	return map[string][]store.Commit{
		"a new cell":                     {fresh},
		"a task":                         {next(func(c *store.Commit) { c.Adds = tasks(due, "new") })},
		"a parcel":                       {next(func(c *store.Commit) { c.Send = []store.Parcel{{To: "sa", Body: []byte("x")}} })},
		"one that leaves":                {next(func(c *store.Commit) { c.Send = []store.Parcel{{To: "sa", Topic: "other", Body: []byte("x")}} })},
		"work behind what carries on":    {carriesOn, fresh},
		"work before what carries on":    {fresh, carriesOn},
		"a task behind what carries on":  {carriesOn, {Adds: tasks(due, "new")}},
		"a task before what carries on":  {{Adds: tasks(due, "new")}, carriesOn},
		"a task and what would be stale": {{Puts: []store.Put{{Cell: body("sa", "x"), If: 7}}, Adds: tasks(due, "new")}},
	}
}

// fullRefuses makes calls of which nothing happens, and makes them again when there is room.
func fullRefuses(f *fullFixture) {
	due := f.now().Add(long)
	f.put(store.OK, 0, store.Cell{ID: "sa", Wake: 7, List: "all", Body: []byte("one")})
	f.held("running")
	f.add(toldTask("pending", due))
	f.full(true)
	if f.setFull != nil {
		before := f.everything()
		for name, commits := range work(due) {
			for _, fence := range []*store.Fence{nil, &f.fence} {
				_, results, err := f.cells.Commit(f.ctx, f.shard, fence, commits)
				f.refuses(name, err)
				equal(f.fixture, name+": results", len(results), 0)
				equal(f.fixture, name+": what there is", f.everything(), before)
			}
		}
	}
	_, _, err := f.s.Add(f.ctx, f.shard, tasks(due, "other"))
	f.refuses("add", err)
	_, _, err = f.s.HoldNew(f.ctx, f.shard, f.fence, tasks(f.now()-1, "third"), holdsOf(long, "third"))
	f.refuses("hold new", err)

	f.full(false)
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, work(due)["work behind what carries on"])
	f.ok("commit with room", err)
	f.statuses("commit with room", results, store.OK, store.OK)
	equal(f.fixture, "cells", fmt.Sprint(f.listed("all", store.Wake{}, 100)), "[sa sb]")
	equal(f.fixture, "told", len(f.parcels(store.InBox)), 1)
	f.states(store.StateUnknown, "pending", "new")
	_, added, err := f.s.Add(f.ctx, f.shard, tasks(due, "later"))
	f.ok("add with room", err)
	f.statuses("add with room", added, store.Added)
}

// fullCarriesOn makes commits that go on with what there is.
func fullCarriesOn(f *fullFixture) {
	now := f.now()
	f.put(store.OK, 0, store.Cell{ID: "sa", Wake: 7, List: "all", Body: []byte("one")})
	f.add(toldTask("ended", now-1000), toldTask("pending", now.Add(long)))
	token := f.hold("ended")[0]
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("sother", "one")}}, Send: []store.Parcel{{To: "sa", Topic: "other", Body: []byte("x")}}})
	f.full(true)

	f.put(store.OK, 1, store.Cell{ID: "sa", Wake: 9, List: "all", Body: []byte("two")})
	f.put(store.Stale, 1, body("sa", "three"))
	f.put(store.OK, 1, store.Cell{ID: "sother"})
	f.ack(0, store.OK, store.Ack{ID: "ended", Token: token})
	in := one(f.fixture, f.parcels(store.InBox))
	f.commit(store.OK, store.Commit{
		Puts: []store.Put{{Cell: body("sa", "four"), If: 2}}, Adds: tasks(now-1000, "next"), Send: []store.Parcel{{To: "sa", Topic: "other", Body: []byte("y")}}, Take: in.Number,
	})
	f.commit(store.OK, store.Commit{Removes: []store.Remove{f.untouched("pending")}})
	f.states(store.StateReady, "next")
	next := f.hold("next")[0]
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "next", Token: next}}, Adds: tasks(now.Add(long), "last")})
	f.states(store.StateScheduled, "last")
	out := f.parcels(store.OutBox)
	f.commit(store.OK, store.Commit{Drop: []int64{out[0].Number, out[1].Number}})
	equal(f.fixture, "cell", string(f.cell("sa").Body), "four")
	equal(f.fixture, "out-box", len(f.parcels(store.OutBox)), 0)
}

// fullSettles does everything with tasks that brings none.
func fullSettles(f *fullFixture) {
	f.ready("acked", "nacked", "dead", "extended", "kept")
	f.scheduled("moved", "removed")
	f.full(true)
	tokens := f.hold("acked", "nacked", "dead", "extended", "kept")
	f.ack(long, store.OK, store.Ack{ID: "acked", Token: tokens[0]})
	equal(f.fixture, "nack", f.nack(store.Nack{ID: "nacked", Token: tokens[1], Delay: long}).Status, store.OK)
	equal(f.fixture, "last nack", f.nack(store.Nack{ID: "dead", Token: tokens[2], Reason: store.ReasonPermanent}).Status, store.OK)
	f.extended("extended", tokens[3])
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("removed"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	f.cancel(store.OK, "kept")
	f.states(store.StateDone, "acked")
	f.states(store.StateRetrying, "nacked")
	f.states(store.StateDead, "dead")
	f.states(store.StateRunning, "extended", "kept")
	f.states(store.StateScheduled, "moved")
	f.states(store.StateUnknown, "removed")
	f.full(false)
	f.ready("more")
}

// fullQueues receives and finishes: what brings work waits, and what makes room does not.
func fullQueues(f *fullFixture) {
	f.commit(store.OK, store.Commit{Send: []store.Message{{To: "ex", Topic: f.shard.Topic, Class: store.ClassWork, Body: []byte("x")}}})
	own := store.Queue{Source: f.shard, Class: store.ClassWork, To: f.shard.Topic}
	page, err := f.cells.Messages(f.ctx, f.shard, own, 0, 9, 1<<20)
	f.ok("messages", err)
	far := store.Queue{Source: store.Shard{Topic: "far"}, Class: store.ClassWork, To: f.shard.Topic}
	receive := func(q store.Queue, n int64) *store.Receive {
		return &store.Receive{Queue: q, Head: n, Numbers: []int64{n}}
	}
	f.full(true)
	_, _, err = f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{{Receive: receive(far, 5), Adds: tasks(f.now(), "a")}})
	f.refuses("receive of a task", err)
	_, _, err = f.cells.Commit(f.ctx, f.shard, &f.fence, []store.Commit{{
		Receive: receive(own, page.Head), Adds: tasks(f.now(), "b"), Finish: &store.Finish{Queue: own, Numbers: []int64{page.Head}},
	}})
	f.ok("receive of what is finished", err)
	f.full(false)
	f.states(store.StateReady, "b")
}

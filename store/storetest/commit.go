package storetest

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// commitAtomic makes commits of which one guard each fails: nothing of it happens.
func commitAtomic(f *cellFixture) {
	token := f.held("running")
	f.scheduled("pending")
	f.nack(store.Nack{ID: "tried", Token: f.held("tried"), Delay: long})
	f.ready("released")
	released := f.untouched("released")
	f.nack(store.Nack{ID: "released", Token: f.hold("released")[0], Delay: long, Uncount: true})
	f.put(store.OK, 0, body("sa", "one"))
	seq := f.seq()
	guards := map[string]struct {
		status store.Status
		breaks func(c *store.Commit)
	}{
		"a cell of another version": {store.Stale, func(c *store.Commit) { c.Puts = append(c.Puts, store.Put{Cell: body("sb", "x"), If: 1}) }},
		"a hold that is not there":  {store.HoldLost, func(c *store.Commit) { c.Under = []store.Holder{{ID: "absent", Token: token}} }},
		"a hold of another token":   {store.HoldLost, func(c *store.Commit) { c.Under = []store.Holder{{ID: "running", Token: store.NewToken()}} }},
		"an ack of another token":   {store.HoldLost, func(c *store.Commit) { c.Acks = append(c.Acks, store.Ack{ID: "pending", Token: token}) }},
		"a task that must be pending": {store.WrongState, func(c *store.Commit) {
			c.Removes = append(c.Removes, f.untouched("running"))
		}},
		"a task that must be untried": {store.WrongState, func(c *store.Commit) {
			c.Removes = append(c.Removes, f.untouched("tried"))
		}},
		"a task that a worker has had": {store.WrongState, func(c *store.Commit) { c.Removes = append(c.Removes, released) }},
		"a task that must be dead": {store.WrongState, func(c *store.Commit) {
			c.Removes = append(c.Removes, store.Remove{ID: "tried", Dead: true})
		}},
		"a dead task that is gone":   {store.WrongState, func(c *store.Commit) { c.Removes = append(c.Removes, store.Remove{ID: "absent", Dead: true}) }},
		"a task that is gone":        {store.WrongState, func(c *store.Commit) { c.Removes = append(c.Removes, store.Remove{ID: "absent", Due: 5}) }},
		"a task that lives":          {store.Conflict, func(c *store.Commit) { c.Adds = append(c.Adds, task("running", 5)) }},
		"the same task, which lives": {store.Conflict, func(c *store.Commit) { c.Adds = append(c.Adds, task("pending", 5)) }},
	}
	for name, g := range guards {
		c := store.Commit{
			Puts: []store.Put{{Cell: body("sa", "two"), If: 1}}, Acks: []store.Ack{{ID: "running", Token: token}}, Adds: tasks(5, "new"),
			Removes: []store.Remove{f.untouched("pending")}, Send: []store.Parcel{{To: "sa", Body: []byte("x")}, {To: "sa", Topic: "other", Body: []byte("x")}},
		}
		g.breaks(&c)
		good := store.Commit{Puts: []store.Put{{Cell: body("sgood", name), If: store.AnyVersion}}}
		_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{good, c, good})
		f.ok("commit", err)
		f.statuses(name, results, store.OK, g.status, store.OK)
		equal(f.fixture, name+": body", string(f.cell("sa").Body), "one")
		f.states(store.StateRunning, "running")
		f.states(store.StateScheduled, "pending", "released")
		f.states(store.StateRetrying, "tried")
		f.states(store.StateUnknown, "new")
		equal(f.fixture, name+": in-box", len(f.parcels(store.InBox)), 0)
		equal(f.fixture, name+": out-box", len(f.parcels(store.OutBox)), 0)
	}
	equal(f.fixture, "seq", f.seq(), seq)
}

func commitsInOrder(f *cellFixture) {
	var commits []store.Commit
	for i := range int64(5) {
		commits = append(commits, store.Commit{Puts: []store.Put{{Cell: body("sa", fmt.Sprint(i)), If: i}}})
	}
	commits = append(commits, commits[2], store.Commit{Puts: []store.Put{{Cell: body("sa", "last"), If: 5}}})
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, commits)
	f.ok("commit", err)
	f.statuses("commit", results, store.OK, store.OK, store.OK, store.OK, store.OK, store.Stale, store.OK)
	equal(f.fixture, "version in the way", results[5].Cell.Version, 5)
	equal(f.fixture, "body", string(f.cell("sa").Body), "last")
}

func commitFenced(f *cellFixture) {
	c := []store.Commit{{Puts: []store.Put{{Cell: body("sa", "x"), If: store.AnyVersion}}}}
	_, _, err := f.cells.Commit(f.ctx, f.shard, &f.fence, c)
	f.ok("commit", err)
	old := f.fence
	f.fence = f.claim(f.shard, f.session)
	_, _, err = f.cells.Commit(f.ctx, f.shard, &old, c)
	f.refused("commit of an owner of the past", err, store.ErrFenced)
	equal(f.fixture, "version", f.cell("sa").Version, 1)
	_, _, err = f.cells.Commit(f.ctx, f.shard, nil, c)
	f.ok("commit without a fence", err)
}

func commitAdds(f *cellFixture) {
	f.done("done")
	f.dead("dead")
	seq := f.seq()
	f.commit(store.OK, store.Commit{Adds: tasks(f.now().Add(long), "new", "done", "dead")})
	f.states(store.StateScheduled, "new", "done", "dead")
	equal(f.fixture, "attempts of one that was done", f.get("done").Attempt, 0)
	equal(f.fixture, "seq", f.seq(), seq+1)
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("sa", "x")}}})
	equal(f.fixture, "seq", f.seq(), seq+1)
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{
		{Puts: []store.Put{{Cell: body("sa", "y"), If: 1}}, Adds: tasks(5, "more")}, {Puts: []store.Put{{Cell: body("sa", "z"), If: 9}}},
	})
	f.ok("commit", err)
	f.statuses("commit", results, store.OK, store.Stale)
	equal(f.fixture, "seq after one that was made and one that was not", f.seq(), seq+2)
}

func commitAcks(f *cellFixture) {
	a, b, c := f.held("a"), f.held("b"), f.held("c")
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "a", Token: a}}, Under: []store.Holder{{ID: "c", Token: c}}})
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "b", Token: b, Result: []byte("done")}}, Retention: long})
	f.states(store.StateUnknown, "a")
	f.states(store.StateDone, "b")
	f.states(store.StateRunning, "c")
	equal(f.fixture, "task", f.commit(store.HoldLost, store.Commit{Acks: []store.Ack{{ID: "b", Token: b}}}).ID, "b")
}

func commitRemoves(f *cellFixture) {
	token := f.held("running")
	f.scheduled("pending", "other")
	f.commit(store.OK, store.Commit{Removes: []store.Remove{f.untouched("pending"), {ID: "other"}, {ID: "running"}, {ID: "absent"}}, Cancels: []string{"running", "absent"}})
	f.states(store.StateUnknown, "pending", "other")
	got := f.get("running")
	equal(f.fixture, "token", got.Token, token)
	equal(f.fixture, "cancelled", got.Cancelled, true)
}

// commitRemovesDead deletes a dead task in the step in which it is sent elsewhere, once.
func commitRemovesDead(f *cellFixture) {
	f.dead("dead")
	f.dead("other")
	f.scheduled("pending")
	again := store.Commit{Removes: []store.Remove{{ID: "dead", Dead: true}}, Send: []store.Parcel{{Topic: "other", To: "edead", Body: []byte("x")}}}
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{again, {Removes: []store.Remove{{ID: "other"}}}})
	f.ok("commit", err)
	f.statuses("commit", results, store.OK, store.OK)
	f.states(store.StateUnknown, "dead")
	f.states(store.StateDead, "other")
	equal(f.fixture, "task", f.commit(store.WrongState, again).ID, "dead")
	equal(f.fixture, "sent", len(f.parcels(store.OutBox)), 1)
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.commit(store.OK, store.Commit{Removes: []store.Remove{{ID: "other", Dead: true}}, Send: again.Send})
	f.states(store.StateUnknown, "other")
	f.states(store.StateScheduled, "pending")
}

func commitSealed(f *cellFixture) {
	f.put(store.OK, 0, body("sa", "one"))
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("sa", "two"), If: 1}}, Adds: tasks(5, "a")})
	f.commit(store.Closed, store.Commit{Adds: tasks(5, "b")})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{{Cell: body("snew", "x")}}})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{{Cell: body("sa", "three"), If: 2}, {Cell: body("wnew", "x")}}})
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("sa", "three"), If: 2}, {Cell: body("wnew/child", "x")}}})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{{Cell: body("tnew", "x")}}, Adds: tasks(5, "b")})
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("tnew", "x")}}})
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sa"}, If: 3}}})
	f.states(store.StateUnknown, "b")
}

// commitReceivedSealed: a call of a former owner may reach a shard that was sealed behind its back. The next owner has
// delivered to the shards of now, if the tally of this one had not come so far.
func commitReceivedSealed(f *cellFixture) {
	f.put(store.OK, 0, body("tof/mail/1/0", "17"))
	f.put(store.OK, 0, body("wa", "one"))
	tally := func(number string, version int64) store.Put {
		return store.Put{Cell: body("tof/mail/1/0", number), If: version}
	}
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.commit(store.Closed, store.Commit{Puts: []store.Put{tally("18", 1)}, Adds: tasks(5, "a")})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{tally("18", 1), {Cell: body("wa", "two"), If: 1}}, Adds: tasks(5, "a")})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{tally("18", 1), {Cell: body("wp/child", "x")}}})
	equal(f.fixture, "tally", string(f.cell("tof/mail/1/0").Body), "17")
	f.states(store.StateUnknown, "a")
	f.commit(store.OK, store.Commit{Puts: []store.Put{tally("18", 1)}, Send: []store.Parcel{{To: "wa", Body: []byte("x")}}})
	equal(f.fixture, "in-box", len(f.parcels(store.InBox)), 1)
	f.commit(store.Stale, store.Commit{Puts: []store.Put{tally("18", 1)}, Adds: tasks(5, "a")}) // made before, if its answer was lost
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "tof/mail/1/0"}, If: 2}}})
}

func commitDropped(f *cellFixture) {
	f.put(store.OK, 0, store.Cell{ID: "sa", Wake: 5, List: "all", Body: []byte("x")})
	f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}, {To: "sa", Topic: "other", Body: []byte("x")}}})
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	equal(f.fixture, "version", f.cell("sa").Version, 0)
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 100, Limit: 10}), "[]")
	equal(f.fixture, "list", len(f.listed("all", store.Wake{}, 10)), 0)
	equal(f.fixture, "in-box", len(f.parcels(store.InBox)), 0)
	equal(f.fixture, "out-box", len(f.parcels(store.OutBox)), 0)
	f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}}})
	equal(f.fixture, "number of a parcel after that", f.parcels(store.InBox)[0].Number, 2)
}

func commitBig(f *cellFixture) {
	const n = 600
	commits := make([]store.Commit, n)
	for i := range commits {
		id := fmt.Sprintf("%04d", i)
		t := task(id, f.now().Add(long))
		t.Tells = "s" + store.CellID(id)
		commits[i] = store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: t.Tells, Wake: store.Millis(i + 1), Body: []byte(id)}}}, Adds: []*store.Task{t}}
	}
	_, results, err := f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit", err)
	f.statuses("commit", results, repeat(store.OK, n)...)
	equal(f.fixture, "number of tasks", f.stats().Pending, n)
	_, results, err = f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit", err)
	f.statuses("commit again", results, repeat(store.Stale, n)...)
}

// commitMade: a store need not say that it has made a commit before the call returns; if it does, the
// commit is one that is made, and the stamp that of the call.
func commitMade(f *cellFixture) {
	f.put(store.OK, 0, body("sa", "one"))
	told := make([][]store.Stamp, 3)
	commits := make([]store.Commit, len(told))
	for i, put := range []store.Put{{Cell: body("sa", "two"), If: 1}, {Cell: body("sa", "three"), If: 1}, {Cell: body("sb", "four")}} {
		id := string(put.Cell.ID) + fmt.Sprint(i)
		commits[i] = store.Commit{Puts: []store.Put{put}, Adds: tasks(f.now().Add(long), id), Made: func(at store.Stamp) { told[i] = append(told[i], at) }}
	}
	want := []store.Status{store.OK, store.Stale, store.OK}
	stamp, results, err := f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit", err)
	f.statuses("commit", results, want...)
	_, results, err = f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit again", err)
	f.statuses("commit again", results, store.Stale, store.Stale, store.Stale)
	for i, at := range told {
		if len(at) > 1 || len(at) == 1 && (want[i] != store.OK || at[0].Seq != stamp.Seq) {
			f.Errorf("of commit %d, which is %v at seq %d, was said %+v", i, want[i], stamp.Seq, at)
		}
	}
}

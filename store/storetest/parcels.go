package storetest

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// telling returns a task that tells a cell.
func telling(id string, due store.Millis) *store.Task {
	t := task(id, due)
	t.Tells = "srun"
	return t
}

// told takes what is in the in-box, and checks that it is one end of a task.
func (f *cellFixture) told(what, id string, kind store.ChangeKind) store.Ended {
	f.Helper()
	parcels := f.parcels(store.InBox)
	if len(parcels) != 1 || parcels[0].Ended == nil {
		f.Fatalf("%s leaves %+v, want one end of a task", what, parcels)
	}
	p := parcels[0]
	equal(f.fixture, what+" is told to", p.To, "srun")
	equal(f.fixture, what+" is about", p.Ended.ID, id)
	equal(f.fixture, what+" is", p.Ended.Kind, kind)
	f.lately(what+" is at", p.At)
	if p.Ended.Started != 0 {
		f.lately(what+" has begun", p.Ended.Started)
	}
	f.commit(store.OK, store.Commit{Take: p.Number})
	f.since = f.now()
	return *p.Ended
}

// lately checks a moment since the last end that was told.
func (f *cellFixture) lately(what string, got store.Millis) {
	f.Helper()
	if now := f.now(); got < f.since || got > now {
		f.Fatalf("%s is %v, want between %v and %v", what, got.Time(), f.since.Time(), now.Time())
	}
}

func (f *cellFixture) silent(what string) {
	f.Helper()
	if parcels := f.parcels(store.InBox); len(parcels) != 0 {
		f.Fatalf("%s leaves %+v, want nothing", what, parcels)
	}
}

// tellsEnds ends a task in every way there is.
func tellsEnds(f *cellFixture) {
	held := func(id string) store.Token {
		f.Helper()
		f.add(telling(id, f.now()-1000))
		return f.hold(id)[0]
	}
	token := held("acked")
	f.ack(0, store.OK, store.Ack{ID: "acked", Token: token, Result: []byte("42")})
	e := f.told("an ack", "acked", store.ChangeDone)
	equal(f.fixture, "result", string(e.Result), "42")
	equal(f.fixture, "attempt", e.Attempt, 1)
	equal(f.fixture, "worker", e.Worker, "worker-1")
	if e.Started == 0 {
		f.Fatalf("an ack does not say when the attempt began")
	}
	f.ack(0, store.NotFound, store.Ack{ID: "acked", Token: token})
	f.silent("an ack again")

	token = held("kept")
	f.ack(long, store.OK, store.Ack{ID: "kept", Token: token})
	f.told("an ack with a retention", "kept", store.ChangeDone)
	f.ack(long, store.Already, store.Ack{ID: "kept", Token: token})
	f.silent("an ack again")

	token = held("nacked")
	f.nack(store.Nack{ID: "nacked", Token: token, Reason: store.ReasonPermanent, Error: "no"})
	e = f.told("a nack for good", "nacked", store.ChangeDead)
	equal(f.fixture, "reason", e.Reason, store.ReasonPermanent)
	equal(f.fixture, "error", e.Error, "no")
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"nacked", "nacked"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK, store.NotFound)
	f.told("a requeue", "nacked", store.ChangeRequeued)
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("nacked", "nacked"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK, store.NotFound)
	f.told("a removal", "nacked", store.ChangeDeleted)

	f.add(telling("lost", f.now()-1000))
	_, results := f.tryHold(holdsOf(time.Millisecond, "lost"), store.OK)
	waitUntil(f, f.s, results[0].Deadline+1)
	recover := []store.Nack{{ID: "lost", Token: f.get("lost").Token, Reason: store.ReasonHoldExpired}}
	for range 2 {
		_, _, err = f.s.Recover(f.ctx, f.shard, f.fence, recover)
		f.ok("recover", err)
	}
	f.told("a recovery for good", "lost", store.ChangeDead)

	expired := telling("expired", f.now()-1000)
	expired.Expires = f.now() - 500
	f.add(expired)
	f.tryHold(holdsOf(long, "expired", "expired"), store.Expired, store.WrongState)
	equal(f.fixture, "reason", f.told("an expiry", "expired", store.ChangeDead).Reason, store.ReasonExpired)

	f.add(telling("committed", f.now().Add(long)))
	f.commit(store.OK, store.Commit{Removes: []store.Remove{{ID: "committed"}}})
	f.told("a removal by a commit", "committed", store.ChangeDeleted)

	token = held("by commit")
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "by commit", Token: token, Result: []byte("x")}}})
	f.told("an ack by a commit", "by commit", store.ChangeDone)

	first, second := telling("first", f.now().Add(long)), task("second", f.now().Add(long))
	first.Key = &store.Key{Text: "k"}
	second.Key = &store.Key{Text: "k", OnConflict: store.KeyReplace}
	_, added, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{first, second})
	f.ok("add keyed", err)
	f.statuses("add keyed", added, store.Added, store.Replaced)
	f.told("a replacement by key", "first", store.ChangeDeleted)
	f.commit(store.OK, store.Commit{Removes: []store.Remove{f.untouched("first")}})
	f.silent("the end of a task that replaced another")
}

// tellsSaid acks with something to say, of tasks that tell a cell and one that tells none.
func tellsSaid(f *cellFixture) {
	said := func(id string, say string) store.Ack {
		f.Helper()
		return store.Ack{ID: id, Token: f.get(id).Token, Result: []byte("42"), Say: []byte(say)}
	}
	held := func(id string) {
		f.Helper()
		f.add(telling(id, f.now()-1000))
		f.hold(id)
	}
	heard := func(what, id, want string) {
		f.Helper()
		e := f.told(what, id, store.ChangeDone)
		equal(f.fixture, what+" says", string(e.Say), want)
		equal(f.fixture, what+" has the result", string(e.Result), "42")
	}
	f.held("mute")
	f.ack(0, store.NoCell, said("mute", "x"))
	for _, retention := range []time.Duration{0, long} {
		held("a")
		f.ack(retention, store.OK, said("a", "more"))
		heard("an ack", "a", "more")
		held("b")
		ack := said("b", "more")
		f.commit(store.NoCell, store.Commit{Acks: []store.Ack{ack, said("mute", "x")}, Retention: retention})
		f.states(store.StateRunning, "b", "mute")
		f.commit(store.OK, store.Commit{Acks: []store.Ack{ack}, Retention: retention})
		heard("an ack by a commit", "b", "more")
		f.commit(store.HoldLost, store.Commit{Acks: []store.Ack{ack}})
		held("c")
		_, statuses, err := f.s.Ack(f.ctx, f.shard, []store.Ack{said("mute", "x"), said("c", "other"), {ID: "absent", Say: []byte("x")}}, retention)
		f.ok("ack", err)
		f.statuses("ack", statuses, store.NoCell, store.OK, store.NotFound)
		heard("an ack beside one that is refused", "c", "other")
	}
	f.states(store.StateRunning, "mute")
	f.silent("an ack that is refused")
	held("d")
	f.ack(0, store.OK, store.Ack{ID: "d", Token: f.get("d").Token, Result: []byte("42")})
	heard("an ack without a word", "d", "")
	f.ack(0, store.OK, store.Ack{ID: "mute", Token: f.get("mute").Token})
}

// tellsFailed nacks with something to say: a cell is told of what ends its task, and nobody of the rest.
func tellsFailed(f *cellFixture) {
	said := func(id string, reason store.Reason) store.Nack {
		f.Helper()
		return store.Nack{ID: id, Token: f.hold(id)[0], Reason: reason, Outcome: store.OutcomeFailed, Error: "no", Say: []byte("why")}
	}
	f.add(telling("a", f.now()-1000))
	f.nack(said("a", store.ReasonNone))
	f.silent("a nack that has the task tried again")
	waitUntil(f, f.s, f.get("a").Due)
	f.nack(said("a", store.ReasonMaxRetries))
	e := f.told("a nack for good", "a", store.ChangeDead)
	equal(f.fixture, "a nack for good says", string(e.Say), "why")
	equal(f.fixture, "its error", e.Error, "no")

	mute := task("mute", f.now()-1000)
	f.add(mute)
	f.nack(said("mute", store.ReasonPermanent))
	f.states(store.StateDead, "mute")
	f.silent("a task that tells nobody")

	f.add(telling("b", f.now()-1000))
	f.add(telling("c", f.now()-1000))
	quiet := said("c", store.ReasonPermanent)
	quiet.Say = nil
	_, _, err := f.s.Nack(f.ctx, f.shard, []store.Nack{said("b", store.ReasonPermanent), quiet})
	f.ok("nack", err)
	parcels := f.parcels(store.InBox)
	if len(parcels) != 2 {
		f.Fatalf("two nacks leave %+v", parcels)
	}
	equal(f.fixture, "what they say", string(parcels[0].Ended.Say)+" and "+string(parcels[1].Ended.Say), "why and ")
	f.commit(store.OK, store.Commit{Take: parcels[1].Number})
}

// tellsNothing does to a task what does not end it.
func tellsNothing(f *cellFixture) {
	f.add(telling("a", f.now()-1000))
	f.edit(store.OK, store.Edit{ID: "a", Due: f.now() - 5})
	token := f.hold("a")[0]
	_, _, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: long}})
	f.ok("extend", err)
	_, _, err = f.s.Cancel(f.ctx, f.shard, []string{"a"})
	f.ok("cancel", err)
	f.nack(store.Nack{ID: "a", Token: store.NewToken(), Reason: store.ReasonPermanent})
	f.ack(0, store.Stale, store.Ack{ID: "a", Token: store.NewToken()})
	f.add(telling("b", f.now()-1000))
	f.nack(store.Nack{ID: "b", Token: f.hold("b")[0], Uncount: true})
	waitUntil(f, f.s, f.get("b").Due)
	f.nack(store.Nack{ID: "b", Token: f.hold("b")[0], Outcome: store.OutcomeFailed, Error: "again"})
	f.silent("what does not end a task")

	dead := telling("dead", f.now()-1000)
	f.add(dead)
	f.nack(store.Nack{ID: "dead", Token: f.hold("dead")[0], Reason: store.ReasonPermanent})
	f.told("a nack for good", "dead", store.ChangeDead)
	_, _, err = f.s.RemoveDead(f.ctx, f.shard, []string{"dead"})
	f.ok("remove dead", err)
	f.silent("the removal of a dead letter")

	f.add(telling("kept", f.now()-1000))
	f.ack(time.Millisecond, store.OK, store.Ack{ID: "kept", Token: f.hold("kept")[0]})
	f.told("an ack", "kept", store.ChangeDone)
	waitUntil(f, f.s, f.now()+5)
	_, err = f.s.Trim(f.ctx, f.shard, 10)
	f.ok("trim", err)
	f.silent("a trim")
	f.scheduled("tells nobody")
	f.commit(store.OK, store.Commit{Removes: []store.Remove{f.untouched("tells nobody")}})
	f.silent("the end of a task that tells nobody")
}

func tellsKept(f *cellFixture) {
	f.add(telling("a", f.now()-1000))
	equal(f.fixture, "cell that the task tells", f.get("a").Tells, "srun")
	f.edit(store.OK, store.Edit{ID: "a", Task: f.changed("a", "other")})
	token := f.hold("a")[0]
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed})
	equal(f.fixture, "cell that the task tells", f.get("a").Tells, "srun")
	waitUntil(f, f.s, f.get("a").Due)
	_, results := f.tryHold(holdsOf(long, "a"), store.OK)
	equal(f.fixture, "cell that the held task tells", results[0].Task.Tells, "srun")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.get("a").Token})
	equal(f.fixture, "attempt", f.told("an ack", "a", store.ChangeDone).Attempt, 2)
	f.add(task("a", f.now().Add(long)))
	equal(f.fixture, "cell that a new task of the id tells", f.get("a").Tells, "")
}

func boxesInOrder(f *cellFixture) {
	for i := range 5 {
		f.commit(store.OK, store.Commit{Send: []store.Parcel{
			{To: "sa", Body: []byte(fmt.Sprint("in ", i))}, {To: "sb", Topic: "other", Body: []byte(fmt.Sprint("out ", i))}, {To: "sc", Body: []byte("more")},
		}})
	}
	in, out := f.parcels(store.InBox), f.parcels(store.OutBox)
	equal(f.fixture, "parcels in the in-box", len(in), 10)
	equal(f.fixture, "parcels in the out-box", len(out), 5)
	for i := range 5 {
		equal(f.fixture, "body", string(in[2*i].Body), fmt.Sprint("in ", i))
		equal(f.fixture, "cell", in[2*i+1].To, "sc")
		equal(f.fixture, "body", string(out[i].Body), fmt.Sprint("out ", i))
		equal(f.fixture, "topic", out[i].Topic, "other")
	}
	for i := 1; i < len(in); i++ {
		if in[i].Number <= in[i-1].Number {
			f.Fatalf("number %d follows on %d", in[i].Number, in[i-1].Number)
		}
	}
	stamp, _, err := f.cells.Wakes(f.ctx, f.shard, store.WakeQuery{Limit: 1})
	f.ok("wakes", err)
	equal(f.fixture, "last number of the stamp", stamp.In, in[9].Number)

	page, err := f.cells.Parcels(f.ctx, f.shard, store.InBox, in[3].Number, 2)
	f.ok("parcels", err)
	equal(f.fixture, "page", page[0].Number, in[4].Number)
	equal(f.fixture, "length of the page", len(page), 2)
	f.commit(store.OK, store.Commit{Take: in[6].Number, Drop: []int64{out[1].Number, out[3].Number}})
	equal(f.fixture, "first that is left", f.parcels(store.InBox)[0].Number, in[7].Number)
	left := f.parcels(store.OutBox)
	equal(f.fixture, "parcels that are left", len(left), 3)
	equal(f.fixture, "second that is left", left[1].Number, out[2].Number)
	if stamp.Server != 0 {
		_, _, err := f.cells.Commit(f.ctx, f.shard, &f.fence, []store.Commit{{Take: in[9].Number, From: stamp.Server + 1}})
		f.refused("commit by what another server had", err, store.ErrAnotherServer)
		equal(f.fixture, "parcels that are left", len(f.parcels(store.InBox)), 3)
	}
	f.commit(store.OK, store.Commit{Take: in[9].Number, From: stamp.Server})
	equal(f.fixture, "parcels that are left", len(f.parcels(store.InBox)), 0)
	f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}}})
	if next := f.parcels(store.InBox)[0].Number; next <= in[9].Number {
		f.Fatalf("number %d comes after %d", next, in[9].Number)
	}
	equal(f.fixture, "parcels in the stats", f.stats().Parcels, 4)
}

// boxesTold reads parcels together with the cells that they are for.
func boxesTold(f *cellFixture) {
	f.put(store.OK, 0, body("wb", "one"))
	f.put(store.OK, 1, body("wb", "two"))
	f.put(store.OK, 0, body("wa", "three"))
	var send []store.Parcel
	for i, to := range []store.CellID{"wb", "wgone", "wb", "wa", "wb"} {
		send = append(send, store.Parcel{To: to, Body: []byte{byte(i)}})
	}
	f.commit(store.OK, store.Commit{Send: append(send, store.Parcel{To: "wb", Topic: "other", Body: []byte("out")})})
	first := f.parcels(store.InBox)[0].Number
	check := func(q store.ToldQuery, want string) {
		f.Helper()
		parcels, cells, err := f.cells.Told(f.ctx, f.shard, q)
		f.ok("told", err)
		got := ""
		for _, p := range parcels {
			got += fmt.Sprintf("%s:%d ", p.To, p.Body[0])
		}
		for _, c := range cells {
			got += fmt.Sprintf("%s@%d=%s ", c.ID, c.Version, c.Body)
		}
		equal(f.fixture, fmt.Sprintf("what %+v finds", q), got, want)
	}
	check(store.ToldQuery{Limit: 10, Cells: 10}, "wb:0 wgone:1 wb:2 wa:3 wb:4 wb@2=two wgone@0= wa@1=three ")
	check(store.ToldQuery{Limit: 10, Cells: 2}, "wb:0 wgone:1 wb:2 wb@2=two wgone@0= ")
	check(store.ToldQuery{Limit: 1, Cells: 2}, "wb:0 wb@2=two ")
	check(store.ToldQuery{After: first + 2, Limit: 10, Cells: 10}, "wa:3 wb:4 wa@1=three wb@2=two ")
	check(store.ToldQuery{After: first + 4, Limit: 10, Cells: 10}, "")
}

// boxTally delivers a parcel from another shard, twice: the second time its task is done
// and gone.
func boxTally(f *cellFixture) {
	deliver := store.Commit{Puts: []store.Put{{Cell: body("tother/3", "17"), If: 0}}, Adds: tasks(f.now()-1000, "a")}
	f.commit(store.OK, deliver)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	result := f.commit(store.Stale, deliver)
	equal(f.fixture, "the number that was taken", string(result.Cell.Body), "17")
	f.states(store.StateUnknown, "a")
}

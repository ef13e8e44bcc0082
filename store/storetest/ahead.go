package storetest

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

func aheadCases() []entry {
	return []entry{
		{"HoldAhead/TakesWhatIsDueSoon", aheadTakes},
		{"HoldAhead/NotDueBeyond", aheadBeyond},
		{"HoldAhead/NotDueBeyondTheMost", aheadMost},
		{"HoldAhead/TheTasksOwnVisibilityFirst", aheadVisibility},
		{"HoldAhead/ARetryCountsOn", aheadRetry},
		{"HoldAhead/SameTokenSameHold", aheadAgain},
		{"HoldAhead/ReleasedIsDueWhenItWas", aheadReleased},
		{"HoldAhead/ReleasedForLongerIsDueLater", aheadReleasedLater},
		{"HoldAhead/EditsAndDeletesAreTold", aheadEdits},
		{"HoldAhead/EditsAndDeletesInTimeWin", aheadEditsInTime},
		{"HoldAhead/CancelledIsDead", aheadCancelled},
		{"HoldAhead/ExpiryBeforeTheDueTime", aheadExpires},
		{"HoldAhead/NotWithAnOrderingKey", aheadOrdered},
		{"HoldAhead/BoundsNearerThanTheDueTime", aheadBounds},
		{"HoldAhead/HoldNewDoesNot", aheadNew},
		{"HoldAhead/RecoveredAfterItsDeadline", aheadRecovered},
		{"HoldAhead/AmongOthers", aheadMixed},
	}
}

// soon is far enough from now for a call to come before it, and within MaxHoldAhead.
const soon = 200 * time.Millisecond

// holdAhead adds a task that is due soon and holds it before that.
func (f *fixture) holdAhead(id string, edit func(*store.Task, *store.Hold)) (store.Hold, store.HoldResult) {
	f.Helper()
	for range 20 {
		t, h := task(id, f.now().Add(soon)), aheadOf(id)
		edit(t, &h)
		f.add(t)
		stamp, results := f.tryHold([]store.Hold{h}, store.OK)
		if stamp.Now.Before(t.Due.Time()) {
			return h, results[0]
		}
		f.ack(0, store.OK, store.Ack{ID: id, Token: h.Token}) // the call came too late to say anything
	}
	f.Fatal("no call came before the task was due")
	return store.Hold{}, store.HoldResult{}
}

func asIs(*store.Task, *store.Hold) {}

func aheadOf(id string) store.Hold {
	h := holdsOf(long, id)[0]
	h.Ahead = store.MaxHoldAhead
	return h
}

// untilNot asks for a task as long as the answer is NotDue, and returns the next one and its
// moment.
func (f *fixture) untilNot(h store.Hold) (time.Time, store.HoldResult) {
	f.Helper()
	for {
		stamp, results, err := f.s.Hold(f.ctx, f.shard, f.fence, []store.Hold{h})
		f.ok("hold", err)
		if result := one(f, results); result.Status != store.NotDue {
			return stamp.Now, result
		}
		time.Sleep(100 * time.Microsecond) // the step of polling: fine enough to see a millisecond too early
	}
}

func aheadTakes(f *fixture) {
	h, got := f.holdAhead("a", asIs)
	equal(f, "deadline", got.Deadline, got.Due.Add(long))
	equal(f, "due time of the task", got.Task.Due, got.Due)
	equal(f, "payload", string(got.Task.Payload), "payload of a")
	equal(f, "attempt", got.Task.Attempt, 1)

	snapshot := f.get("a")
	equal(f, "state", snapshot.State, store.StateRunning)
	equal(f, "token", snapshot.Token, h.Token)
	equal(f, "deadline", snapshot.Deadline, got.Deadline)
	equal(f, "when it began", snapshot.Started, got.Due)
	equal(f, "attempt", snapshot.Attempt, 1)
	same(f, "pending tasks", f.window(), nil)
	equal(f, "number of running tasks", f.stats().Running, 1)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: h.Token})
}

func aheadBeyond(f *fixture) { f.neverEarlier(20*time.Millisecond, 20*time.Millisecond) }

func aheadMost(f *fixture) { f.neverEarlier(long, store.MaxHoldAhead) }

// neverEarlier asks for a task over and over: it is held as soon as it may be.
func (f *fixture) neverEarlier(ahead, want time.Duration) {
	f.Helper()
	due := f.now().Add(want + 20*time.Millisecond)
	f.add(task("a", due))
	h := aheadOf("a")
	h.Ahead = ahead
	from := due.Time().Add(-want)
	for {
		stamp, results, err := f.s.Hold(f.ctx, f.shard, f.fence, []store.Hold{h})
		f.ok("hold", err)
		result, early := one(f, results), stamp.Now.Before(from)
		if result.Status != store.NotDue && early || result.Status != store.OK && !early {
			f.Fatalf("status is %s at %v, due time %v, ahead %v", result.Status, stamp.Now, due.Time(), want)
		}
		equal(f, "due time", result.Due, due)
		if result.Status == store.OK {
			return
		}
		time.Sleep(100 * time.Microsecond) // the step of polling: fine enough to see a millisecond too early
	}
}

func aheadVisibility(f *fixture) {
	_, got := f.holdAhead("own", func(t *store.Task, _ *store.Hold) { t.Visibility = 2 * long })
	equal(f, "deadline by the task's visibility timeout", got.Deadline, got.Due.Add(2*long))
}

// aheadRetry holds a task that has notes, and so is not as most are.
func aheadRetry(f *fixture) {
	for range 20 {
		result := f.nack(store.Nack{ID: "a", Token: f.held("a"), Delay: soon, Error: "no luck"})
		h := aheadOf("a")
		stamp, results := f.tryHold([]store.Hold{h}, store.OK)
		if stamp.Now.Before(result.Due.Time()) {
			equal(f, "deadline", results[0].Deadline, result.Due.Add(long))
			equal(f, "attempt", results[0].Task.Attempt, 2)
			equal(f, "last error", results[0].Task.LastError, "no luck")
			equal(f, "when it began", f.get("a").Started, result.Due)
			return
		}
		f.ack(0, store.OK, store.Ack{ID: "a", Token: h.Token})
	}
	f.Fatal("no call came before the task was due")
}

func aheadAgain(f *fixture) {
	h, first := f.holdAhead("a", asIs)
	for range 2 { // ahead, and when the task is due
		_, again := f.tryHold([]store.Hold{h}, store.OK)
		equal(f, "deadline of the same hold", again[0].Deadline, first.Deadline)
		equal(f, "attempt of the same hold", again[0].Task.Attempt, 1)
		waitUntil(f, f.s, first.Due)
	}
	other := aheadOf("a")
	f.tryHold([]store.Hold{other}, store.WrongState)
	equal(f, "token", f.get("a").Token, h.Token)
}

// release gives a hold back before anybody saw the task.
func (f *fixture) release(h store.Hold, delay time.Duration) (store.Stamp, store.NackResult) {
	f.Helper()
	stamp, results, err := f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: h.ID, Token: h.Token, Delay: delay, Uncount: true}})
	f.ok("nack", err)
	f.statuses("nack", results, store.OK)
	return stamp, results[0]
}

func aheadReleased(f *fixture) {
	for range 20 {
		h, held := f.holdAhead("a", asIs)
		seq := f.seq()
		stamp, result := f.release(h, 0)
		if !stamp.Now.Before(held.Due.Time()) {
			f.remove("a")
			continue
		}
		equal(f, "due time told", result.Due, held.Due)
		equal(f, "attempt told", result.Attempt, 0)
		equal(f, "seq", stamp.Seq, seq+1)
		got := f.get("a")
		equal(f, "due time", got.Due, held.Due)
		equal(f, "attempt", got.Attempt, 0)
		same(f, "pending tasks", f.window(), []string{"a"})
		at, again := f.untilNot(holdsOf(long, "a")[0])
		equal(f, "status", again.Status, store.OK)
		if at.Before(held.Due.Time()) {
			f.Fatalf("held at %v, before the due time %v", at, held.Due.Time())
		}
		equal(f, "attempt", again.Task.Attempt, 1)
		return
	}
	f.Fatal("no call came before the task was due")
}

// remove deletes a task that is pending.
func (f *fixture) remove(id string) {
	f.Helper()
	_, results, err := f.s.Remove(f.ctx, f.shard, store.Removals(id))
	f.ok("remove", err)
	f.statuses("remove", results, store.OK)
}

func aheadReleasedLater(f *fixture) {
	h, _ := f.holdAhead("a", asIs)
	stamp, result := f.release(h, long)
	f.about("due time told", result.Due, stamp.Now.Add(long))
	equal(f, "due time", f.get("a").Due, result.Due)
}

func aheadEdits(f *fixture) {
	h, held := f.holdAhead("a", asIs)
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.WrongState)
	_, edited, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: held.Due.Add(long)}})
	f.ok("edit", err)
	f.statuses("edit", edited, store.WrongState)
	equal(f, "token", f.get("a").Token, h.Token)
	equal(f, "due time", f.get("a").Due, held.Due)
}

func aheadEditsInTime(f *fixture) {
	f.add(tasks(f.now().Add(soon), "later", "gone")...)
	_, edited, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "later", Due: f.now().Add(long)}})
	f.ok("edit", err)
	f.statuses("edit", edited, store.OK)
	f.remove("gone")
	f.tryHold([]store.Hold{aheadOf("later"), aheadOf("gone")}, store.NotDue, store.NotFound)
}

func aheadCancelled(f *fixture) {
	h, _ := f.holdAhead("a", asIs)
	_, results, err := f.s.Cancel(f.ctx, f.shard, []string{"a"})
	f.ok("cancel", err)
	f.statuses("cancel", results, store.OK)
	equal(f, "token", results[0].Token, h.Token)
	_, result := f.release(h, 0)
	equal(f, "due time told", result.Due, 0)
	equal(f, "reason", f.get("a").Reason, store.ReasonCancelled)
	equal(f, "attempt", f.get("a").Attempt, 0)
}

// aheadExpires: at its due time nobody would get the task, so nobody gets it before.
func aheadExpires(f *fixture) {
	t := task("a", f.now().Add(soon))
	t.Expires = t.Due
	f.add(t)
	at, got := f.untilNot(aheadOf("a"))
	equal(f, "status", got.Status, store.Expired)
	f.notBefore("end", store.Millis(at.UnixMilli()), t.Expires.Time())
	_, got = f.holdAhead("b", func(t *store.Task, _ *store.Hold) { t.Expires = t.Due + 1 })
	equal(f, "deadline of a task that expires once held", got.Deadline, got.Due.Add(long))
}

func aheadOrdered(f *fixture) {
	t := task("a", f.now().Add(soon))
	t.Traits = &store.Traits{OrderingKey: "k"}
	f.add(t)
	at, got := f.untilNot(aheadOf("a"))
	equal(f, "status", got.Status, store.OK)
	f.notBefore("hold", store.Millis(at.UnixMilli()), t.Due.Time())
}

func aheadBounds(f *fixture) {
	for _, bound := range []func(*store.Hold, store.Millis){
		func(h *store.Hold, m store.Millis) { h.Before = m },
		func(h *store.Hold, m store.Millis) { h.Until = m },
	} {
		t, h := task("a", f.now().Add(soon)), aheadOf("a")
		bound(&h, t.Due)
		f.add(t)
		at, got := f.untilNot(h)
		f.notBefore("answer", store.Millis(at.UnixMilli()), t.Due.Time())
		if got.Status == store.OK {
			f.ack(0, store.OK, store.Ack{ID: "a", Token: h.Token})
		} else {
			equal(f, "status", got.Status, store.Late)
			f.remove("a")
		}
	}
	_, got := f.holdAhead("b", func(t *store.Task, h *store.Hold) { h.Before, h.Until = t.Due+1, t.Due.Add(long/2) })
	equal(f, "deadline under a bound", got.Deadline, got.Due.Add(long/2))
	equal(f, "stored deadline", f.get("b").Deadline, got.Deadline)
}

func aheadNew(f *fixture) {
	t, h := task("a", f.now().Add(long)), aheadOf("")
	h.Ahead = 2 * long
	_, results := f.holdNew([]*store.Task{t, task("b", f.now())}, []store.Hold{h, aheadOf("")})
	f.statuses("hold new", results, store.Added, store.Held)
	f.states(store.StateScheduled, "a")
}

func aheadRecovered(f *fixture) {
	h, held := f.holdAhead("a", func(_ *store.Task, h *store.Hold) { h.Visibility = short })
	equal(f, "deadline", held.Deadline, held.Due.Add(short))
	nack := []store.Nack{{ID: "a", Token: h.Token}}
	for {
		stamp, results, err := f.s.Recover(f.ctx, f.shard, f.fence, nack)
		f.ok("recover", err)
		result := one(f, results)
		if result.Status == store.OK {
			f.notBefore("recovery", store.Millis(stamp.Now.UnixMilli()), held.Deadline.Time())
			f.about("due time told", result.Due, stamp.Now)
			equal(f, "attempt", result.Attempt, 1)
			return
		}
		equal(f, "status", result.Status, store.NotDue)
		time.Sleep(time.Millisecond)
	}
}

// aheadMixed holds tasks of two due times, in lanes, among such as are not held.
func aheadMixed(f *fixture) {
	for range 20 {
		due := f.now().Add(soon)
		batch := tasks(due, "a", "b", "c", "d")
		batch[1].Due, batch[2].Due, batch[3].Due = due+1, due-1000, due.Add(long)
		for i, t := range batch {
			t.Traits = &store.Traits{Priority: i % 2}
		}
		f.add(batch...)
		holds := []store.Hold{aheadOf("a"), aheadOf("b"), aheadOf("c"), aheadOf("d"), aheadOf("e")}
		stamp, results := f.tryHold(holds, store.OK, store.OK, store.OK, store.NotDue, store.NotFound)
		f.remove("d")
		equal(f, "number of lanes", len(f.lanes()), 0)
		if stamp.Now.Before(due.Time()) {
			equal(f, "deadline", results[0].Deadline, due.Add(long))
			equal(f, "deadline a millisecond later", results[1].Deadline, (due + 1).Add(long))
			f.about("deadline of what is due", results[2].Deadline, stamp.Now.Add(long))
			for i, id := range []string{"a", "b", "c"} {
				equal(f, "stored deadline of "+id, f.get(id).Deadline, results[i].Deadline)
				f.ack(0, store.OK, store.Ack{ID: id, Token: holds[i].Token})
			}
			return
		}
		for i, id := range []string{"a", "b", "c"} {
			f.ack(0, store.OK, store.Ack{ID: id, Token: holds[i].Token})
		}
	}
	f.Fatal("no call came before the tasks were due")
}

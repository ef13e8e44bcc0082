package storetest

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

func holdCases() []entry {
	return []entry{
		{"Hold/TakesWhatIsDue", holdDue},
		{"Hold/NotDue", holdNotDue},
		{"Hold/DueNow", holdDueNow},
		{"Hold/WrongState", holdWrongState},
		{"Hold/SameTokenSameHold", holdAgain},
		{"Hold/SameIDTwiceInOneBatch", holdTwiceInBatch},
		{"Hold/TheTasksOwnVisibilityFirst", holdVisibility},
		{"Hold/ExpiredTaskIsDeadLettered", holdExpired},
		{"Hold/ExpiryCountsInEveryPendingState", holdExpiredPending},
		{"Hold/RefusedWithoutTheFence", holdFenced},
		{"Hold/StopsWhenBodiesFillTheAnswer", holdBodies},
		{"Get/StopsWhenBodiesFillTheAnswer", getBodies},
		{"List/PagesEndWhenBodiesFillTheAnswer", listBodies},
		{"Reindex/PagesEndWhenBodiesFillTheAnswer", reindexBodies},
		{"HoldNew/HoldsWhatIsDue", holdNewDue},
		{"HoldNew/AddsWhatIsNotDue", holdNewNotDue},
		{"HoldNew/ExpiredTaskIsNotHeld", holdNewExpired},
		{"HoldNew/DuplicateTellsItsHold", holdNewDuplicate},
		{"HoldNew/ReplacesWhatIsOver", holdNewReplaces},
		{"HoldNew/SameIDTwiceInOneBatch", holdNewTwice},
		{"HoldNew/RefusedWithoutTheFence", holdNewFenced},
		{"HoldNew/BigBatch", holdNewBig},
	}
}

// tryHold asks for tasks and checks the statuses.
func (f *fixture) tryHold(holds []store.Hold, want ...store.Status) (store.Stamp, []store.HoldResult) {
	f.Helper()
	stamp, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
	f.ok("hold", err)
	f.statuses("hold", results, want...)
	return stamp, results
}

func holdDue(f *fixture) {
	f.ready("a", "b", "c")
	due := f.get("b").Due
	holds := holdsOf(long, "b", "a")
	holds[0].Worker = "worker-2"
	stamp, results := f.tryHold(holds, store.OK, store.OK)

	got := results[0]
	equal(f, "id", got.Task.ID, "b")
	equal(f, "payload", string(got.Task.Payload), "payload of b")
	equal(f, "attempt", got.Task.Attempt, 1)
	equal(f, "due time of the task", got.Task.Due, due)
	equal(f, "due time", got.Due, due)
	f.about("deadline", got.Deadline, stamp.Now.Add(long))

	snapshot := f.get("b")
	equal(f, "state", snapshot.State, store.StateRunning)
	equal(f, "token", snapshot.Token, holds[0].Token)
	equal(f, "worker", snapshot.Worker, "worker-2")
	equal(f, "deadline", snapshot.Deadline, got.Deadline)
	equal(f, "attempt", snapshot.Attempt, 1)
	equal(f, "due time of the running task", snapshot.Due, due)
	equal(f, "payload", string(snapshot.Payload), "payload of b")
	same(f, "pending tasks", f.window(), []string{"c"})
}

func holdNotDue(f *fixture) {
	f.scheduled("later")
	due := f.get("later").Due
	_, results := f.tryHold(holdsOf(long, "later"), store.NotDue)
	equal(f, "due time", results[0].Due, due)
	f.states(store.StateScheduled, "later")
	equal(f, "attempt", f.get("later").Attempt, 0)
}

// holdDueNow asks for a task over and over while it becomes due: never early,
// and taken as soon as the clock shows its time.
func holdDueNow(f *fixture) { f.neverEarlier(0, 0) }

func holdWrongState(f *fixture) {
	token := f.held("running")
	f.done("done")
	f.dead("dead")
	f.expired("expired")
	f.tryHold(holdsOf(long, "running", "done", "dead", "expired", "absent"),
		store.WrongState, store.WrongState, store.WrongState, store.WrongState, store.NotFound)
	equal(f, "token of the running task", f.get("running").Token, token)
	equal(f, "attempt of the running task", f.get("running").Attempt, 1)
	f.states(store.StateDone, "done")
	f.states(store.StateDead, "dead")
	f.states(store.StateUnknown, "absent")
}

func holdAgain(f *fixture) {
	f.ready("a")
	hold := holdsOf(long, "a")
	_, first := f.tryHold(hold, store.OK)
	waitUntil(f, f.s, f.now()+2) // a new hold would end later
	hold[0].Visibility = 2 * long
	_, again := f.tryHold(hold, store.OK)
	equal(f, "deadline of the same hold", again[0].Deadline, first[0].Deadline)
	equal(f, "attempt of the same hold", again[0].Task.Attempt, 1)
	equal(f, "due time of the same hold", again[0].Due, first[0].Due)
	equal(f, "payload of the same hold", string(again[0].Task.Payload), "payload of a")
	equal(f, "stored attempt", f.get("a").Attempt, 1)
}

func holdTwiceInBatch(f *fixture) {
	f.ready("a", "b")
	holds := holdsOf(long, "a", "a", "b")
	holds = append(holds, holds[2]) // the same token
	_, results := f.tryHold(holds, store.OK, store.WrongState, store.OK, store.OK)
	equal(f, "token", f.get("a").Token, holds[0].Token)
	equal(f, "deadline of the repeated hold", results[3].Deadline, results[2].Deadline)
	equal(f, "attempt", f.get("b").Attempt, 1)
	equal(f, "number of running tasks", f.stats().Running, 2)
}

func holdVisibility(f *fixture) {
	own := task("own", f.now()-1000)
	own.Visibility = 2 * long
	f.add(own, task("given", f.now()-1000))
	stamp, results := f.tryHold(holdsOf(long, "own", "given"), store.OK, store.OK)
	f.about("deadline by the task's visibility timeout", results[0].Deadline, stamp.Now.Add(2*long))
	f.about("deadline by the hold's visibility timeout", results[1].Deadline, stamp.Now.Add(long))
}

func holdExpired(f *fixture) {
	now := f.now()
	past, future := task("past", now-1000), task("future", now-1000)
	past.Expires, future.Expires = now-1, now.Add(long)
	f.add(past, future)
	seq := f.seq()
	stamp, _ := f.tryHold(holdsOf(long, "past", "future"), store.Expired, store.OK)
	equal(f, "seq", stamp.Seq, seq)
	got := f.get("past")
	equal(f, "state", got.State, store.StateExpired)
	equal(f, "reason", got.Reason, store.ReasonExpired)
	equal(f, "attempt", got.Attempt, 0)
	equal(f, "payload", string(got.Payload), "payload of past")
	f.about("finished", got.Finished, stamp.Now)
	equal(f, "number of dead tasks", f.stats().Dead, 1)
	equal(f, "expiry of the running task", f.get("future").Expires, now.Add(long))

	lapsed, fresh := task("lapsed", now-1000), task("fresh", now-1000)
	lapsed.Expires = now - 1
	f.add(lapsed, fresh)
	late := holdsOf(long, "lapsed", "fresh") // which nobody gets
	late[0].Before, late[1].Before = 1, 1
	f.tryHold(late, store.Expired, store.Late)
	f.states(store.StateExpired, "lapsed")
	f.states(store.StateReady, "fresh")
}

// holdExpiredPending: neither an attempt nor a due time to come saves a task
// from its expiry.
func holdExpiredPending(f *fixture) {
	now := f.now()
	retrying, scheduled := task("retrying", now-1000), task("scheduled", now.Add(long))
	retrying.Expires, scheduled.Expires = now.Add(40*short), now-1 // the first is held before that, however busy the machine is
	f.add(retrying, scheduled)
	result := f.nack(store.Nack{ID: "retrying", Token: f.hold("retrying")[0], Error: "no luck"})
	waitUntil(f, f.s, max(retrying.Expires, result.Due))
	f.tryHold(holdsOf(long, "retrying", "scheduled"), store.Expired, store.Expired)
	f.states(store.StateExpired, "retrying", "scheduled")
	equal(f, "attempt", f.get("retrying").Attempt, 1)
	equal(f, "last error", f.get("retrying").LastError, "no luck")
}

// wrongFences claims the shard again and returns fences that are not the current one of the case's shard.
func (f *fixture) wrongFences() map[string]store.Fence {
	old := f.fence
	f.fence = f.claim(f.shard, f.session)
	return map[string]store.Fence{
		"of an earlier claim":     old,
		"without a claim":         {},
		"of another nonce":        {Epoch: f.fence.Epoch, Nonce: store.NewToken()},
		"of the nonce before":     {Epoch: f.fence.Epoch, Nonce: old.Nonce},
		"without a nonce":         {Epoch: f.fence.Epoch},
		"of the epoch before":     {Epoch: f.fence.Epoch - 1, Nonce: f.fence.Nonce},
		"of an epoch yet to come": {Epoch: f.fence.Epoch + 1, Nonce: f.fence.Nonce},
	}
}

func holdFenced(f *fixture) {
	f.ready("a")
	for name, fence := range f.wrongFences() {
		_, _, err := f.s.Hold(f.ctx, f.shard, fence, holdsOf(long, "a"))
		f.refused("hold with a fence "+name, err, store.ErrFenced)
	}
	f.states(store.StateReady, "a")
	f.hold("a")
}

// holdNew calls HoldNew with the case's fence.
func (f *fixture) holdNew(batch []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult) {
	f.Helper()
	stamp, results, err := f.s.HoldNew(f.ctx, f.shard, f.fence, batch, holds)
	f.ok("hold new", err)
	return stamp, results
}

func holdNewDue(f *fixture) {
	due := f.now()
	batch := tasks(due, "a", "b")
	batch[1].Visibility = 2 * long
	holds := holdsOf(long, "", "") // the ids are the tasks'
	stamp, results := f.holdNew(batch, holds)
	f.statuses("hold new", results, store.Held, store.Held)
	for i, visibility := range []time.Duration{long, 2 * long} {
		equal(f, "due time", results[i].Due, due)
		equal(f, "attempt", results[i].Attempt, 1)
		f.about("deadline", results[i].Deadline, stamp.Now.Add(visibility))
		got := f.get(batch[i].ID)
		equal(f, "state", got.State, store.StateRunning)
		equal(f, "token", got.Token, holds[i].Token)
		equal(f, "attempt", got.Attempt, 1)
		equal(f, "worker", got.Worker, "worker-1")
		equal(f, "deadline", got.Deadline, results[i].Deadline)
		equal(f, "payload", string(got.Payload), string(batch[i].Payload))
		f.ack(0, store.OK, store.Ack{ID: batch[i].ID, Token: holds[i].Token})
	}
	equal(f, "number of pending tasks", f.stats().Pending, 0)
}

func holdNewNotDue(f *fixture) {
	now := f.now()
	batch := []*store.Task{task("later", now.Add(long)), task("due", now)}
	stamp, results := f.holdNew(batch, holdsOf(long, "later", "due"))
	f.statuses("hold new", results, store.Added, store.Held)
	equal(f, "due time", results[0].Due, now.Add(long))
	equal(f, "seq", stamp.Seq, 1)
	got := f.get("later")
	equal(f, "state", got.State, store.StateScheduled)
	equal(f, "attempt", got.Attempt, 0)
	same(f, "pending tasks", f.window(), []string{"later"})
}

// holdNewExpired: the task is left pending for a Hold to dead-letter.
func holdNewExpired(f *fixture) {
	t := task("a", f.now()-1000)
	t.Expires = f.now() - 500
	stamp, results := f.holdNew([]*store.Task{t}, holdsOf(long, "a"))
	f.statuses("hold new", results, store.Added)
	equal(f, "seq", stamp.Seq, 1)
	f.states(store.StateReady, "a")
	f.tryHold(holdsOf(long, "a"), store.Expired)
}

// holdNewDuplicate repeats a call whose answer was lost: the token tells the
// caller that the hold is its own.
func holdNewDuplicate(f *fixture) {
	now := f.now()
	f.scheduled("pending")
	batch, holds := tasks(now, "a", "pending"), holdsOf(long, "a", "pending")
	_, first := f.holdNew(batch[:1], holds[:1])
	f.statuses("hold new", first, store.Held)
	_, results := f.holdNew(batch, holds)
	f.statuses("hold new again", results, store.Duplicate, store.Duplicate)
	equal(f, "state", results[0].State, store.StateRunning)
	equal(f, "token", results[0].Token, holds[0].Token)
	equal(f, "state", results[1].State, store.StateScheduled)
	equal(f, "attempt", f.get("a").Attempt, 1)
	f.states(store.StateScheduled, "pending")

	other := task("a", now)
	other.Fingerprint = 8
	_, results = f.holdNew([]*store.Task{other}, holdsOf(long, "a"))
	f.statuses("hold another request", results, store.Conflict)
	equal(f, "state", results[0].State, store.StateRunning)
}

func holdNewReplaces(f *fixture) {
	f.done("done")
	f.dead("dead")
	f.expired("expired")
	_, results := f.holdNew(tasks(f.now(), "done", "dead", "expired"), holdsOf(long, "done", "dead", "expired"))
	f.statuses("hold new", results, store.Held, store.Held, store.Held)
	for i, want := range []store.State{store.StateDone, store.StateDead, store.StateExpired} {
		equal(f, "replaced state", results[i].Replaced, want)
		equal(f, "attempt", results[i].Attempt, 1)
	}
	stats := f.stats()
	equal(f, "number of running tasks", stats.Running, 3)
	equal(f, "number of done and dead tasks", stats.Done+stats.Dead, 0)
}

func holdNewTwice(f *fixture) {
	now := f.now()
	holds := holdsOf(long, "a", "a", "later", "later")
	batch := append(tasks(now, "a", "a"), tasks(now.Add(long), "later", "later")...)
	_, results := f.holdNew(batch, holds)
	f.statuses("hold new", results, store.Held, store.Duplicate, store.Added, store.Duplicate)
	equal(f, "token", results[1].Token, holds[0].Token)
	equal(f, "state", results[3].State, store.StateScheduled)
	equal(f, "attempt", f.get("a").Attempt, 1)
	stats := f.stats()
	equal(f, "number of running tasks", stats.Running, 1)
	equal(f, "number of pending tasks", stats.Pending, 1)
}

func holdNewFenced(f *fixture) {
	for name, fence := range f.wrongFences() {
		_, _, err := f.s.HoldNew(f.ctx, f.shard, fence, tasks(f.now(), "a"), holdsOf(long, "a"))
		f.refused("hold new with a fence "+name, err, store.ErrFenced)
	}
	f.states(store.StateUnknown, "a")
}

func holdNewBig(f *fixture) {
	ids := numbered(3000)
	_, results := f.holdNew(tasks(f.now(), ids...), holdsOf(long, ids...))
	f.statuses("hold new", results, repeat(store.Held, len(ids))...)
	equal(f, "number of running tasks", f.stats().Running, 3000)
	f.states(store.StateRunning, ids...)
}

package storetest

import "github.com/ddq-io/ddq/store"

func recoverCases() []entry {
	return []entry{
		{"Recover/NotDue", recoverNotDue},
		{"Recover/PendingAgainAfterTheDeadline", recoverRetry},
		{"Recover/LastAttemptIsDeadLettered", recoverDead},
		{"Recover/SameIDTwiceInOneBatch", recoverTwice},
		{"Recover/LooksAtTheExtendedDeadline", recoverExtended},
		{"Recover/RefusedWithoutTheHold", recoverRefused},
		{"Recover/RefusedWithoutTheFence", recoverFenced},
	}
}

// recover recovers one hold.
func (f *fixture) recover(n store.Nack) (store.Stamp, store.NackResult) {
	f.Helper()
	stamp, results, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{n})
	f.ok("recover", err)
	return stamp, one(f, results)
}

// overdue returns the token of a task's hold that is past its deadline.
func (f *fixture) overdue(id string) store.Token {
	f.Helper()
	f.ready(id)
	token := f.holdFor(short, id)[0]
	waitUntil(f, f.s, f.get(id).Deadline+1)
	return token
}

func recoverNotDue(f *fixture) {
	token := f.held("a")
	seq := f.seq()
	stamp, result := f.recover(store.Nack{ID: "a", Token: token, Error: "hold expired"})
	equal(f, "status", result.Status, store.NotDue)
	equal(f, "deadline", result.Deadline, f.get("a").Deadline)
	equal(f, "seq", stamp.Seq, seq)
	f.states(store.StateRunning, "a")
	equal(f, "last error", f.get("a").LastError, "")
}

func recoverRetry(f *fixture) {
	token := f.overdue("a")
	seq := f.seq()
	stamp, result := f.recover(store.Nack{ID: "a", Token: token, Delay: long, Error: "hold expired"})
	equal(f, "status", result.Status, store.OK)
	equal(f, "attempt", result.Attempt, 1)
	f.about("due time", result.Due, stamp.Now.Add(long))
	equal(f, "seq", stamp.Seq, seq+1)
	got := f.get("a")
	equal(f, "state", got.State, store.StateRetrying)
	equal(f, "last error", got.LastError, "hold expired")
	equal(f, "due time", got.Due, result.Due)
	f.ack(long, store.WrongState, store.Ack{ID: "a", Token: token}) // the worker wakes up too late

	_, again := f.recover(store.Nack{ID: "a", Token: token})
	equal(f, "status of the same again", again.Status, store.WrongState)
	equal(f, "state told", again.State, store.StateRetrying)
}

func recoverDead(f *fixture) {
	token := f.overdue("a")
	seq := f.seq()
	stamp, result := f.recover(store.Nack{ID: "a", Token: token, Reason: store.ReasonHoldExpired, Error: "hold expired"})
	equal(f, "status", result.Status, store.OK)
	equal(f, "seq", stamp.Seq, seq)
	got := f.get("a")
	equal(f, "state", got.State, store.StateDead)
	equal(f, "reason", got.Reason, store.ReasonHoldExpired)
	equal(f, "last error", got.LastError, "hold expired")
	equal(f, "attempt", got.Attempt, 1)
}

func recoverTwice(f *fixture) {
	nack := store.Nack{ID: "a", Token: f.overdue("a"), Delay: long}
	_, got, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{nack, nack})
	f.ok("recover", err)
	f.statuses("recover", got, store.OK, store.WrongState)
	equal(f, "state told", got[1].State, store.StateRetrying)
	equal(f, "number of pending tasks", f.stats().Pending, 1)
	equal(f, "number of running tasks", f.stats().Running, 0)
}

func recoverExtended(f *fixture) {
	token := f.overdue("a")
	_, extended, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: long}})
	f.ok("extend", err)
	f.statuses("extend a hold that nobody recovered yet", extended, store.OK)
	_, result := f.recover(store.Nack{ID: "a", Token: token})
	equal(f, "status", result.Status, store.NotDue)
	equal(f, "deadline", result.Deadline, extended[0].Deadline)

	_, extended, err = f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: short}})
	f.ok("shorten", err)
	waitUntil(f, f.s, one(f, extended).Deadline+1)
	_, result = f.recover(store.Nack{ID: "a", Token: token})
	equal(f, "status", result.Status, store.OK)
	_, late, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: long}})
	f.ok("extend", err)
	f.statuses("extend a recovered hold", late, store.WrongState)
}

func recoverRefused(f *fixture) {
	f.ready("overdue")
	f.holdFor(short, "overdue")
	deadline := f.get("overdue").Deadline
	f.scheduled("scheduled")
	f.done("done")
	f.dead("dead")
	waitUntil(f, f.s, deadline+1)
	ids := []string{"overdue", "scheduled", "done", "dead", "absent"}
	nacks := make([]store.Nack, len(ids))
	for i, id := range ids {
		nacks[i] = store.Nack{ID: id, Token: store.NewToken()}
	}
	_, got, err := f.s.Recover(f.ctx, f.shard, f.fence, nacks)
	f.ok("recover", err)
	f.statuses("recover", got, store.Stale, store.WrongState, store.WrongState, store.WrongState, store.NotFound)
	equal(f, "state told", got[1].State, store.StateScheduled)
	equal(f, "state told", got[2].State, store.StateDone)
	equal(f, "state told", got[3].State, store.StateDead)
	f.states(store.StateRunning, "overdue")
}

func recoverFenced(f *fixture) {
	token := f.overdue("a")
	for name, fence := range f.wrongFences() {
		_, _, err := f.s.Recover(f.ctx, f.shard, fence, []store.Nack{{ID: "a", Token: token}})
		f.refused("recover with a fence "+name, err, store.ErrFenced)
	}
	f.states(store.StateRunning, "a")
	_, result := f.recover(store.Nack{ID: "a", Token: token}) // a hold outlives the claim it was made under
	equal(f, "status", result.Status, store.OK)
}

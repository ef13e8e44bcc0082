package storetest

import (
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

func settleCases() []entry {
	return []entry{
		{"Ack/KeepsForTheRetention", ackKeeps},
		{"Ack/WithoutRetentionDeletes", ackDeletes},
		{"Ack/RefusedWithoutTheHold", ackRefused},
		{"Ack/CountsUntilRecovered", ackLate},
		{"Ack/SameIDTwiceInOneBatch", ackTwice},
		{"Trim/AfterTheRetention", trim},
		{"Trim/AtMostLimit", trimLimit},
		{"Trim/LeavesWhatCameAfter", trimReplaced},
		{"Nack/PendingAgainAfterTheDelay", nackRetry},
		{"Nack/NeverBeforeTheDelay", nackNotEarly},
		{"Nack/ReleaseTakesTheAttemptBack", nackRelease},
		{"Nack/ReasonDeadLetters", nackDead},
		{"Nack/KeepsTheLastError", nackError},
		{"Nack/RefusedWithoutTheHold", nackRefused},
		{"Nack/SameIDTwiceInOneBatch", nackTwice},
		{"Extend/MovesTheDeadline", extend},
		{"Extend/LastsAsLongAsAsked", extendNotShort},
		{"Extend/SameIDTwiceInOneBatch", extendTwice},
		{"Extend/RefusedWithoutTheHold", extendRefused},
	}
}

func ackKeeps(f *fixture) {
	token := f.held("a")
	stamp, results, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: "a", Token: token}}, long)
	f.ok("ack", err)
	f.statuses("ack", results, store.OK)

	got := f.get("a")
	equal(f, "state", got.State, store.StateDone)
	equal(f, "token of the hold that ended it", got.Token, token)
	equal(f, "attempt", got.Attempt, 1)
	equal(f, "payload", string(got.Payload), "payload of a")
	f.about("finished", got.Finished, stamp.Now)
	stats := f.stats()
	equal(f, "number of running tasks", stats.Running, 0)
	equal(f, "number of done tasks", stats.Done, 1)

	f.ack(long, store.Already, store.Ack{ID: "a", Token: token})
	f.ack(0, store.Already, store.Ack{ID: "a", Token: token})
	f.ack(long, store.WrongState, store.Ack{ID: "a", Token: store.NewToken()})
	f.states(store.StateDone, "a")
}

func ackDeletes(f *fixture) {
	token := f.held("a")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: token})
	f.states(store.StateUnknown, "a")
	f.ack(0, store.NotFound, store.Ack{ID: "a", Token: token})
	stats := f.stats()
	equal(f, "number of tasks left", stats.Pending+stats.Running+stats.Done+stats.Dead, 0)
}

// unsettleable makes tasks that no token of the case settles, each with the
// status and the state of a refusal.
func (f *fixture) unsettleable() (ids []string, want []store.Status, states []store.State) {
	f.scheduled("scheduled")
	f.ready("ready")
	f.held("running")
	f.done("done")
	f.dead("dead")
	f.expired("expired")
	return []string{"scheduled", "ready", "running", "done", "dead", "expired", "absent"},
		[]store.Status{store.WrongState, store.WrongState, store.Stale, store.WrongState, store.WrongState, store.WrongState, store.NotFound},
		[]store.State{store.StateScheduled, store.StateReady, store.StateRunning, store.StateDone, store.StateDead, store.StateExpired, store.StateUnknown}
}

// unchanged checks that a refused call changed nothing.
func (f *fixture) unchanged(ids []string, states []store.State) {
	f.Helper()
	for i, id := range ids {
		f.states(states[i], id)
	}
}

func ackRefused(f *fixture) {
	ids, want, states := f.unsettleable()
	acks := make([]store.Ack, len(ids))
	for i, id := range ids {
		acks[i] = store.Ack{ID: id, Token: store.NewToken()}
	}
	_, got, err := f.s.Ack(f.ctx, f.shard, acks, long)
	f.ok("ack", err)
	f.statuses("ack", got, want...)
	f.unchanged(ids, states)

	old := f.held("again")
	f.nack(store.Nack{ID: "again", Token: old})
	f.ack(long, store.WrongState, store.Ack{ID: "again", Token: old})
	waitUntil(f, f.s, f.get("again").Due)
	f.hold("again")
	f.ack(long, store.Stale, store.Ack{ID: "again", Token: old})
	f.ack(long, store.Stale, store.Ack{ID: "again"}) // no token at all
	f.states(store.StateRunning, "again")
}

func ackLate(f *fixture) {
	f.ready("a")
	token := f.holdFor(short, "a")[0]
	waitUntil(f, f.s, f.get("a").Deadline+1)
	f.ack(long, store.OK, store.Ack{ID: "a", Token: token})
	f.states(store.StateDone, "a")
}

func ackTwice(f *fixture) {
	kept, gone := f.held("kept"), f.held("gone")
	_, got, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: "kept", Token: kept}, {ID: "kept", Token: kept}}, long)
	f.ok("ack", err)
	f.statuses("ack", got, store.OK, store.Already)
	_, got, err = f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: "gone", Token: gone}, {ID: "gone", Token: gone}}, 0)
	f.ok("ack", err)
	f.statuses("ack", got, store.OK, store.NotFound)
	stats := f.stats()
	equal(f, "number of done tasks", stats.Done, 1)
	equal(f, "number of running tasks", stats.Running, 0)
}

// trim trims and checks how many tasks went.
func (f *fixture) trim(limit, want int) {
	f.Helper()
	n, err := f.s.Trim(f.ctx, f.shard, limit)
	f.ok("trim", err)
	equal(f, "number of trimmed tasks", n, want)
}

func trim(f *fixture) {
	f.trim(100, 0)
	kept, gone := f.held("kept"), f.held("gone")
	f.ack(long, store.OK, store.Ack{ID: "kept", Token: kept})
	f.ack(short, store.OK, store.Ack{ID: "gone", Token: gone})
	waitUntil(f, f.s, f.now().Add(short)+2)
	f.trim(100, 1)
	f.trim(100, 0)
	f.states(store.StateUnknown, "gone")
	f.states(store.StateDone, "kept")
	f.ack(long, store.NotFound, store.Ack{ID: "gone", Token: gone})
	f.ack(long, store.Already, store.Ack{ID: "kept", Token: kept})
	equal(f, "number of done tasks", f.stats().Done, 1)
}

func trimLimit(f *fixture) {
	ids := numbered(25)
	f.ready(ids...)
	for i, token := range f.hold(ids...) {
		f.ack(time.Millisecond, store.OK, store.Ack{ID: ids[i], Token: token})
	}
	waitUntil(f, f.s, f.now()+3)
	f.trim(10, 10)
	equal(f, "number of done tasks", f.stats().Done, 15)
	f.trim(10, 10)
	f.trim(10, 5)
	f.trim(10, 0)
	f.states(store.StateUnknown, ids...)
}

// trimReplaced: the retention of a done task says nothing about a later task of its id.
func trimReplaced(f *fixture) {
	brief := func(id string) {
		f.ack(time.Millisecond, store.OK, store.Ack{ID: id, Token: f.held(id)})
	}
	brief("pending")
	brief("running")
	brief("dead")
	brief("done")
	f.scheduled("pending")
	f.held("running")
	f.dead("dead")
	f.done("done")
	waitUntil(f, f.s, f.now()+3)
	f.trim(100, 0)
	f.states(store.StateScheduled, "pending")
	f.states(store.StateRunning, "running")
	f.states(store.StateDead, "dead")
	f.states(store.StateDone, "done")
}

func nackRetry(f *fixture) {
	token := f.held("a")
	stamp, results, err := f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: "a", Token: token, Delay: long, Error: "no luck"}})
	f.ok("nack", err)
	f.statuses("nack", results, store.OK)
	equal(f, "attempt", results[0].Attempt, 1)
	f.about("due time", results[0].Due, stamp.Now.Add(long))

	got := f.get("a")
	equal(f, "state", got.State, store.StateRetrying)
	equal(f, "due time", got.Due, results[0].Due)
	equal(f, "attempt", got.Attempt, 1)
	equal(f, "last error", got.LastError, "no luck")
	equal(f, "token", got.Token, store.Token{})
	equal(f, "worker", got.Worker, "")
	equal(f, "deadline", got.Deadline, 0)
	equal(f, "payload", string(got.Payload), "payload of a")
	equal(f, "number of running tasks", f.stats().Running, 0)

	result := f.nack(store.Nack{ID: "a", Token: token, Delay: long}) // repeated: its outcome was unknown
	equal(f, "status of the same nack again", result.Status, store.WrongState)
	equal(f, "state told", result.State, store.StateRetrying)

	_, _, err = f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: 1}})
	f.ok("edit", err)
	_, held := f.tryHold(holdsOf(long, "a"), store.OK)
	equal(f, "attempt", held[0].Task.Attempt, 2)
	equal(f, "last error", held[0].Task.LastError, "no luck")
}

// A delay counts from the microsecond of the call: rounding its end down to the
// millisecond would cut it short.
func nackNotEarly(f *fixture) {
	const delay = 1500 * time.Microsecond
	for _, id := range numbered(5) {
		token := f.held(id)
		stamp, results, err := f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: id, Token: token, Delay: delay}})
		f.ok("nack", err)
		f.notBefore("due time", one(f, results).Due, stamp.Now.Add(delay))
	}
}

func nackRelease(f *fixture) {
	token := f.held("a")
	result := f.nack(store.Nack{ID: "a", Token: token, Uncount: true})
	equal(f, "status", result.Status, store.OK)
	equal(f, "attempt", result.Attempt, 0)
	waitUntil(f, f.s, result.Due)
	got := f.get("a")
	equal(f, "state", got.State, store.StateReady)
	equal(f, "attempt", got.Attempt, 0)

	token = f.hold("a")[0]
	equal(f, "attempt after another hold", f.get("a").Attempt, 1)
	f.nack(store.Nack{ID: "a", Token: token, Uncount: true, Delay: long})
	f.states(store.StateScheduled, "a") // no attempt failed
}

func nackDead(f *fixture) {
	for id, reason := range map[string]store.Reason{
		"retries": store.ReasonMaxRetries, "permanent": store.ReasonPermanent,
		"hold": store.ReasonHoldExpired, "corrupt": store.ReasonCorrupt,
	} {
		token := f.held(id)
		seq := f.seq()
		stamp, results, err := f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: id, Token: token, Reason: reason, Delay: long, Error: "broken " + id}})
		f.ok("nack", err)
		f.statuses("nack", results, store.OK)
		equal(f, "attempt", results[0].Attempt, 1)
		equal(f, "seq", stamp.Seq, seq)
		got := f.get(id)
		equal(f, "state", got.State, store.StateDead)
		equal(f, "reason", got.Reason, reason)
		equal(f, "last error", got.LastError, "broken "+id)
		equal(f, "attempt", got.Attempt, 1)
		equal(f, "payload", string(got.Payload), "payload of "+id)
		f.about("finished", got.Finished, stamp.Now)
		again := f.nack(store.Nack{ID: id, Token: token, Reason: reason})
		equal(f, "status of the same nack again", again.Status, store.WrongState)
		equal(f, "state told", again.State, store.StateDead)
	}
	stats := f.stats()
	equal(f, "number of dead tasks", stats.Dead, 4)
	equal(f, "number of pending and running tasks", stats.Pending+stats.Running, 0)
}

func nackError(f *fixture) {
	token := f.held("a")
	for _, step := range []struct{ given, want string }{
		{"first", "first"},
		{"", "first"},
		{"second: ünïcode ✓ \x00 and\nlines", "second: ünïcode ✓ \x00 and\nlines"},
		{strings.Repeat("long ", 800), strings.Repeat("long ", 800)},
		{"", strings.Repeat("long ", 800)},
		{"short", "short"},
	} {
		result := f.nack(store.Nack{ID: "a", Token: token, Error: step.given})
		equal(f, "status", result.Status, store.OK)
		equal(f, "last error", f.get("a").LastError, step.want)
		waitUntil(f, f.s, result.Due)
		token = f.hold("a")[0]
		equal(f, "last error of the running task", f.get("a").LastError, step.want)
	}
	f.ack(long, store.OK, store.Ack{ID: "a", Token: token})
	equal(f, "last error of the done task", f.get("a").LastError, "short")
	equal(f, "payload", string(f.get("a").Payload), "payload of a")
}

func nackRefused(f *fixture) {
	ids, want, states := f.unsettleable()
	seq := f.seq()
	nacks := make([]store.Nack, len(ids))
	for i, id := range ids {
		nacks[i] = store.Nack{ID: id, Token: store.NewToken(), Error: "refused"}
	}
	stamp, got, err := f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	f.statuses("nack", got, want...)
	for i, result := range got {
		if result.Status == store.WrongState {
			equal(f, "state told of "+ids[i], result.State, states[i])
		}
	}
	equal(f, "seq", stamp.Seq, seq)
	f.unchanged(ids, states)
	equal(f, "last error", f.get("running").LastError, "")
}

func nackTwice(f *fixture) {
	token := f.held("a")
	nack := store.Nack{ID: "a", Token: token, Delay: long}
	_, got, err := f.s.Nack(f.ctx, f.shard, []store.Nack{nack, nack})
	f.ok("nack", err)
	f.statuses("nack", got, store.OK, store.WrongState)
	stats := f.stats()
	equal(f, "number of pending tasks", stats.Pending, 1)
	equal(f, "number of running tasks", stats.Running, 0)
}

func extend(f *fixture) {
	own := task("a", f.now()-1000)
	own.Visibility = 3 * long // the call's counts, not the task's
	f.add(own)
	token := f.hold("a")[0]
	for _, visibility := range []time.Duration{2 * long, long / 2} { // either way
		stamp, results, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: visibility}})
		f.ok("extend", err)
		f.statuses("extend", results, store.OK)
		f.about("deadline", results[0].Deadline, stamp.Now.Add(visibility))
		got := f.get("a")
		equal(f, "stored deadline", got.Deadline, results[0].Deadline)
		equal(f, "state", got.State, store.StateRunning)
		equal(f, "token", got.Token, token)
		equal(f, "attempt", got.Attempt, 1)
		equal(f, "worker", got.Worker, "worker-1")
		equal(f, "deadline among the running", f.walkRunning(10)["a"].Deadline, results[0].Deadline)
	}
	f.ack(0, store.OK, store.Ack{ID: "a", Token: token})
}

func extendNotShort(f *fixture) {
	for _, id := range numbered(5) {
		f.ready(id)
		hold := holdsOf(long, id)
		stamp, held := f.tryHold(hold, store.OK)
		f.notBefore("deadline", held[0].Deadline, stamp.Now.Add(long))

		stamp, results, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: id, Token: hold[0].Token, Visibility: 2 * long}})
		f.ok("extend", err)
		f.notBefore("deadline after an extend", one(f, results).Deadline, stamp.Now.Add(2*long))
	}
}

func extendTwice(f *fixture) {
	token := f.held("a")
	stamp, got, err := f.s.Extend(f.ctx, f.shard, []store.Extend{
		{ID: "a", Token: token, Visibility: 5 * long}, {ID: "a", Token: token, Visibility: 2 * long},
	})
	f.ok("extend", err)
	f.statuses("extend", got, store.OK, store.OK)
	f.about("deadline", f.get("a").Deadline, stamp.Now.Add(2*long)) // the last word counts
}

func extendRefused(f *fixture) {
	ids, want, states := f.unsettleable()
	deadline := f.get("running").Deadline
	extends := make([]store.Extend, len(ids))
	for i, id := range ids {
		extends[i] = store.Extend{ID: id, Token: store.NewToken(), Visibility: 5 * long}
	}
	_, got, err := f.s.Extend(f.ctx, f.shard, extends)
	f.ok("extend", err)
	f.statuses("extend", got, want...)
	f.unchanged(ids, states)
	equal(f, "deadline of another's hold", f.get("running").Deadline, deadline)
}

package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ddq-io/ddq/store"
)

func historyCases() []entry {
	return []entry{
		{"Ack/KeepsTheResult", resultKept},
		{"Ack/WithoutRetentionKeepsNoResult", resultGone},
		{"Ack/AgainKeepsTheFirstResult", resultOnce},
		{"Ack/BigResultsInOneBatch", resultsBig},
		{"History/OfEveryOutcome", historyOutcomes},
		{"History/WhenItWasDueAndItsTrace", historyTraced},
		{"History/NothingWhenNotAskedFor", historySilent},
		{"History/TheLastTwenty", historyBounded},
		{"History/GoesWithTheTask", historyGone},
		{"History/StaysWhenADeadLetterIsRequeued", historyRequeued},
		{"History/OfManyTasks", historyMany},
		{"Cancel/EndsARunningTask", cancelEnds},
		{"Cancel/LosesToSuccess", cancelLate},
		{"Cancel/OutlivesTheWorker", cancelRecovered},
		{"Cancel/RefusedUnlessRunning", cancelRefused},
		{"Cancel/SameIDTwiceInOneBatch", cancelTwice},
	}
}

// past returns the history of one task.
func (f *fixture) past(id string) store.History {
	f.Helper()
	all, err := f.s.History(f.ctx, f.shard, []string{id})
	f.ok("history", err)
	return one(f, all)
}

// tookBy holds a task for a worker of a node.
func (f *fixture) tookBy(worker, node, id string) store.Token {
	f.Helper()
	hold := store.Hold{ID: id, Token: store.NewToken(), Visibility: long, Worker: worker, Node: node}
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, []store.Hold{hold})
	f.ok("hold", err)
	f.statuses("hold", results, store.OK)
	return hold.Token
}

// outcomes checks how the attempts of a task ended.
func (f *fixture) outcomes(id string, want ...store.Outcome) []store.Attempt {
	f.Helper()
	attempts := f.past(id).Attempts
	got := make([]store.Outcome, len(attempts))
	for i, a := range attempts {
		got[i] = a.Outcome
	}
	same(f, "outcomes of "+id, got, want)
	return attempts
}

func resultKept(f *fixture) {
	f.ready("a")
	token := f.tookBy("worker-7", "node-2", "a")
	running := f.get("a")
	equal(f, "node of the running task", running.Node, "node-2")
	equal(f, "worker of the running task", running.Worker, "worker-7")
	result := []byte("a result\x00\xff\x01")
	stamp, _, err := f.s.Ack(f.ctx, f.shard, []store.Ack{{ID: "a", Token: token, Result: result}}, long)
	f.ok("ack", err)
	f.states(store.StateDone, "a")
	past := f.past("a")
	equal(f, "result", string(past.Result), string(result))
	got := f.outcomes("a", store.OutcomeAcked)[0]
	equal(f, "number", got.Number, 1)
	equal(f, "worker", got.Worker, "worker-7")
	equal(f, "node", got.Node, "node-2")
	equal(f, "started", got.Started, running.Started)
	f.about("ended", got.Ended, stamp.Now)
	if got.Started > got.Ended || stamp.Now.Sub(got.Started.Time()) > long/2 {
		f.Fatalf("started %v, ended %v", got.Started.Time(), got.Ended.Time())
	}
}

func resultGone(f *fixture) {
	token := f.held("a")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: token, Result: []byte("lost")})
	f.states(store.StateUnknown, "a")
	if past := f.past("a"); !past.Empty() {
		f.Fatalf("a task that is gone has the history %+v", past)
	}
	f.ready("a")
	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	equal(f, "result of another task of the id", string(f.past("a").Result), "")
}

func resultOnce(f *fixture) {
	token := f.held("a")
	f.ack(long, store.OK, store.Ack{ID: "a", Token: token, Result: []byte("first")})
	f.ack(long, store.Already, store.Ack{ID: "a", Token: token, Result: []byte("second")})
	f.ack(long, store.WrongState, store.Ack{ID: "a", Token: store.NewToken(), Result: []byte("third")})
	equal(f, "result", string(f.past("a").Result), "first")
	f.outcomes("a", store.OutcomeAcked)
}

func resultsBig(f *fixture) {
	ids := numbered(50)
	f.ready(ids...)
	acks := make([]store.Ack, len(ids))
	for i, token := range f.hold(ids...) {
		acks[i] = store.Ack{ID: ids[i], Token: token}
		if i%3 > 0 { // some have none
			acks[i].Result = bytes.Repeat([]byte{byte(i)}, 256<<10)
		}
	}
	f.ack(long, store.OK, acks...)
	all, err := f.s.History(f.ctx, f.shard, ids)
	f.ok("history", err)
	for i, h := range all {
		if !bytes.Equal(h.Result, acks[i].Result) {
			f.Fatalf("result of %s has %d bytes, want %d", ids[i], len(h.Result), len(acks[i].Result))
		}
	}
}

// historyOutcomes: hibiken/asynq#230 asks for what became of each try of a task.
func historyOutcomes(f *fixture) {
	f.ready("a")
	f.nack(store.Nack{ID: "a", Token: f.tookBy("w1", "n1", "a"), Outcome: store.OutcomeFailed, Error: "no luck"})
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Outcome: store.OutcomeReleased, Uncount: true})
	hold := f.holdFor(short, "a")[0]
	waitUntil(f, f.s, f.get("a").Deadline+1)
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "a", Token: hold, Outcome: store.OutcomeHoldExpired, Error: "too slow"}})
	f.ok("recover", err)
	f.statuses("recover", recovered, store.OK)
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Outcome: store.OutcomeFailed, Reason: store.ReasonPermanent, Error: "hopeless"})

	got := f.outcomes("a", store.OutcomeFailed, store.OutcomeReleased, store.OutcomeHoldExpired, store.OutcomeFailed)
	var said []string
	for _, a := range got {
		said = append(said, fmt.Sprintf("%d %s", a.Number, a.Error))
	}
	same(f, "attempts", said, []string{"1 no luck", "2 ", "2 too slow", "3 hopeless"})
	equal(f, "worker of the first", got[0].Worker, "w1")
	equal(f, "node of the first", got[0].Node, "n1")
	equal(f, "worker of the second", got[1].Worker, "worker-1")
	equal(f, "last error", f.get("a").LastError, "hopeless")
}

// historyTraced: each attempt has the due time that it had, which the next one moves, and the trace
// in which its worker recorded it.
func historyTraced(f *fixture) {
	traces := []store.TraceID{{1, 2, 0, 0xff}, {}, {3, 15: 0xfe}, {5, 15: 6}}
	f.ready("a")
	var dues []store.Millis
	held := func() store.Token {
		f.Helper()
		token := f.hold("a")[0]
		dues = append(dues, f.get("a").Due)
		return token
	}
	f.nack(store.Nack{ID: "a", Token: held(), Outcome: store.OutcomeFailed, Error: "no luck", Trace: traces[0]})
	f.nack(store.Nack{ID: "a", Token: held(), Outcome: store.OutcomeReleased, Uncount: true})
	f.nack(store.Nack{ID: "a", Token: held(), Outcome: store.OutcomeFailed, Trace: traces[2]})
	f.scheduled("other")
	f.ready("b")
	f.ack(long, store.OK, store.Ack{ID: "b", Token: f.hold("b")[0], Result: []byte("b")}, store.Ack{ID: "a", Token: held(), Result: []byte("r"), Trace: traces[3]})
	got := f.outcomes("a", store.OutcomeFailed, store.OutcomeReleased, store.OutcomeFailed, store.OutcomeAcked)
	for i, a := range got {
		equal(f, fmt.Sprintf("trace of attempt %d", i), a.Trace, traces[i])
		equal(f, fmt.Sprintf("due of attempt %d", i), a.Due, dues[i])
		if a.Due == 0 || a.Due > a.Started {
			f.Errorf("attempt %d was due at %d and began at %d", i, a.Due, a.Started)
		}
	}
	equal(f, "error of the first", got[0].Error, "no luck")
	equal(f, "result", string(f.past("a").Result), "r")
	equal(f, "trace of the other", f.past("b").Attempts[0].Trace, store.TraceID{})
	equal(f, "result of the other", string(f.past("b").Result), "b")

	f.ready("c")
	ack := store.Ack{ID: "c", Token: f.hold("c")[0], Trace: traces[0]}
	if cells, ok := f.s.(store.Cells); ok {
		_, made, err := cells.Commit(f.ctx, f.shard, nil, []store.Commit{{Acks: []store.Ack{ack}, Retention: long}})
		f.ok("commit", err)
		f.statuses("commit", made, store.OK)
	} else {
		f.ack(long, store.OK, ack)
	}
	equal(f, "trace of what a commit acked", f.past("c").Attempts[0].Trace, traces[0])
}

func historySilent(f *fixture) {
	token := f.held("a")
	f.nack(store.Nack{ID: "a", Token: token, Uncount: true})
	if past := f.past("a"); !past.Empty() {
		f.Fatalf("an attempt that is not to be kept left %+v", past)
	}
	if past := f.past("absent"); !past.Empty() {
		f.Fatalf("a task that is not there left %+v", past)
	}
}

func historyBounded(f *fixture) {
	f.ready("a")
	for n := range store.MaxAttempts + 3 {
		f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Outcome: store.OutcomeFailed, Error: fmt.Sprint("failure ", n+1)})
	}
	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0], Result: []byte("at last")})
	past := f.past("a")
	equal(f, "number of attempts", len(past.Attempts), store.MaxAttempts)
	equal(f, "number of the first", past.Attempts[0].Number, 5)
	equal(f, "error of the first", past.Attempts[0].Error, "failure 5")
	equal(f, "number of the last", past.Attempts[store.MaxAttempts-1].Number, store.MaxAttempts+4)
	equal(f, "result", string(past.Result), "at last")
}

// historyGone checks that no way out leaves a history to the next task of the id.
func historyGone(f *fixture) {
	failed := func(reason store.Reason) {
		f.Helper()
		f.ready("a")
		f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Outcome: store.OutcomeFailed, Reason: reason, Error: "no luck"})
		f.outcomes("a", store.OutcomeFailed)
	}
	gone := func(how string) {
		f.Helper()
		if past := f.past("a"); !past.Empty() {
			f.Fatalf("after %s the history is %+v", how, past)
		}
	}
	failed(store.ReasonNone)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	gone("an ack without retention")

	failed(store.ReasonNone)
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	gone("a delete")

	failed(store.ReasonPermanent)
	_, dead, err := f.s.RemoveDead(f.ctx, f.shard, []string{"a"})
	f.ok("remove dead", err)
	f.statuses("remove dead", dead, store.OK)
	gone("the dead letter was deleted")

	failed(store.ReasonPermanent)
	f.scheduled("a")
	gone("the dead letter was replaced")
	_, _, err = f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)

	failed(store.ReasonNone)
	f.ack(short, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0], Result: []byte("r")})
	f.outcomes("a", store.OutcomeFailed, store.OutcomeAcked)
	waitUntil(f, f.s, f.now().Add(2*short))
	if n, err := f.s.Trim(f.ctx, f.shard, 10); n != 1 || err != nil {
		f.Fatalf("trimmed %d, %v", n, err)
	}
	gone("the retention")

	failed(store.ReasonPermanent)
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	gone("the shard was dropped")
}

func historyRequeued(f *fixture) {
	f.ready("a")
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Outcome: store.OutcomeReleased, Reason: store.ReasonPermanent})
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	got := f.outcomes("a", store.OutcomeReleased, store.OutcomeAcked)
	equal(f, "number of the last", got[1].Number, 1)
}

func historyMany(f *fixture) {
	ids := numbered(1200)
	f.ready(ids...)
	nacks := make([]store.Nack, len(ids))
	for i, token := range f.hold(ids...) {
		nacks[i] = store.Nack{ID: ids[i], Token: token, Outcome: store.OutcomeFailed, Error: "of " + ids[i]}
	}
	_, results, err := f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	f.statuses("nack", results, repeat(store.OK, len(ids))...)
	all, err := f.s.History(f.ctx, f.shard, ids)
	f.ok("history", err)
	for i, h := range all {
		if len(h.Attempts) != 1 || !strings.HasSuffix(h.Attempts[0].Error, ids[i]) {
			f.Fatalf("history of %s is %+v", ids[i], h)
		}
	}
}

// cancel asks for one task to be ended.
func (f *fixture) cancel(want store.Status, id string) store.CancelResult {
	f.Helper()
	_, results, err := f.s.Cancel(f.ctx, f.shard, []string{id})
	f.ok("cancel", err)
	f.statuses("cancel", results, want)
	return results[0]
}

// extended extends one hold and reports whether its end was asked for.
func (f *fixture) extended(id string, token store.Token) bool {
	f.Helper()
	_, results, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: id, Token: token, Visibility: long}})
	f.ok("extend", err)
	f.statuses("extend", results, store.OK)
	return results[0].Cancelled
}

// cancelEnds: contribsys/faktory_worker_go#34 asks for a way to stop a busy job.
func cancelEnds(f *fixture) {
	f.ready("a", "b")
	tokens := f.hold("a", "b")
	equal(f, "cancelled before", f.extended("a", tokens[0]), false)
	equal(f, "token", f.cancel(store.OK, "a").Token, tokens[0])
	equal(f, "token when asked again", f.cancel(store.OK, "a").Token, tokens[0])
	equal(f, "cancelled", f.extended("a", tokens[0]), true)
	equal(f, "cancelled, asked again", f.extended("a", tokens[0]), true)
	equal(f, "the other is cancelled", f.extended("b", tokens[1]), false)
	snap := f.get("a")
	equal(f, "the snapshot tells", snap.Cancelled, true)
	equal(f, "worker", snap.Worker, "worker-1")

	result := f.nack(store.Nack{ID: "a", Token: tokens[0], Delay: long, Outcome: store.OutcomeFailed, Error: "told to stop"})
	equal(f, "status of the nack", result.Status, store.OK)
	equal(f, "due again", result.Due, 0)
	equal(f, "attempt", result.Attempt, 1)
	got := f.get("a")
	equal(f, "state", got.State, store.StateDead)
	equal(f, "reason", got.Reason, store.ReasonCancelled)
	equal(f, "last error", got.LastError, "told to stop")
	f.outcomes("a", store.OutcomeCancelled)
	equal(f, "number of dead tasks", f.stats().Dead, 1)

	result = f.nack(store.Nack{ID: "b", Token: tokens[1], Delay: long})
	equal(f, "the other is due again", result.Due != 0, true)
}

func cancelLate(f *fixture) {
	token := f.held("a")
	f.cancel(store.OK, "a")
	f.ack(long, store.OK, store.Ack{ID: "a", Token: token})
	f.states(store.StateDone, "a")
	f.outcomes("a", store.OutcomeAcked)

	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.NotFound)
}

// cancelRecovered: a task whose cancellation was asked for is not tried again, also when
// nobody hears of it.
func cancelRecovered(f *fixture) {
	f.ready("a", "b")
	token := f.holdFor(short, "a")[0]
	f.cancel(store.OK, "a")
	waitUntil(f, f.s, f.get("a").Deadline+1)
	_, results, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "a", Token: token, Delay: long, Outcome: store.OutcomeHoldExpired}})
	f.ok("recover", err)
	f.statuses("recover", results, store.OK)
	equal(f, "reason", f.get("a").Reason, store.ReasonCancelled)

	f.cancelReleased("b")
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"b"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	equal(f, "cancelled in its next life", f.extended("b", f.hold("b")[0]), false)
}

// cancelReleased holds a task, asks for its end, and gives it back.
func (f *fixture) cancelReleased(id string) {
	f.Helper()
	token := f.hold(id)[0]
	f.cancel(store.OK, id)
	f.nack(store.Nack{ID: id, Token: token, Uncount: true})
	got := f.get(id)
	equal(f, "reason", got.Reason, store.ReasonCancelled)
	equal(f, "attempt", got.Attempt, 0)
}

func cancelRefused(f *fixture) {
	ids, _, states := f.unsettleable()
	_, results, err := f.s.Cancel(f.ctx, f.shard, ids)
	f.ok("cancel", err)
	for i, r := range results {
		want := store.CancelResult{Status: store.WrongState, State: states[i]}
		switch states[i] {
		case store.StateRunning:
			want = store.CancelResult{Status: store.OK, Token: r.Token}
		case store.StateUnknown:
			want = store.CancelResult{Status: store.NotFound}
		}
		equal(f, "cancel of "+ids[i], r, want)
	}
	f.unchanged(ids, states)
}

func cancelTwice(f *fixture) {
	token := f.held("a")
	_, results, err := f.s.Cancel(f.ctx, f.shard, []string{"a", "a"})
	f.ok("cancel", err)
	f.statuses("cancel", results, store.OK, store.OK)
	equal(f, "cancelled", f.extended("a", token), true)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: token})
	f.states(store.StateUnknown, "a")
}

package checker

import (
	"slices"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// logged is what the log has at the end of "t", or of another task that a change is of.
func (p *tape) logged(changes ...ledger.Change) {
	for i, x := range changes {
		if x.Position == 0 {
			x.Position = int64(i) + 1
		}
		p.put(ledger.Event{Kind: ledger.Logged, Change: &x})
	}
}

// plainLife is that of a task that is due at 100, as a log tells it.
func plainLife() []ledger.Change {
	return []ledger.Change{
		{What: "enqueued", Due: epoch + 100, Version: 1, At: (epoch + 1) * 1000},
		{What: "held", Attempt: 1, Due: epoch + 100, Version: 1, At: (epoch + 100) * 1000},
		{What: "done", Attempt: 1, Outcome: "acked", At: (epoch + 102) * 1000},
	}
}

// lived plays that life, and the log that it leaves after a change.
func lived(change func([]ledger.Change) []ledger.Change) func(*tape) {
	return func(p *tape) {
		p.enqueue(100, ledger.OK)
		p.at(101).deliver(1, "a")
		p.settle(ledger.Ack, "a", ledger.OK)
		p.at(200).logged(change(plainLife())...)
	}
}

func without(i int) func([]ledger.Change) []ledger.Change {
	return func(log []ledger.Change) []ledger.Change { return slices.Delete(log, i, i+1) }
}

func with(i int, change func(*ledger.Change)) func([]ledger.Change) []ledger.Change {
	return func(log []ledger.Change) []ledger.Change {
		change(&log[i])
		return log
	}
}

func TestCheckerFindsWrongLogs(t *testing.T) {
	playScenes(t, []scene{
		{"as it was", lived(func(log []ledger.Change) []ledger.Change { return log }), ""},
		{"without the enqueue", lived(without(0)), verdict.Mistold},
		{"without the hold", lived(without(1)), verdict.Mistold},
		{"without the ack", lived(without(2)), verdict.Missed},
		{"without anything", lived(func([]ledger.Change) []ledger.Change { return []ledger.Change{{Position: 1, What: "?"}} }), verdict.Mistold},
		{"with a gap", lived(with(2, func(x *ledger.Change) { x.Position = 4 })), verdict.Missed},
		{"with a position twice", lived(with(2, func(x *ledger.Change) { x.Position = 2 })), verdict.Missed},
		{"done twice", lived(func(log []ledger.Change) []ledger.Change { return append(log, log[2]) }), verdict.Mistold},
		{"held under another attempt", lived(with(1, func(x *ledger.Change) { x.Attempt = 2 })), verdict.Mistold},
		{"held with another version", lived(with(1, func(x *ledger.Change) { x.Version = 2 })), verdict.Mistold},
		{"held as due at another time", lived(with(1, func(x *ledger.Change) { x.Due++ })), verdict.Mistold},
		{"held longer before it was due than it may be", lived(with(1, func(x *ledger.Change) { x.At -= 251_000 })), verdict.Mistold},
		{"held by another worker", lived(with(1, func(x *ledger.Change) { x.Worker = "w" })), verdict.Missed},
		{"done by another worker", lived(with(2, func(x *ledger.Change) { x.Worker = "w" })), verdict.Missed},
		{"with an attribute that it has not", lived(with(0, func(x *ledger.Change) { x.Tag = "red" })), verdict.Mistold},
		{"deleted by nobody", lived(func(log []ledger.Change) []ledger.Change { return append(log[:1], ledger.Change{What: "deleted"}) }), verdict.Mistold},
		{"edited by nobody", lived(func(log []ledger.Change) []ledger.Change {
			return slices.Insert(log, 1, ledger.Change{What: "updated", Due: epoch + 100, Version: 2})
		}), verdict.Mistold},
		{"cancelled by nobody", lived(func(log []ledger.Change) []ledger.Change {
			return slices.Insert(log, 2, ledger.Change{What: "cancel_requested", Attempt: 1})
		}), verdict.Mistold},
		{"released by nobody", lived(func(log []ledger.Change) []ledger.Change {
			return slices.Insert(log, 2, ledger.Change{What: "released", Due: epoch + 100, Outcome: "released"}, log[1])
		}), verdict.Mistold},
		{"a hold that nobody saw ran out", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(2000).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
			log := plainLife()
			again := ledger.Change{What: "retrying", Attempt: 1, Due: epoch + 1500, Outcome: "hold_expired"}
			p.logged(log[0], log[1], again, ledger.Change{What: "held", Attempt: 2, Due: epoch + 1500, At: (epoch + 1500) * 1000}, ledger.Change{What: "done", Attempt: 2, Outcome: "acked"})
		}, ""},
		{"of a task that nobody enqueued", func(p *tape) {
			lived(func(log []ledger.Change) []ledger.Change { return log })(p)
			p.put(ledger.Event{Kind: ledger.Logged, Task: "other", Change: &ledger.Change{Position: 4, What: "enqueued"}})
			p.put(ledger.Event{Kind: ledger.Logged, Task: ledger.Marker + "1", Change: &ledger.Change{Position: 5, What: "enqueued"}})
		}, verdict.Mistold},
		{"of a task whose enqueue was refused", func(p *tape) {
			lived(func(log []ledger.Change) []ledger.Change { return log })(p)
			p.call(ledger.Event{Op: ledger.Enqueue, Task: "other"}, ledger.Refused, "STORE_FULL", func(e *ledger.Event) { e.Task = "other" })
			p.put(ledger.Event{Kind: ledger.Logged, Task: "other", Change: &ledger.Change{Position: 4, What: "enqueued", Version: 1}})
		}, verdict.Mistold},
	})
}

func TestCheckerFindsWhatTheLogHasNot(t *testing.T) {
	enqueued := plainLife()[0]
	playScenes(t, []scene{
		{"nothing of a task", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.found("scheduled", 100)
			p.put(ledger.Event{Kind: ledger.Logged, Task: ledger.Marker + "1", Change: &ledger.Change{Position: 1}})
		}, verdict.Missed},
		{"a delete", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.call(ledger.Event{Op: ledger.Delete}, ledger.OK, "")
			p.logged(enqueued)
		}, verdict.Missed},
		{"a delete that is there", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.call(ledger.Event{Op: ledger.Delete}, ledger.OK, "")
			p.logged(enqueued, ledger.Change{What: "deleted"})
		}, ""},
		{"an edit", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.call(ledger.Event{Op: ledger.Update, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Version = 2 })
			p.found("scheduled", 100, func(e *ledger.Event) { e.Version = 2 })
			p.logged(enqueued)
		}, verdict.Missed},
		{"a move that is there, to another time", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.call(ledger.Event{Op: ledger.Reschedule, Due: epoch + 200}, ledger.OK, "", func(e *ledger.Event) { e.Version, e.Due = 2, epoch+200 })
			p.found("scheduled", 200, func(e *ledger.Event) { e.Version = 2 })
			p.logged(enqueued, ledger.Change{What: "updated", Version: 2, Due: epoch + 300})
		}, verdict.Missed},
		{"a nack", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).deliver(1, "a")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.found("running", 100)
			p.logged(plainLife()[:2]...)
		}, verdict.Missed},
		{"a release that is there", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).deliver(1, "a")
			p.settle(ledger.Release, "a", ledger.OK)
			p.found("retrying", 300)
			p.logged(append(plainLife()[:2], ledger.Change{What: "released", Due: epoch + 300, Outcome: "released"})...)
		}, ""},
		{"a release that counts as an attempt", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).deliver(1, "a")
			p.settle(ledger.Release, "a", ledger.OK)
			p.found("retrying", 300)
			p.logged(append(plainLife()[:2], ledger.Change{What: "released", Attempt: 1, Due: epoch + 300, Outcome: "released"})...)
		}, verdict.Mistold},
		{"a cancel", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).deliver(1, "a")
			p.call(ledger.Event{Op: ledger.Cancel}, ledger.OK, "", func(e *ledger.Event) { e.Outcome = requested })
			p.settle(ledger.Ack, "a", ledger.OK)
			p.logged(plainLife()...)
		}, verdict.Missed},
	})
}

// A worker ends a task that is to be cancelled: the attempt of a nack counts, that of a
// release does not.
func TestCheckerFollowsCancelsIntoTheLog(t *testing.T) {
	ends := func(op ledger.Op, last ...ledger.Change) func(*tape) {
		return func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).deliver(1, "a")
			p.call(ledger.Event{Op: ledger.Cancel}, ledger.OK, "", func(e *ledger.Event) { e.Outcome = requested })
			p.settle(op, "a", ledger.OK)
			p.put(ledger.Event{Kind: ledger.Found, State: "dead", Reason: "cancelled"})
			p.logged(slices.Concat(plainLife()[:2], last)...)
		}
	}
	cancel := ledger.Change{What: "cancel_requested", Attempt: 1}
	dead := func(attempt int, outcome string) ledger.Change {
		return ledger.Change{What: "dead", Attempt: attempt, Reason: "cancelled", Outcome: outcome}
	}
	playScenes(t, []scene{
		{"a nack", ends(ledger.Nack, cancel, dead(1, "cancelled")), ""},
		{"a release", ends(ledger.Release, cancel, dead(0, "cancelled")), ""},
		{"a nack that does not count", ends(ledger.Nack, cancel, dead(0, "cancelled")), verdict.Missed},
		{"a release that counts", ends(ledger.Release, cancel, dead(1, "cancelled")), verdict.Missed},
		{"a release, and no cancel", ends(ledger.Release, dead(0, "cancelled")), verdict.Mistold},
		{"two attempts that do not count", ends(ledger.Release, cancel, dead(-1, "cancelled")), verdict.Mistold},
		{"a release by the server", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).call(ledger.Event{Op: ledger.Cancel}, ledger.OK, "", func(e *ledger.Event) { e.Outcome = requested })
			p.put(ledger.Event{Kind: ledger.Found, State: "dead", Reason: "cancelled"})
			p.logged(slices.Concat(plainLife()[:2], []ledger.Change{cancel, dead(0, "")})...)
		}, ""},
		{"a release by nobody", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(101).call(ledger.Event{Op: ledger.Cancel}, ledger.OK, "", func(e *ledger.Event) { e.Outcome = requested })
			p.put(ledger.Event{Kind: ledger.Found, State: "dead", Reason: "cancelled"})
			p.logged(slices.Concat(plainLife()[:2], []ledger.Change{cancel, dead(0, "cancelled")})...)
		}, verdict.Mistold},
	})
}

// died is the life of a task that fails for good, which is in the store in the end or not.
func (p *tape) died(id string, there bool) {
	p.call(ledger.Event{Op: ledger.Enqueue, Task: id, Due: epoch, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Task, e.Due = id, epoch })
	p.put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s"})
	p.call(ledger.Event{Op: ledger.Nack, Task: id, Token: id, Final: true}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
	if there {
		p.put(ledger.Event{Kind: ledger.Found, Task: id, State: "dead", Reason: "permanent"})
	}
	for _, x := range []ledger.Change{
		{What: "enqueued", Due: epoch, Version: 1}, {What: "held", Attempt: 1, Due: epoch, At: (epoch + p.now) * 1000},
		{What: "dead", Attempt: 1, Reason: "permanent", Outcome: "failed"},
	} {
		x.Position = 1
		for _, e := range p.events {
			if e.Kind == ledger.Logged {
				x.Position++
			}
		}
		p.put(ledger.Event{Kind: ledger.Logged, Task: id, Change: &x})
	}
}

func TestCheckerFindsTrimmedTasks(t *testing.T) {
	keeps := func(dead int) ledger.Event { return ledger.Event{Kind: ledger.Topic, HoldMS: 1000, MaxDead: dead} }
	playScenes(t, []scene{
		{"one of too many dead letters", func(p *tape) {
			p.put(keeps(1))
			p.died("a", false)
			p.died("b", true)
		}, ""},
		{"one of those that are kept", func(p *tape) {
			p.put(keeps(2))
			p.died("a", false)
			p.died("b", true)
		}, verdict.Lost},
		{"a dead letter of a topic that keeps all", func(p *tape) {
			p.died("a", false)
			p.died("b", true)
		}, verdict.Lost},
		{"a dead letter that nobody enqueued", func(p *tape) {
			p.put(keeps(2))
			for i, x := range []ledger.Change{
				{What: "enqueued", Due: epoch, Version: 1}, {What: "held", Attempt: 1, Due: epoch, At: epoch * 1000},
				{What: "dead", Attempt: 1, Reason: "permanent", Outcome: "failed"},
			} {
				x.Position = int64(i) + 1
				p.put(ledger.Event{Kind: ledger.Logged, Task: "x", Change: &x})
			}
		}, verdict.Lost},
		{"one that is not dead", func(p *tape) {
			p.put(keeps(1))
			p.enqueue(100, ledger.OK)
			p.logged(plainLife()[0])
		}, verdict.Lost},
	})
}

package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// edit asks for another payload and is answered with a version.
func (p *tape) edit(sum string, ifVersion, version int64, r ledger.Result, reason string) {
	p.call(ledger.Event{Op: ledger.Update, Sum: sum, IfVersion: ifVersion}, r, reason, func(e *ledger.Event) { e.Version = version })
}

// hand delivers a payload of a version, under a hold of a second.
func (p *tape) hand(attempt int, token string, version int64, sum string) {
	p.put(ledger.Event{Kind: ledger.Delivered, Attempt: attempt, Token: token, HoldMS: 1000, Sum: sum, Version: version})
}

// deleteMany is a call about tasks, of which it says that it deleted some.
func (p *tape) deleteMany(changed int64, tasks ...string) {
	for _, id := range tasks {
		p.call(ledger.Event{Op: ledger.Delete, Task: id, Group: "g"}, ledger.Unknown, "", func(e *ledger.Event) { e.Task, e.Group, e.Changed = id, "g", changed })
	}
}

func TestCheckerFindsWrongEdits(t *testing.T) {
	ended := func(p *tape, version int64, sum string) {
		p.at(100).hand(1, "a", version, sum)
		p.at(101).settle(ledger.Ack, "a", ledger.OK)
	}
	playScenes(t, []scene{
		{"edited and delivered so", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			ended(p, 2, "new")
		}, ""},
		{"delivered as it was before", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			ended(p, 1, "s")
		}, verdict.Outdated},
		{"the version of after, the payload of before", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			ended(p, 2, "s")
		}, verdict.Garbled},
		{"the payload of after, and an edit that was refused", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 7, 1, ledger.Refused, ledger.Mismatch)
			ended(p, 1, "new")
		}, verdict.Garbled},
		{"edited by a call without an answer, or not", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 0, "", "")
			ended(p, 2, "new")
		}, ""},
		{"a version that nobody made", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			ended(p, 3, "new")
		}, verdict.Wrong},
		{"accepted while it was held", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).hand(1, "a", 1, "s")
			p.at(150).edit("new", 0, 2, ledger.OK, "")
			p.at(200).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
		{"accepted after it was acked", func(p *tape) {
			p.enqueue(100, ledger.OK)
			ended(p, 1, "s")
			p.at(150).edit("new", 0, 2, ledger.OK, "")
		}, verdict.Wrong},
		{"between two attempts", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).hand(1, "a", 1, "s")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(150).edit("new", 0, 2, ledger.OK, "")
			p.at(300).hand(2, "b", 2, "new")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"between two attempts, and forgotten", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).hand(1, "a", 2, "new")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(300).hand(2, "b", 1, "s")
			p.settle(ledger.Ack, "b", ledger.OK)
			p.at(50).edit("new", 0, 2, "", "")
		}, verdict.Outdated},
		{"delivered with a version before it was made", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).hand(1, "a", 2, "new")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(150).edit("new", 0, 2, ledger.OK, "")
			p.at(300).hand(2, "b", 2, "new")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Wrong},
		{"two edits of one version", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			p.at(60).edit("newer", 0, 2, ledger.OK, "")
			ended(p, 2, "newer")
		}, verdict.Wrong},
		{"versions go back", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 3, ledger.OK, "")
			p.at(60).edit("newer", 0, 2, ledger.OK, "")
			ended(p, 3, "new")
		}, verdict.Wrong},
		{"if it has the version, and it has", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 1, 2, ledger.OK, "")
			p.at(60).edit("newer", 1, 2, ledger.Refused, ledger.Mismatch)
			ended(p, 2, "new")
		}, ""},
		{"accepted for another version", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			p.at(60).edit("newer", 1, 3, ledger.OK, "")
			ended(p, 3, "newer")
		}, verdict.Wrong},
		{"refused because of the version that it has", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 1, 1, ledger.Refused, ledger.Mismatch)
			ended(p, 1, "s")
		}, verdict.Wrong},
		{"refused because of a version that it had", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			p.at(60).edit("newer", 3, 1, ledger.Refused, ledger.Mismatch)
			ended(p, 2, "new")
		}, verdict.Wrong},
		{"finished before it was due", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 0, ledger.Refused, ledger.Finished)
			ended(p, 1, "s")
		}, verdict.Wrong},
		{"gone, though it waits", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).edit("new", 0, 0, ledger.Refused, ledger.NoTask)
			ended(p, 1, "s")
		}, verdict.Wrong},
		{"promoted and delivered at once", func(p *tape) {
			p.enqueue(500, ledger.OK)
			p.at(50).call(ledger.Event{Op: ledger.Promote}, ledger.OK, "", func(e *ledger.Event) { e.Due, e.Version = epoch+50, 2 })
			p.at(60).hand(1, "a", 2, "s")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"delivered at once, and not promoted", func(p *tape) {
			p.enqueue(500, ledger.OK)
			p.at(50).call(ledger.Event{Op: ledger.Promote, IfVersion: 3}, ledger.Refused, ledger.Mismatch, func(e *ledger.Event) { e.Version = 1 })
			p.at(60).hand(1, "a", 1, "s")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Early},
		{"stored as it was before", func(p *tape) {
			p.enqueue(9000, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			p.at(60).found("scheduled", 9000, func(e *ledger.Event) { e.Version, e.Sum = 1, "s" })
		}, verdict.Outdated},
		{"stored with another payload", func(p *tape) {
			p.enqueue(9000, ledger.OK)
			p.at(50).edit("new", 0, 2, ledger.OK, "")
			p.at(60).found("scheduled", 9000, func(e *ledger.Event) { e.Version, e.Sum = 2, "s" })
		}, verdict.Garbled},
		{"one of two deleted", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.call(ledger.Event{Op: ledger.Enqueue, Task: "u", Due: epoch + 100, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "u" })
			p.at(50).deleteMany(1, "t", "u")
			ended(p, 1, "s")
		}, ""},
		{"two of two deleted, and one goes on", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.call(ledger.Event{Op: ledger.Enqueue, Task: "u", Due: epoch + 100, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "u" })
			p.at(50).deleteMany(2, "t", "u")
			ended(p, 1, "s")
		}, verdict.Wrong},
	})
}

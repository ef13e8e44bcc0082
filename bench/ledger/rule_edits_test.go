package ledger

import "testing"

// edit asks for another payload and is answered with a version.
func (p *tape) edit(sum string, ifVersion, version int64, r Result, reason string) {
	p.call(Event{Op: Update, Sum: sum, IfVersion: ifVersion}, r, reason, func(e *Event) { e.Version = version })
}

// hand delivers a payload of a version, under a hold of a second.
func (p *tape) hand(attempt int, token string, version int64, sum string) {
	p.put(Event{Kind: Delivered, Attempt: attempt, Token: token, HoldMS: 1000, Sum: sum, Version: version})
}

// deleteMany is a call about tasks, of which it says that it deleted some.
func (p *tape) deleteMany(changed int64, tasks ...string) {
	for _, id := range tasks {
		p.call(Event{Op: Delete, Task: id, Group: "g"}, Unknown, "", func(e *Event) { e.Task, e.Group, e.Changed = id, "g", changed })
	}
}

func TestCheckerFindsWrongEdits(t *testing.T) {
	ended := func(p *tape, version int64, sum string) {
		p.at(100).hand(1, "a", version, sum)
		p.at(101).settle(Ack, "a", OK)
	}
	playScenes(t, []scene{
		{"edited and delivered so", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			ended(p, 2, "new")
		}, ""},
		{"delivered as it was before", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			ended(p, 1, "s")
		}, Outdated},
		{"the version of after, the payload of before", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			ended(p, 2, "s")
		}, Garbled},
		{"the payload of after, and an edit that was refused", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 7, 1, Refused, Mismatch)
			ended(p, 1, "new")
		}, Garbled},
		{"edited by a call without an answer, or not", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 0, "", "")
			ended(p, 2, "new")
		}, ""},
		{"a version that nobody made", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			ended(p, 3, "new")
		}, Wrong},
		{"accepted while it was held", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).hand(1, "a", 1, "s")
			p.at(150).edit("new", 0, 2, OK, "")
			p.at(200).settle(Ack, "a", OK)
		}, Wrong},
		{"accepted after it was acked", func(p *tape) {
			p.enqueue(100, OK)
			ended(p, 1, "s")
			p.at(150).edit("new", 0, 2, OK, "")
		}, Wrong},
		{"between two attempts", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).hand(1, "a", 1, "s")
			p.settle(Nack, "a", OK)
			p.at(150).edit("new", 0, 2, OK, "")
			p.at(300).hand(2, "b", 2, "new")
			p.settle(Ack, "b", OK)
		}, ""},
		{"between two attempts, and forgotten", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).hand(1, "a", 2, "new")
			p.settle(Nack, "a", OK)
			p.at(300).hand(2, "b", 1, "s")
			p.settle(Ack, "b", OK)
			p.at(50).edit("new", 0, 2, "", "")
		}, Outdated},
		{"delivered with a version before it was made", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).hand(1, "a", 2, "new")
			p.settle(Nack, "a", OK)
			p.at(150).edit("new", 0, 2, OK, "")
			p.at(300).hand(2, "b", 2, "new")
			p.settle(Ack, "b", OK)
		}, Wrong},
		{"two edits of one version", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			p.at(60).edit("newer", 0, 2, OK, "")
			ended(p, 2, "newer")
		}, Wrong},
		{"versions go back", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 3, OK, "")
			p.at(60).edit("newer", 0, 2, OK, "")
			ended(p, 3, "new")
		}, Wrong},
		{"if it has the version, and it has", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 1, 2, OK, "")
			p.at(60).edit("newer", 1, 2, Refused, Mismatch)
			ended(p, 2, "new")
		}, ""},
		{"accepted for another version", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			p.at(60).edit("newer", 1, 3, OK, "")
			ended(p, 3, "newer")
		}, Wrong},
		{"refused because of the version that it has", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 1, 1, Refused, Mismatch)
			ended(p, 1, "s")
		}, Wrong},
		{"refused because of a version that it had", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			p.at(60).edit("newer", 3, 1, Refused, Mismatch)
			ended(p, 2, "new")
		}, Wrong},
		{"finished before it was due", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 0, Refused, Finished)
			ended(p, 1, "s")
		}, Wrong},
		{"gone, though it waits", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).edit("new", 0, 0, Refused, NoTask)
			ended(p, 1, "s")
		}, Wrong},
		{"promoted and delivered at once", func(p *tape) {
			p.enqueue(500, OK)
			p.at(50).call(Event{Op: Promote}, OK, "", func(e *Event) { e.Due, e.Version = epoch+50, 2 })
			p.at(60).hand(1, "a", 2, "s")
			p.settle(Ack, "a", OK)
		}, ""},
		{"delivered at once, and not promoted", func(p *tape) {
			p.enqueue(500, OK)
			p.at(50).call(Event{Op: Promote, IfVersion: 3}, Refused, Mismatch, func(e *Event) { e.Version = 1 })
			p.at(60).hand(1, "a", 1, "s")
			p.settle(Ack, "a", OK)
		}, Early},
		{"stored as it was before", func(p *tape) {
			p.enqueue(9000, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			p.at(60).found("scheduled", 9000, func(e *Event) { e.Version, e.Sum = 1, "s" })
		}, Outdated},
		{"stored with another payload", func(p *tape) {
			p.enqueue(9000, OK)
			p.at(50).edit("new", 0, 2, OK, "")
			p.at(60).found("scheduled", 9000, func(e *Event) { e.Version, e.Sum = 2, "s" })
		}, Garbled},
		{"one of two deleted", func(p *tape) {
			p.enqueue(100, OK)
			p.call(Event{Op: Enqueue, Task: "u", Due: epoch + 100, Sum: "s"}, OK, "", func(e *Event) { e.Task = "u" })
			p.at(50).deleteMany(1, "t", "u")
			ended(p, 1, "s")
		}, ""},
		{"two of two deleted, and one goes on", func(p *tape) {
			p.enqueue(100, OK)
			p.call(Event{Op: Enqueue, Task: "u", Due: epoch + 100, Sum: "s"}, OK, "", func(e *Event) { e.Task = "u" })
			p.at(50).deleteMany(2, "t", "u")
			ended(p, 1, "s")
		}, Wrong},
	})
}

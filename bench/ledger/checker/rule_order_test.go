package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// lined is the life of a task of an ordering key: when it was enqueued, due, delivered and
// acked.
func (p *tape) lined(id string, enqueued, due, delivered, acked int64) {
	p.at(enqueued).call(ledger.Event{Op: ledger.Enqueue, Task: id, Order: "account", Due: epoch + due, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) {
		e.Task, e.Due = id, epoch+due
	})
	p.at(delivered).put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, Due: epoch + due, HoldMS: 1000, Sum: "s", Client: "w"})
	p.at(acked).call(ledger.Event{Op: ledger.Ack, Task: id, Token: id}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
}

func TestCheckerFindsWrongOrder(t *testing.T) {
	playScenes(t, []scene{
		{"one after the other", func(p *tape) {
			p.lined("a", 0, 100, 110, 200)
			p.lined("b", 0, 150, 210, 300)
		}, ""},
		{"two at a time", func(p *tape) {
			p.lined("a", 0, 100, 110, 200)
			p.lined("b", 0, 150, 190, 300)
		}, verdict.Crowded},
		{"the later one first", func(p *tape) {
			p.lined("a", 0, 100, 310, 400)
			p.lined("b", 0, 150, 210, 300)
		}, verdict.Overtaken},
		{"one that was stored when a later one was due", func(p *tape) {
			p.lined("a", 160, 100, 310, 400)
			p.lined("b", 0, 150, 210, 300)
		}, ""},
		{"one that was given back unseen, and is due later by now", func(p *tape) {
			p.lined("a", 0, 150, 310, 400)
			p.at(0).call(ledger.Event{Op: ledger.Enqueue, Task: "b", Order: "account", Due: epoch + 100, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) {
				e.Task, e.Due = "b", epoch+100
			})
			p.at(210).put(ledger.Event{Kind: ledger.Delivered, Task: "b", Attempt: 1, Token: "b", Due: epoch + 205, HoldMS: 1000, Sum: "s", Client: "w"})
			p.at(300).call(ledger.Event{Op: ledger.Ack, Task: "b", Token: "b"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "b" })
		}, ""},
		{"one that a paused worker tells of later", func(p *tape) {
			p.lined("a", 0, 150, 310, 400)
			p.at(0).call(ledger.Event{Op: ledger.Enqueue, Task: "b", Order: "account", Due: epoch + 100, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) {
				e.Task, e.Due = "b", epoch+100
			})
			p.at(210).put(ledger.Event{Kind: ledger.Delivered, Task: "b", Attempt: 2, Token: "b", Due: epoch + 205, HoldMS: 1000, Sum: "s", Client: "w"})
			p.at(300).call(ledger.Event{Op: ledger.Ack, Task: "b", Token: "b"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "b" })
			p.at(1500).put(ledger.Event{Kind: ledger.Delivered, Task: "b", Attempt: 1, Token: "first", Due: epoch + 100, HoldMS: 50, Sum: "s", Client: "v"})
		}, ""},
		{"of one time, in any order", func(p *tape) {
			p.lined("a", 0, 150, 310, 400)
			p.lined("b", 0, 150, 210, 300)
		}, ""},
	})
}

package ledger

import "testing"

// claim enqueues a payload with an idempotency key, and is answered with the id of a task.
func (p *tape) claim(conflict, sum, id string, r Result, reason string) {
	p.call(Event{Op: Enqueue, Due: epoch + 100, Sum: sum, Conflict: conflict}, r, reason, func(e *Event) {
		e.ID, e.Due = id, epoch+100
	})
}

// run is the life of a task of the key.
func (p *tape) run(at int64, id, sum string) {
	p.at(at).put(Event{Kind: Delivered, Attempt: 1, Token: id, ID: id, HoldMS: 1000, Sum: sum})
	p.settle(Ack, id, OK)
}

func TestCheckerFindsWrongKeys(t *testing.T) {
	playScenes(t, []scene{
		{"one of two enqueues", func(p *tape) {
			p.claim(Return, "first", "x", OK, "")
			p.claim(Return, "second", "x", Already, "")
			p.run(100, "x", "first")
			p.claim(Return, "third", "x", Already, "")
		}, ""},
		{"two enqueues, two tasks", func(p *tape) {
			p.claim(Return, "first", "x", OK, "")
			p.claim(Return, "second", "y", OK, "")
			p.run(100, "x", "first")
		}, Twinned},
		{"a second task that nobody was told of", func(p *tape) {
			p.claim(Return, "first", "x", OK, "")
			p.claim(Reject, "second", "x", Refused, KeyTaken)
			p.run(100, "x", "first")
			p.run(200, "y", "second")
		}, Twinned},
		{"stored by a try that the server repeated", func(p *tape) {
			p.claim(Reject, "first", "x", Already, "")
			p.claim(Reject, "second", "x", Refused, KeyTaken)
			p.run(100, "x", "first")
		}, ""},
		{"the payload of the one that came second", func(p *tape) {
			p.claim(Return, "first", "x", OK, "")
			p.claim(Return, "second", "x", Already, "")
			p.run(100, "x", "second")
		}, Garbled},
		{"the payload of one that was not answered", func(p *tape) {
			p.claim(Return, "first", "", "", "")
			p.claim(Return, "second", "x", Already, "")
			p.run(100, "x", "first")
		}, ""},
		{"taken by nobody", func(p *tape) {
			p.claim(Reject, "first", "x", Refused, KeyTaken)
			p.claim(Reject, "second", "x", OK, "")
			p.run(100, "x", "second")
		}, Wrong},
		{"again after it was acked, within the window", func(p *tape) {
			p.claim(Return, "first", "x", OK, "")
			p.run(100, "x", "first")
			p.claim(Return, "second", "", "", "")
			p.run(500, "y", "second")
		}, Twinned},
		{"the last one is delivered", func(p *tape) {
			p.claim(Replace, "first", "x", OK, "")
			p.claim(Replace, "second", "x", OK, "replaced")
			p.run(100, "x", "second")
		}, ""},
		{"the last one is not delivered", func(p *tape) {
			p.claim(Replace, "first", "x", OK, "")
			p.claim(Replace, "second", "x", OK, "replaced")
			p.run(100, "x", "first")
		}, Lost},
		{"one beside another", func(p *tape) {
			p.claim(Replace, "first", "x", OK, "")
			p.run(100, "x", "first")
			p.claim(Replace, "second", "y", OK, "")
			p.run(200, "y", "second")
		}, ""},
		{"one that may have been replaced", func(p *tape) {
			p.claim(Replace, "first", "x", OK, "")
			p.claim(Replace, "second", "", "", "")
			p.run(100, "x", "second")
		}, ""},
		{"the last one lies in the store", func(p *tape) {
			p.claim(Replace, "first", "x", OK, "")
			p.claim(Replace, "second", "x", OK, "replaced")
			p.at(100).found("dead", 100, func(e *Event) { e.Sum, e.ID, e.Reason = "second", "x", "max_retries" })
		}, ""},
	})
}

package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// claim enqueues a payload with an idempotency key, and is answered with the id of a task.
func (p *tape) claim(conflict, sum, id string, r ledger.Result, reason string) {
	p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Sum: sum, Conflict: conflict}, r, reason, func(e *ledger.Event) {
		e.ID, e.Due = id, epoch+100
	})
}

// run is the life of a task of the key.
func (p *tape) run(at int64, id, sum string) {
	p.at(at).put(ledger.Event{Kind: ledger.Delivered, Attempt: 1, Token: id, ID: id, HoldMS: 1000, Sum: sum})
	p.settle(ledger.Ack, id, ledger.OK)
}

func TestCheckerFindsWrongKeys(t *testing.T) {
	playScenes(t, []scene{
		{"one of two enqueues", func(p *tape) {
			p.claim(ledger.Return, "first", "x", ledger.OK, "")
			p.claim(ledger.Return, "second", "x", ledger.Already, "")
			p.run(100, "x", "first")
			p.claim(ledger.Return, "third", "x", ledger.Already, "")
		}, ""},
		{"two enqueues, two tasks", func(p *tape) {
			p.claim(ledger.Return, "first", "x", ledger.OK, "")
			p.claim(ledger.Return, "second", "y", ledger.OK, "")
			p.run(100, "x", "first")
		}, verdict.Twinned},
		{"a second task that nobody was told of", func(p *tape) {
			p.claim(ledger.Return, "first", "x", ledger.OK, "")
			p.claim(ledger.Reject, "second", "x", ledger.Refused, ledger.KeyTaken)
			p.run(100, "x", "first")
			p.run(200, "y", "second")
		}, verdict.Twinned},
		{"stored by a try that the server repeated", func(p *tape) {
			p.claim(ledger.Reject, "first", "x", ledger.Already, "")
			p.claim(ledger.Reject, "second", "x", ledger.Refused, ledger.KeyTaken)
			p.run(100, "x", "first")
		}, ""},
		{"the payload of the one that came second", func(p *tape) {
			p.claim(ledger.Return, "first", "x", ledger.OK, "")
			p.claim(ledger.Return, "second", "x", ledger.Already, "")
			p.run(100, "x", "second")
		}, verdict.Garbled},
		{"the payload of one that was not answered", func(p *tape) {
			p.claim(ledger.Return, "first", "", "", "")
			p.claim(ledger.Return, "second", "x", ledger.Already, "")
			p.run(100, "x", "first")
		}, ""},
		{"taken by nobody", func(p *tape) {
			p.claim(ledger.Reject, "first", "x", ledger.Refused, ledger.KeyTaken)
			p.claim(ledger.Reject, "second", "x", ledger.OK, "")
			p.run(100, "x", "second")
		}, verdict.Wrong},
		{"again after it was acked, within the window", func(p *tape) {
			p.claim(ledger.Return, "first", "x", ledger.OK, "")
			p.run(100, "x", "first")
			p.claim(ledger.Return, "second", "", "", "")
			p.run(500, "y", "second")
		}, verdict.Twinned},
		{"the last one is delivered", func(p *tape) {
			p.claim(ledger.Replace, "first", "x", ledger.OK, "")
			p.claim(ledger.Replace, "second", "x", ledger.OK, "replaced")
			p.run(100, "x", "second")
		}, ""},
		{"the last one is not delivered", func(p *tape) {
			p.claim(ledger.Replace, "first", "x", ledger.OK, "")
			p.claim(ledger.Replace, "second", "x", ledger.OK, "replaced")
			p.run(100, "x", "first")
		}, verdict.Lost},
		{"one that the repeat of another was told of", func(p *tape) {
			p.claim(ledger.Replace, "first", "x", ledger.Already, "returned")
			p.claim(ledger.Replace, "second", "x", ledger.OK, "replaced")
			p.at(100).put(ledger.Event{Kind: ledger.Delivered, Attempt: 1, Token: "x", ID: "x", HoldMS: 1000, Sum: "second", Version: 2})
			p.settle(ledger.Ack, "x", ledger.OK)
		}, ""},
		{"one beside another", func(p *tape) {
			p.claim(ledger.Replace, "first", "x", ledger.OK, "")
			p.run(100, "x", "first")
			p.claim(ledger.Replace, "second", "y", ledger.OK, "")
			p.run(200, "y", "second")
		}, ""},
		{"one that may have been replaced", func(p *tape) {
			p.claim(ledger.Replace, "first", "x", ledger.OK, "")
			p.claim(ledger.Replace, "second", "", "", "")
			p.run(100, "x", "second")
		}, ""},
		{"the last one lies in the store", func(p *tape) {
			p.claim(ledger.Replace, "first", "x", ledger.OK, "")
			p.claim(ledger.Replace, "second", "x", ledger.OK, "replaced")
			p.at(100).found("dead", 100, func(e *ledger.Event) { e.Sum, e.ID, e.Reason = "second", "x", "max_retries" })
		}, ""},
	})
}

package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// ranOnce is that a handler does what a name names.
func (p *tape) ranOnce(attempt int, token, name string) {
	p.put(ledger.Event{Kind: ledger.Ran, Attempt: attempt, Token: token, Name: name})
}

func (p *tape) checkpoint(token, name string, r ledger.Result) {
	p.call(ledger.Event{Op: ledger.Checkpoint, Token: token, Name: name}, r, "")
}

// attempt is the first one, which does "a" and gets an answer to its checkpoint, and fails.
func (p *tape) attempt(r ledger.Result) {
	p.enqueue(100, ledger.OK)
	p.at(100).deliver(1, "h1")
	p.at(110).ranOnce(1, "h1", "a")
	p.at(120).checkpoint("h1", "a", r)
	p.at(130).settle(ledger.Nack, "h1", ledger.OK)
	p.at(200).deliver(2, "h2")
}

func TestCheckerFindsWhatIsForgotten(t *testing.T) {
	playScenes(t, []scene{
		{"remembered, and another name runs", func(p *tape) {
			p.attempt(ledger.OK)
			p.at(210).ranOnce(2, "h2", "b")
			p.at(220).checkpoint("h2", "b", ledger.OK)
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, ""},
		{"forgotten", func(p *tape) {
			p.attempt(ledger.OK)
			p.at(210).ranOnce(2, "h2", "a")
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, verdict.Forgotten},
		{"forgotten, though it was remembered before", func(p *tape) {
			p.attempt(ledger.Already)
			p.at(210).ranOnce(2, "h2", "a")
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, verdict.Forgotten},
		{"run by an attempt before, which was late", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(1200).deliver(2, "h2")
			p.at(1210).checkpoint("h2", "a", ledger.OK)
			p.at(1220).settle(ledger.Ack, "h2", ledger.OK)
			p.at(1300).deliver(1, "h1")
			p.at(1310).ranOnce(1, "h1", "a")
			p.at(1320).settle(ledger.Nack, "h1", ledger.Refused)
		}, ""},
		{"refused, and run again", func(p *tape) {
			p.attempt(ledger.Refused)
			p.at(210).ranOnce(2, "h2", "a")
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, ""},
		{"unknown, and run again", func(p *tape) {
			p.attempt("")
			p.at(210).ranOnce(2, "h2", "a")
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, ""},
		{"run again before the answer", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "h1")
			p.at(110).ranOnce(1, "h1", "a")
			p.at(115).ranOnce(1, "h1", "a")
			p.at(120).checkpoint("h1", "a", ledger.OK)
			p.at(130).settle(ledger.Ack, "h1", ledger.OK)
		}, ""},
		{"another task of the id, after the first was done", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "h1")
			p.at(110).checkpoint("h1", "a", ledger.OK)
			p.at(120).settle(ledger.Ack, "h1", ledger.OK)
			p.at(200).enqueue(300, ledger.OK)
			p.at(300).deliver(1, "h2")
			p.at(310).ranOnce(1, "h2", "a")
			p.at(320).settle(ledger.Ack, "h2", ledger.OK)
		}, ""},
		{"a checkpoint of an attempt that was over, refused", func(p *tape) {
			p.attempt(ledger.OK)
			p.at(210).checkpoint("h1", "b", ledger.Refused)
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, ""},
		{"a checkpoint of an attempt that was over, accepted", func(p *tape) {
			p.attempt(ledger.OK)
			p.at(210).checkpoint("h1", "b", ledger.OK)
			p.at(230).settle(ledger.Ack, "h2", ledger.OK)
		}, verdict.Stale},
		{"a checkpoint after the ack, accepted", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "h1")
			p.at(110).settle(ledger.Ack, "h1", ledger.OK)
			p.at(120).checkpoint("h1", "a", ledger.OK)
		}, verdict.Stale},
	})
}

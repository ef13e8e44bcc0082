package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

func TestCheckerFindsWrongDrops(t *testing.T) {
	drop := func(p *tape, r ledger.Result) { p.call(ledger.Event{Op: ledger.Drop}, r, "") }
	playScenes(t, []scene{
		{"gone with its topic", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50)
			drop(p, ledger.OK)
		}, ""},
		{"gone, and its topic was not deleted", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50)
			drop(p, ledger.Refused)
		}, verdict.Lost},
		{"gone with its topic, perhaps", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50)
			drop(p, "")
		}, ""},
		{"added to the topic that was made again, and gone", func(p *tape) {
			drop(p, ledger.OK)
			p.at(50).enqueue(100, ledger.OK)
		}, verdict.Lost},
		{"added while the topic was deleted, and gone", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(10)
			drop(p, ledger.OK)
			p.at(20).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 100})
		}, ""},
		{"delivered after its topic was deleted", func(p *tape) {
			p.enqueue(400, ledger.OK)
			p.at(50)
			drop(p, ledger.OK)
			p.at(400).deliver(1, "a")
		}, verdict.Resurrected},
		{"held when its topic was deleted, and delivered when it was due", func(p *tape) {
			p.enqueue(400, ledger.OK)
			p.at(350)
			drop(p, ledger.OK)
			p.at(400).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.Refused)
		}, ""},
		{"deleted, and delivered when it was due", func(p *tape) {
			p.enqueue(400, ledger.OK)
			p.at(350).call(ledger.Event{Op: ledger.Delete}, ledger.OK, "")
			p.at(400).deliver(1, "a")
		}, verdict.Resurrected},
		{"stored after its topic was deleted", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50)
			drop(p, ledger.OK)
			p.at(60).found("scheduled", 100)
		}, verdict.Resurrected},
		{"its hold is lost with its topic", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(150)
			drop(p, ledger.OK)
			p.at(160).settle(ledger.Ack, "a", ledger.Refused)
		}, ""},
		{"its hold outlives its topic", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(150)
			drop(p, ledger.OK)
			p.at(160).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Resurrected},
	})
}

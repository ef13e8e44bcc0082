package ledger

import "testing"

func TestCheckerFindsWrongDrops(t *testing.T) {
	drop := func(p *tape, r Result) { p.call(Event{Op: Drop}, r, "") }
	playScenes(t, []scene{
		{"gone with its topic", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50)
			drop(p, OK)
		}, ""},
		{"gone, and its topic was not deleted", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50)
			drop(p, Refused)
		}, Lost},
		{"gone with its topic, perhaps", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50)
			drop(p, "")
		}, ""},
		{"added to the topic that was made again, and gone", func(p *tape) {
			drop(p, OK)
			p.at(50).enqueue(100, OK)
		}, Lost},
		{"added while the topic was deleted, and gone", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(10)
			drop(p, OK)
			p.at(20).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 100})
		}, ""},
		{"delivered after its topic was deleted", func(p *tape) {
			p.enqueue(400, OK)
			p.at(50)
			drop(p, OK)
			p.at(400).deliver(1, "a")
		}, Resurrected},
		{"held when its topic was deleted, and delivered when it was due", func(p *tape) {
			p.enqueue(400, OK)
			p.at(350)
			drop(p, OK)
			p.at(400).deliver(1, "a")
			p.settle(Ack, "a", Refused)
		}, ""},
		{"deleted, and delivered when it was due", func(p *tape) {
			p.enqueue(400, OK)
			p.at(350).call(Event{Op: Delete}, OK, "")
			p.at(400).deliver(1, "a")
		}, Resurrected},
		{"stored after its topic was deleted", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50)
			drop(p, OK)
			p.at(60).found("scheduled", 100)
		}, Resurrected},
		{"its hold is lost with its topic", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(150)
			drop(p, OK)
			p.at(160).settle(Ack, "a", Refused)
		}, ""},
		{"its hold outlives its topic", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(150)
			drop(p, OK)
			p.at(160).settle(Ack, "a", OK)
		}, Resurrected},
	})
}

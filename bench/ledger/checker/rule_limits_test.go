package checker

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// limited makes the topic of a tape one with limits.
func (p *tape) limited(e ledger.Event) {
	e.Kind, e.HoldMS = ledger.Topic, 1000
	p.put(e)
}

// other is the life of another task of a key, delivered and acked at given times.
func (p *tape) other(id, key string, delivered, acked int64) {
	p.otherOf("", id, key, delivered, acked)
}

// otherOf is other in a topic; empty: in that of the tape.
func (p *tape) otherOf(topic, id, key string, delivered, acked int64) {
	same := func(e *ledger.Event) { e.Topic, e.Task = topic, id }
	p.at(0).call(ledger.Event{Op: ledger.Enqueue, Topic: topic, Task: id, Key: key, Sum: "s"}, ledger.OK, "", same)
	p.at(delivered).put(ledger.Event{Kind: ledger.Delivered, Topic: topic, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s", Client: "w"})
	p.at(acked).call(ledger.Event{Op: ledger.Ack, Topic: topic, Task: id, Token: id}, ledger.OK, "", same)
}

// booked is a task that the store says was held from one time to another.
func (p *tape) booked(id, key string, started, ended int64) {
	p.other(id, key, started+5, ended-5)
	p.at(5000).put(ledger.Event{Kind: ledger.Found, Task: id, State: "done", History: []ledger.Attempt{
		{Number: 1, Worker: "w", Started: epoch + started, Ended: epoch + ended, Outcome: "acked"},
	}})
}

func TestCheckerFindsWrongLimits(t *testing.T) {
	two := ledger.Event{Cap: 2}
	playScenes(t, []scene{
		{"two at a time", func(p *tape) {
			p.limited(two)
			p.other("a", "", 100, 300)
			p.other("b", "", 100, 200)
			p.other("c", "", 202, 300)
		}, ""},
		{"a third before one was settled", func(p *tape) {
			p.limited(two)
			p.other("a", "", 100, 300)
			p.other("b", "", 100, 200)
			p.other("c", "", 199, 300)
		}, verdict.Crowded},
		{"a third when a hold may have run out", func(p *tape) {
			p.limited(two)
			p.other("a", "", 100, 300)
			p.other("b", "", 100, 2200)
			p.other("c", "", 1101, 1300)
			p.other("d", "", 1101, 1300)
		}, ""},
		{"a third while a hold is alive that is not settled", func(p *tape) {
			p.limited(two)
			p.other("a", "", 100, 300)
			p.other("b", "", 100, 2200)
			p.other("c", "", 150, 1300)
		}, verdict.Crowded},
		{"a third while one may be over that was requeued later", func(p *tape) {
			p.limited(two)
			p.other("a", "", 1500, 5000)
			for _, id := range []string{"b", "c"} {
				p.at(1550).call(ledger.Event{Op: ledger.Enqueue, Task: id, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
				p.at(1600).put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s", Client: "w"})
				p.at(1700).call(ledger.Event{Op: ledger.Ack, Task: id, Token: id}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
			}
			p.at(3000).call(ledger.Event{Op: ledger.Enqueue, Task: "a", Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "a" })
		}, ""},
		{"another when one was on its way as its topic was deleted", func(p *tape) {
			p.limited(ledger.Event{Shared: 1})
			p.limited(ledger.Event{Shared: 1, Topic: "u"})
			p.enqueue(100, ledger.OK)
			p.at(99).call(ledger.Event{Op: ledger.Drop}, ledger.OK, "")
			p.at(120).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.Refused)
			p.otherOf("u", "b", "", 150, 200)
		}, ""},
		{"another while one is held of a topic that was deleted before", func(p *tape) {
			p.limited(ledger.Event{Shared: 1})
			p.limited(ledger.Event{Shared: 1, Topic: "u"})
			p.call(ledger.Event{Op: ledger.Drop}, ledger.OK, "")
			p.at(50).enqueue(100, ledger.OK)
			p.at(120).deliver(1, "a")
			p.at(210).settle(ledger.Ack, "a", ledger.OK)
			p.otherOf("u", "b", "", 150, 200)
		}, verdict.Crowded},
		{"as many of a namespace in two topics", func(p *tape) {
			p.limited(ledger.Event{Shared: 2})
			p.limited(ledger.Event{Shared: 2, Topic: "u"})
			p.other("a", "", 100, 300)
			p.otherOf("u", "b", "", 100, 200)
			p.otherOf("u", "c", "", 202, 300)
		}, ""},
		{"one more of a namespace in two topics", func(p *tape) {
			p.limited(ledger.Event{Shared: 2})
			p.limited(ledger.Event{Shared: 2, Topic: "u"})
			p.other("a", "", 100, 300)
			p.other("b", "", 100, 200)
			p.otherOf("u", "c", "", 199, 300)
		}, verdict.Crowded},
		{"one more in another namespace", func(p *tape) {
			p.limited(ledger.Event{Shared: 2})
			p.limited(ledger.Event{Shared: 2, Topic: "acme/u"})
			p.other("a", "", 100, 300)
			p.other("b", "", 100, 200)
			p.otherOf("acme/u", "c", "", 199, 300)
		}, ""},
		{"of a key one at a time", func(p *tape) {
			p.limited(ledger.Event{KeyCap: 1})
			p.other("a", "x", 100, 300)
			p.other("b", "y", 100, 300)
			p.other("c", "x", 301, 400)
		}, ""},
		{"of a key two at a time", func(p *tape) {
			p.limited(ledger.Event{KeyCap: 1})
			p.other("a", "x", 100, 300)
			p.other("b", "y", 100, 300)
			p.other("c", "x", 299, 400)
		}, verdict.Crowded},
		{"two at a time by the books", func(p *tape) {
			p.limited(two)
			p.booked("a", "", 100, 300)
			p.booked("b", "", 100, 200)
			p.booked("c", "", 200, 300)
		}, ""},
		{"three at a time by the books", func(p *tape) {
			p.limited(two)
			p.booked("a", "", 100, 300)
			p.booked("b", "", 100, 200)
			p.booked("c", "", 198, 300)
		}, verdict.Crowded},
		{"a burst and then the rate", func(p *tape) {
			p.limited(ledger.Event{Rate: &ledger.Rate{Count: 10, PeriodMS: 1000, Burst: 3}})
			for i := range int64(40) {
				p.booked(fmt.Sprint(i), "", 600+max(0, i-2)*100, 700+max(0, i-2)*100)
			}
		}, ""},
		{"a burst, and a second late all at once", func(p *tape) {
			p.limited(ledger.Event{Rate: &ledger.Rate{Count: 10, PeriodMS: 1000, Burst: 3}})
			for i := range int64(9) { // three, and five whose tokens came within half a second
				p.booked(fmt.Sprint(i), "", 600, 700)
			}
		}, verdict.Rushed},
		{"a little above the rate for long", func(p *tape) {
			p.limited(ledger.Event{Rate: &ledger.Rate{Count: 10, PeriodMS: 1000, Burst: 3}})
			for i := range int64(400) {
				p.booked(fmt.Sprint(i), "", 600+i*98, 650+i*98)
			}
		}, verdict.Rushed},
		{"never more than a window has", func(p *tape) {
			p.limited(ledger.Event{KeyRate: &ledger.Rate{Count: 2, PeriodMS: 500, Window: true}})
			p.booked("a", "x", 100, 150)
			p.booked("b", "x", 300, 350)
			p.booked("c", "x", 600, 650)
			p.booked("d", "y", 310, 350)
		}, ""},
		{"more than a window has", func(p *tape) {
			p.limited(ledger.Event{KeyRate: &ledger.Rate{Count: 2, PeriodMS: 500, Window: true}})
			p.booked("a", "x", 100, 150)
			p.booked("b", "x", 300, 350)
			p.booked("c", "x", 597, 650)
		}, verdict.Rushed},
	})
}

// TestLostTokensAreExcused: a fault that may undo what was taken of a rate begins a
// new count, and nothing else.
func TestLostTokensAreExcused(t *testing.T) {
	for _, test := range []struct {
		second int64 // when the second half is delivered
		want   int
	}{{1100, 1}, {20_000, 0}, {3600, 0}, {4000, 0}} {
		p := &tape{}
		p.limited(ledger.Event{Rate: &ledger.Rate{Count: 1, PeriodMS: 10_000, Burst: 2}})
		for i := range int64(4) {
			at := 1000 + i
			if i > 1 {
				at = test.second + i
			}
			p.booked(fmt.Sprint(i), "", at, at+50)
		}
		p.at(3500).put(ledger.Event{Kind: ledger.Fault, Fault: "failover", Topic: "-", Task: "-"})
		p.at(3800).put(ledger.Event{Kind: ledger.Healed, Fault: "failover", Topic: "-", Task: "-"})
		v := p.at(21_000).verdict(Rules{TokensLost: []string{"failover"}})
		if v.Counts[verdict.Rushed] != test.want {
			t.Errorf("at %d: rushed %d, want %d", test.second, v.Counts[verdict.Rushed], test.want)
		}
	}
}

package checker

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// acquire is a call for tokens at a time, which may be used some time after the answer.
func (p *tape) acquire(at int64, key string, tokens int, wait int64, r ledger.Result) {
	p.calls++
	p.at(at).events = append(p.events, ledger.Event{
		Kind: ledger.Call, Op: ledger.Acquire, Topic: "topic", Key: key, Tokens: tokens, Call: p.calls, Mono: at * millisecond, Wall: (epoch + at) * millisecond,
	})
	p.events = append(p.events, ledger.Event{
		Kind: ledger.Answer, Op: ledger.Acquire, Topic: "topic", Result: r, DelayMS: wait, Call: p.calls, Mono: (at + 1) * millisecond, Wall: (epoch + at + 1) * millisecond,
	})
}

// granted acquires tokens at each of some times, which may be used at once.
func (p *tape) granted(key string, times ...int64) {
	for _, at := range times {
		p.acquire(at, key, 1, 0, ledger.OK)
	}
}

func TestCheckerFindsTooManyTokens(t *testing.T) {
	ten := ledger.Event{Rate: &ledger.Rate{Count: 10, PeriodMS: 1000}}                    // 1 + 10 x (time + half a second)
	window := ledger.Event{KeyRate: &ledger.Rate{Count: 2, PeriodMS: 1000, Window: true}} // of a key
	six := []int64{1000, 1000, 1000, 1000, 1000, 1000}
	task := func(p *tape, id, key string, at int64) { p.booked(id, key, at, at+10) }
	playScenes(t, []scene{
		{"as many as may come late", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.granted("", six...)
		}, ""},
		{"more than that", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.granted("", append(six, 1010)...)
		}, verdict.Rushed},
		{"tokens and attempts", func(p *tape) {
			p.limited(ten)
			p.granted("", six[:4]...)
			for i := range 3 {
				task(p, fmt.Sprint(i), "", 1001)
			}
		}, verdict.Rushed},
		{"several at a time", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.acquire(1000, "", 4, 0, ledger.OK)
			p.acquire(1000, "", 4, 0, ledger.OK)
		}, verdict.Rushed},
		{"several that come later", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.acquire(1000, "", 4, 0, ledger.OK)
			p.acquire(1000, "", 4, 300, ledger.OK)
		}, ""},
		{"what was refused does not count", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.granted("", six...)
			p.acquire(1000, "", 4, 0, ledger.Refused)
			p.acquire(1000, "", 4, 0, ledger.Unknown)
		}, ""},
		{"an answer that took long", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.granted("", six...)
			p.acquire(1010, "", 1, 0, ledger.OK)
			p.events[len(p.events)-1].Mono += 200 * millisecond
		}, ""},
		{"two in a window of a key", func(p *tape) {
			p.limited(window)
			task(p, "a", "x", 100)
			task(p, "b", "y", 100)
			p.granted("x", 500, 1102)
		}, ""},
		{"three in a window of a key", func(p *tape) {
			p.limited(window)
			task(p, "a", "x", 100)
			task(p, "b", "y", 100)
			p.granted("x", 500, 1080)
		}, verdict.Rushed},
	})
}

// TestLostTokensBeginAnew: a fault that may lose what was taken of rates.
func TestLostTokensBeginAnew(t *testing.T) {
	for _, lost := range []bool{true, false} {
		p := &tape{}
		p.limited(ledger.Event{Rate: &ledger.Rate{Count: 10, PeriodMS: 1000}})
		p.booked("a", "", 100, 110)
		p.granted("", 4000, 4000, 4000, 4000, 4000)
		p.at(4010).put(ledger.Event{Kind: ledger.Fault, Fault: "failover"})
		p.at(4020).put(ledger.Event{Kind: ledger.Healed, Fault: "failover"})
		p.granted("", 4030, 4030, 4030)
		var rules Rules
		if lost {
			rules.TokensLost = []string{"failover"}
		}
		if v := p.verdict(rules); v.OK() != lost {
			t.Errorf("lost: %v: %s", lost, v.Summary())
		}
	}
}

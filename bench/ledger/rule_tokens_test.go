package ledger

import (
	"fmt"
	"testing"
)

// acquire is a call for tokens at a time, which may be used some time after the answer.
func (p *tape) acquire(at int64, key string, tokens int, wait int64, r Result) {
	p.calls++
	p.at(at).events = append(p.events, Event{
		Kind: Call, Op: Acquire, Topic: "topic", Key: key, Tokens: tokens, Call: p.calls, Mono: at * millisecond, Wall: (epoch + at) * millisecond,
	})
	p.events = append(p.events, Event{
		Kind: Answer, Op: Acquire, Topic: "topic", Result: r, DelayMS: wait, Call: p.calls, Mono: (at + 1) * millisecond, Wall: (epoch + at + 1) * millisecond,
	})
}

// granted acquires tokens at each of some times, which may be used at once.
func (p *tape) granted(key string, times ...int64) {
	for _, at := range times {
		p.acquire(at, key, 1, 0, OK)
	}
}

func TestCheckerFindsTooManyTokens(t *testing.T) {
	ten := Event{Rate: &Rate{Count: 10, PeriodMS: 1000}}                    // 1 + 10 x (time + half a second)
	window := Event{KeyRate: &Rate{Count: 2, PeriodMS: 1000, Window: true}} // of a key
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
		}, Rushed},
		{"tokens and attempts", func(p *tape) {
			p.limited(ten)
			p.granted("", six[:4]...)
			for i := range 3 {
				task(p, fmt.Sprint(i), "", 1001)
			}
		}, Rushed},
		{"several at a time", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.acquire(1000, "", 4, 0, OK)
			p.acquire(1000, "", 4, 0, OK)
		}, Rushed},
		{"several that come later", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.acquire(1000, "", 4, 0, OK)
			p.acquire(1000, "", 4, 300, OK)
		}, ""},
		{"what was refused does not count", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.granted("", six...)
			p.acquire(1000, "", 4, 0, Refused)
			p.acquire(1000, "", 4, 0, Unknown)
		}, ""},
		{"an answer that took long", func(p *tape) {
			p.limited(ten)
			task(p, "a", "", 100)
			p.granted("", six...)
			p.acquire(1010, "", 1, 0, OK)
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
		}, Rushed},
	})
}

// TestLostTokensBeginAnew: a fault that may lose what was taken of rates.
func TestLostTokensBeginAnew(t *testing.T) {
	for _, lost := range []bool{true, false} {
		p := &tape{}
		p.limited(Event{Rate: &Rate{Count: 10, PeriodMS: 1000}})
		p.booked("a", "", 100, 110)
		p.granted("", 4000, 4000, 4000, 4000, 4000)
		p.at(4010).put(Event{Kind: Fault, Fault: "failover"})
		p.at(4020).put(Event{Kind: Healed, Fault: "failover"})
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

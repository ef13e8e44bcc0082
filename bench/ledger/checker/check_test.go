package checker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// tape makes the history of one task, "t", in milliseconds.
type tape struct {
	events []ledger.Event
	now    int64
	calls  uint64
}

// epoch is the time of day at which tapes begin, ms.
const epoch = 1_700_000_000_000

func (p *tape) put(e ledger.Event) {
	e.Mono, e.Wall = p.now*millisecond, (epoch+p.now)*millisecond
	if e.Topic == "" {
		e.Topic = "topic"
	}
	if e.Task == "" && e.Kind != ledger.Topic {
		e.Task = "t"
	}
	p.events = append(p.events, e)
}

func (p *tape) at(ms int64) *tape { p.now = ms; return p }

// call is one that is answered 1 ms later; an empty result is no answer.
func (p *tape) call(e ledger.Event, r ledger.Result, reason string, more ...func(*ledger.Event)) {
	p.calls++
	e.Kind, e.Call = ledger.Call, p.calls
	p.put(e)
	p.now++
	if r == "" {
		return
	}
	answer := ledger.Event{Kind: ledger.Answer, Call: p.calls, Op: e.Op, Token: e.Token, Result: r, Reason: reason}
	for _, do := range more {
		do(&answer)
	}
	p.put(answer)
}

func (p *tape) enqueue(due int64, r ledger.Result) {
	p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + due, Sum: "s"}, r, "", func(e *ledger.Event) { e.Due = epoch + due })
}

func (p *tape) move(due int64, r ledger.Result, reason string) {
	p.call(ledger.Event{Op: ledger.Reschedule, Due: epoch + due}, r, reason, func(e *ledger.Event) { e.Due = epoch + due })
}

func (p *tape) settle(o ledger.Op, token string, r ledger.Result) {
	reason := ""
	if r == ledger.Refused {
		reason = ledger.HoldLost
	}
	p.call(ledger.Event{Op: o, Token: token}, r, reason)
}

func (p *tape) extend(token string, hold int64, r ledger.Result) {
	p.call(ledger.Event{Op: ledger.Extend, Token: token}, r, "", func(e *ledger.Event) { e.HoldMS = hold })
}

// deliver is the delivery of a hold of a second.
func (p *tape) deliver(attempt int, token string) {
	p.put(ledger.Event{Kind: ledger.Delivered, Attempt: attempt, Token: token, HoldMS: 1000, Sum: "s"})
}

func (p *tape) found(state string, due int64, more ...func(*ledger.Event)) {
	e := ledger.Event{Kind: ledger.Found, State: state, Due: epoch + due}
	for _, do := range more {
		do(&e)
	}
	p.put(e)
}

// verdict checks the tape, audited at its end.
func (p *tape) verdict(r Rules) *verdict.Verdict {
	if !slices.ContainsFunc(p.events, func(e ledger.Event) bool { return e.Kind == ledger.Topic }) {
		p.put(ledger.Event{Kind: ledger.Topic, HoldMS: 1000})
	}
	p.put(ledger.Event{Kind: ledger.Audited, Topic: "-", Task: "-"})
	h := New([][]ledger.Event{p.events})
	return Check(h, r)
}

// TestCheckerFindsEachViolation plays histories that are right, and ones that are wrong
// by a little.
func TestCheckerFindsEachViolation(t *testing.T) {
	playScenes(t, []scene{
		{"delivered and acked", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"stored by a try that the server repeated", func(p *tape) {
			p.enqueue(100, ledger.Already)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"stored by a try that the server repeated, and early", func(p *tape) {
			p.enqueue(100, ledger.Already)
			p.at(98).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Early},
		{"stored by a try that the server repeated, dead, and requeued", func(p *tape) {
			p.enqueue(100, ledger.Already)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Nack, "a", ledger.OK)
			p.at(200).enqueue(200, ledger.OK)
			p.at(205).deliver(1, "b")
			p.at(206).settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"tried while the server repeated the enqueue", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Nack, "a", ledger.OK)
			p.at(150).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.Already, Due: epoch + 900})
			p.at(900).deliver(2, "b")
			p.at(901).settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"deleted while the server repeated the enqueue", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(50).call(ledger.Event{Op: ledger.Delete}, ledger.OK, "")
			p.at(60).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 100})
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"deleted just before the answer to the enqueue", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(2).call(ledger.Event{Op: ledger.Delete}, ledger.OK, "")
			p.at(5).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 100})
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Resurrected},
		{"an edit finds it acked, and a delete comes later", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
			p.at(110).call(ledger.Event{Op: ledger.Update}, ledger.Refused, ledger.NoTask)
			p.at(200).call(ledger.Event{Op: ledger.Delete}, ledger.Unknown, "")
		}, ""},
		{"never delivered, and gone", func(p *tape) { p.enqueue(100, ledger.OK) }, verdict.Lost},
		{"delivered, never acked, and gone", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
		}, verdict.Lost},
		{"gone after an ack without an answer", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", "")
		}, ""},
		{"gone after an ack that was refused", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.Refused)
		}, verdict.Lost},
		{"gone after a delete with an unknown outcome", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).settle(ledger.Delete, "", ledger.Unknown)
		}, ""},
		{"an enqueue with an unknown outcome may be gone", func(p *tape) { p.enqueue(100, ledger.Unknown) }, ""},
		{"an enqueue without an answer may be delivered", func(p *tape) {
			p.enqueue(100, "")
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"an enqueue that was refused is delivered", func(p *tape) {
			p.enqueue(100, ledger.Refused)
			p.at(100).deliver(1, "a")
		}, verdict.Phantom},
		{"an enqueue that was refused is stored", func(p *tape) {
			p.enqueue(100, ledger.Refused)
			p.at(500).found("ready", 100)
		}, verdict.Phantom},
		{"another payload", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).put(ledger.Event{Kind: ledger.Delivered, Attempt: 1, Token: "a", HoldMS: 1000, Sum: "other"})
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Garbled},
		{"a millisecond early", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(99).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Early},
		{"before the time it was moved to", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).move(300, ledger.OK, "")
			p.at(200).deliver(1, "a")
			p.at(201).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Early},
		{"before a time it may have been moved to", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).move(300, "", "")
			p.at(200).deliver(1, "a")
			p.at(201).settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"moved when it was due, and delivered meanwhile", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(99).move(300, ledger.Refused, ledger.Running)
			p.at(100).deliver(1, "a")
			p.at(101).settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"again before the delay of the nack", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(110).call(ledger.Event{Op: ledger.Nack, Token: "a", DelayMS: 300}, ledger.OK, "")
			p.at(400).deliver(2, "b")
			p.at(401).settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Early},
		{"another task of the key before the delay of the nack", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(100).deliver(1, "a")
			p.at(110).call(ledger.Event{Op: ledger.Nack, Token: "a", DelayMS: 300}, ledger.OK, "")
			p.at(400).put(ledger.Event{Kind: ledger.Delivered, Attempt: 2, Token: "b", ID: "other", HoldMS: 1000, Sum: "s"})
			p.at(401).settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"again while it is held", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(1080).deliver(2, "b")
			p.at(1090).settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Overlap},
		{"again when the hold is over", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(1105).deliver(2, "b")
			p.at(1110).settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"again while an extended hold is alive", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(600).extend("a", 1000, ledger.OK)
			p.at(1300).deliver(2, "b")
			p.at(1310).settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Overlap},
		{"again when a hold is over that may have been extended", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(600).extend("a", 1000, "")
			p.at(1300).deliver(2, "b")
			p.at(1310).settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"again after a nack without an answer", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(110).settle(ledger.Nack, "a", "")
			p.at(200).deliver(2, "b")
			p.at(210).settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"the second attempt is received first, too early", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(2, "b")
			p.at(110).deliver(1, "a")
			p.at(111).settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Overlap},
		{"the first attempt is received last, by a client that slept", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(1105).deliver(2, "b")
			p.at(1110).settle(ledger.Ack, "b", ledger.OK)
			p.at(5000).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.Refused)
		}, ""},
		{"the same hold twice", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(106).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Repeated},
		{"the same attempt under two holds", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(2000).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Repeated},
		{"the same attempt after a release", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Release, "a", ledger.OK)
			p.at(300).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"no time for the first attempt", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Skipped},
		{"time for a first attempt that nobody received", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(1105).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"no time for the second attempt", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(900).deliver(3, "c")
			p.settle(ledger.Ack, "c", ledger.OK)
		}, verdict.Skipped},
		{"an ack is accepted when the next attempt has come", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(1105).deliver(2, "b")
			p.at(1110).settle(ledger.Ack, "b", ledger.Refused)
			p.at(1120).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Stale},
		{"an extend is accepted when the next attempt has come", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(1105).deliver(2, "b")
			p.at(1110).extend("a", 1000, ledger.OK)
			p.at(1120).settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Stale},
		{"an ack is accepted after a nack", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(110).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Stale},
		{"again after an ack", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			p.at(5000).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.Refused)
		}, verdict.Resurrected},
		{"again after an ack without an answer", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", "")
			p.at(5000).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"stored after an ack", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			p.at(5000).found("retrying", 6000)
		}, verdict.Resurrected},
		{"done is no life", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			p.at(5000).found("done", 100)
		}, ""},
		{"delivered after it was deleted", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).settle(ledger.Delete, "", ledger.OK)
			p.at(105).deliver(1, "a")
		}, verdict.Resurrected},
		{"stored after it was deleted", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).settle(ledger.Delete, "", ledger.OK)
			p.at(60).found("scheduled", 100)
		}, verdict.Resurrected},
		{"received after a delete, held before it", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(2000).settle(ledger.Delete, "", ledger.OK)
			p.at(2105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.Refused)
		}, ""},
		{"acked after a delete, which is a resurrection", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(2000).settle(ledger.Delete, "", ledger.OK)
			p.at(2105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Resurrected},
		{"a second life after an enqueue without an answer", func(p *tape) {
			p.enqueue(100, "")
			p.at(20).enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			p.at(500).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"a second life after an enqueue and an ack whose answers the store lost", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s"})
			p.at(5).deliver(1, "a")
			p.at(10).put(ledger.Event{Kind: ledger.Call, Op: ledger.Ack, Call: 101, Token: "a"})
			p.at(300).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 5})
			p.at(310).deliver(1, "b")
			p.at(400).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Ack, Call: 101, Token: "a", Result: ledger.Refused, Reason: ledger.HoldLost})
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"a second life after an ack that was refused at once", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s"})
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Ack, "a", ledger.Refused)
			p.at(300).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 5})
			p.at(310).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Repeated},
		{"a second life after an ack whose answer was lost, of an enqueue answered before it", func(p *tape) {
			p.enqueue(5, ledger.OK)
			p.at(5).deliver(1, "a")
			p.at(10).put(ledger.Event{Kind: ledger.Call, Op: ledger.Ack, Call: 101, Token: "a"})
			p.at(310).deliver(1, "b")
			p.at(400).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Ack, Call: 101, Token: "a", Result: ledger.Refused, Reason: ledger.HoldLost})
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Repeated},
		{"a second life after the first one died, and the enqueue took its place", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s"})
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK)
			p.at(400).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 5, Replaced: "dead"})
			p.at(410).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"the same attempt, though the enqueue took no place", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 1})
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK)
			p.at(400).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.OK, Due: epoch + 5})
			p.at(410).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Repeated},
		{"a second life after the last attempt, and the enqueue has no answer", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 1})
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK)
			p.at(410).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"a second life after the last attempt, and another enqueue was told already", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 1})
			p.enqueue(5, ledger.OK)
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK)
			p.at(400).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.Already, Due: epoch + 5})
			p.at(410).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"the same attempt with another one left, and another enqueue was told already", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 2})
			p.enqueue(5, ledger.OK)
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK)
			p.at(400).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.Already, Due: epoch + 5})
			p.at(410).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Repeated},
		{"a second life of a requeue, and the enqueue of the first was told already", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 2})
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK) // the second attempt runs out, and nobody has seen it
			p.at(2500).call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 5, Sum: "s", Attempts: 2}, ledger.OK, "", func(e *ledger.Event) { e.Due, e.Replaced = epoch+5, "dead" })
			p.at(2600).put(ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: 100, Result: ledger.Already, Due: epoch + 5})
			p.at(2610).deliver(1, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"the same attempt with another one left, and the enqueue has no answer", func(p *tape) {
			p.put(ledger.Event{Kind: ledger.Call, Op: ledger.Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 2})
			p.at(5).deliver(1, "a")
			p.at(10).settle(ledger.Nack, "a", ledger.OK)
			p.at(410).deliver(1, "b")
			p.settle(ledger.Nack, "b", ledger.OK)
			p.at(500).found("retrying", 900)
		}, verdict.Repeated},
		{"no such task, though it waits", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).call(ledger.Event{Op: ledger.Delete}, ledger.Refused, ledger.NoTask)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
		{"no such task after it was acked", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			p.at(150).call(ledger.Event{Op: ledger.Delete}, ledger.Refused, ledger.NoTask)
		}, ""},
		{"running longer before it was due than it may be held", func(p *tape) {
			p.enqueue(400, ledger.OK)
			p.at(100).move(600, ledger.Refused, ledger.Running)
			p.at(405).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
		{"running shortly before it was due", func(p *tape) {
			p.enqueue(400, ledger.OK)
			p.at(390).move(600, ledger.Refused, ledger.Running)
			p.at(405).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"seen shortly before it was due", func(p *tape) {
			p.enqueue(400, ledger.OK)
			p.at(390).deliver(1, "a")
			p.at(410).settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Early},
		{"deleted while it was held", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(300).settle(ledger.Delete, "", ledger.OK)
			p.at(400).settle(ledger.Ack, "a", ledger.Refused)
		}, verdict.Wrong},
		{"dead as permanent, though nobody said so", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(300).found("dead", 100, func(e *ledger.Event) { e.Reason = "permanent" })
		}, verdict.Wrong},
		{"dead with retries left", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(300).found("dead", 100, func(e *ledger.Event) { e.Reason, e.Retries, e.MaxRetries = "max_retries", 1, 3 })
		}, verdict.Wrong},
		{"dead after the last retry", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.settle(ledger.Nack, "a", ledger.OK)
			p.at(300).found("dead", 100, func(e *ledger.Event) { e.Reason = "max_retries" })
		}, ""},
		{"an ack is refused while the hold is alive", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(200).settle(ledger.Ack, "a", ledger.Refused)
			p.at(1200).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, verdict.Wrong},
		{"ready for long", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(20_000).found("ready", 100)
		}, verdict.Stuck},
		{"ready since a moment ago", func(p *tape) {
			p.enqueue(19_000, ledger.OK)
			p.at(20_000).found("ready", 19_000)
		}, ""},
		{"running though its hold is over", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(105).deliver(1, "a")
			p.at(20_000).found("running", 100, func(e *ledger.Event) { e.HoldMS = -15_000 })
		}, verdict.Stuck},
	})
}

// scene is a history, and what the checker has to say of it.
type scene struct {
	name string
	play func(*tape)
	want verdict.Violation // "" for none
}

func playScenes(t *testing.T, scenes []scene) {
	t.Helper()
	for _, test := range scenes {
		t.Run(test.name, func(t *testing.T) {
			p := &tape{}
			test.play(p)
			v := p.verdict(Rules{})
			var got []verdict.Violation
			for _, o := range v.Offences {
				got = append(got, o.Violation)
			}
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("got %v, want none: %s\n%s", got, v.Offences[0].Why, v.Offences[0].Lines())
			case test.want != "" && !slices.Contains(got, test.want):
				t.Errorf("got %v, want %s", got, test.want)
			}
			if v.OK() != (len(got) == 0 && v.Acknowledged > 0) {
				t.Errorf("ok is %v with %v", v.OK(), got)
			}
		})
	}
}

// TestAllowanceExcusesOnlyItsWindow loses a task that was acknowledged at different
// times before a fault.
func TestAllowanceExcusesOnlyItsWindow(t *testing.T) {
	for _, test := range []struct {
		acknowledged int64
		want         int
	}{{400, 1}, {998, 1}, {1000, 0}, {2000, 0}, {3500, 0}, {4200, 1}} {
		t.Run(fmt.Sprint(test.acknowledged), func(t *testing.T) {
			p := &tape{}
			p.at(0).put(ledger.Event{Kind: ledger.Topic})
			p.at(test.acknowledged).enqueue(9000, ledger.OK)
			p.at(3000).put(ledger.Event{Kind: ledger.Fault, Fault: "powercut", Topic: "-", Task: "-"})
			p.at(4000).put(ledger.Event{Kind: ledger.Healed, Fault: "powercut", Topic: "-", Task: "-"})
			v := p.at(9000).verdict(Rules{Allowances: []Allowance{{"powercut", 2 * time.Second}, {"other", time.Hour}}})
			if v.Counts[verdict.Lost] != test.want {
				t.Errorf("lost %d, want %d", v.Counts[verdict.Lost], test.want)
			}
		})
	}
}

// TestEarlyIsOnTheStoresClock delivers at the due time of a machine whose clock is
// ahead of the store's.
func TestEarlyIsOnTheStoresClock(t *testing.T) {
	for _, test := range []struct {
		ahead int64 // of the store's clock, ms
		want  int
	}{{-50, 1}, {0, 0}, {50, 0}} {
		p := &tape{}
		for ms := int64(0); ms < 1000; ms += 10 {
			p.at(ms).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + ms + test.ahead, Took: millisecond})
		}
		p.at(1).enqueue(500, ledger.OK)
		p.at(500).deliver(1, "a")
		p.at(510).settle(ledger.Ack, "a", ledger.OK)
		if v := p.verdict(Rules{}); v.Counts[verdict.Early] != test.want {
			t.Errorf("store ahead by %d ms: early %d, want %d", test.ahead, v.Counts[verdict.Early], test.want)
		}
	}
}

// TestClockSetBackExcusesWhatWasDueBefore delivers tasks just after the store's clock
// was set back: one that had been due until then, and one that had not.
func TestClockSetBackExcusesWhatWasDueBefore(t *testing.T) {
	for _, test := range []struct {
		due  int64
		want int
	}{{480, 0}, {511, 0}, {530, 1}} {
		p := &tape{}
		for ms := int64(0); ms < 1000; ms += 10 {
			now := epoch + ms
			if ms > 500 {
				now -= 3_600_000
			}
			p.at(ms).put(ledger.Event{Kind: ledger.Clock, StoreNow: now, Took: millisecond})
		}
		p.at(1).enqueue(test.due, ledger.OK)
		p.at(535).deliver(1, "a") // held before, and long on its way
		p.at(540).settle(ledger.Ack, "a", ledger.OK)
		if v := p.verdict(Rules{}); v.Counts[verdict.Early] != test.want {
			t.Errorf("due at %d: early %d, want %d", test.due, v.Counts[verdict.Early], test.want)
		}
	}
}

// TestClockSetBackExcusesWhatWasMade is the same for a task of which nothing is known but that it
// was delivered: a schedule made it.
func TestClockSetBackExcusesWhatWasMade(t *testing.T) {
	for _, test := range []struct {
		due  int64
		want int
	}{{480, 0}, {530, 1}} {
		p := &tape{}
		for ms := int64(0); ms < 1000; ms += 10 {
			now := epoch + ms
			if ms > 500 {
				now -= 3_600_000
			}
			p.at(ms).put(ledger.Event{Kind: ledger.Clock, StoreNow: now, Took: millisecond})
		}
		p.at(1).diaryOf(every200())
		p.at(535).begun(test.due)
		if v := p.verdict(Rules{}); v.Counts[verdict.Early] != test.want || v.Counts[verdict.Premature] != test.want {
			t.Errorf("due at %d: early %d, premature %d, want %d", test.due, v.Counts[verdict.Early], v.Counts[verdict.Premature], test.want)
		}
	}
}

// TestClockSetAheadEndsHolds has an attempt run out that nobody received, because the clock was set
// ahead while it was held.
func TestClockSetAheadEndsHolds(t *testing.T) {
	for _, test := range []struct {
		ahead int64
		want  int
	}{{0, 1}, {3_600_000, 0}} {
		p := &tape{}
		for ms := int64(0); ms < 1000; ms += 10 {
			now := epoch + ms
			if ms > 500 {
				now += test.ahead
			}
			p.at(ms).put(ledger.Event{Kind: ledger.Clock, StoreNow: now, Took: millisecond})
		}
		p.at(1).enqueue(100, ledger.OK)
		p.at(105).deliver(1, "a")
		p.settle(ledger.Nack, "a", ledger.OK)
		p.at(600).deliver(3, "c")
		p.settle(ledger.Ack, "c", ledger.OK)
		if v := p.verdict(Rules{}); v.Counts[verdict.Skipped] != test.want {
			t.Errorf("ahead by %d ms: skipped %d, want %d", test.ahead, v.Counts[verdict.Skipped], test.want)
		}
	}
}

// TestPhasesTellFaultsFromCalm delivers one task a step, except for a while after a
// fault.
func TestPhasesTellFaultsFromCalm(t *testing.T) {
	p := &tape{}
	for i := range int64(30) {
		id := fmt.Sprint(i)
		due := i * 100
		at := due + 1
		if due >= 1000 && due < 1500 {
			at = 1500
		}
		p.calls++
		p.at(due - 50).put(ledger.Event{Kind: ledger.Call, Call: p.calls, Op: ledger.Enqueue, Task: id, Due: epoch + due, Sum: "s"})
		p.put(ledger.Event{Kind: ledger.Answer, Call: p.calls, Op: ledger.Enqueue, Task: id, Due: epoch + due, Result: ledger.OK})
		p.at(at).put(ledger.Event{Kind: ledger.Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s"})
		p.calls++
		p.put(ledger.Event{Kind: ledger.Call, Call: p.calls, Op: ledger.Ack, Task: id, Token: id})
		p.put(ledger.Event{Kind: ledger.Answer, Call: p.calls, Op: ledger.Ack, Task: id, Token: id, Result: ledger.OK})
	}
	p.at(1000).put(ledger.Event{Kind: ledger.Fault, Fault: "cut"})
	p.at(1500).put(ledger.Event{Kind: ledger.Healed, Fault: "cut"})
	v := p.at(3000).verdict(Rules{})
	if len(v.Offences) > 0 || len(v.Phases) != 3 {
		t.Fatalf("got %d offences and phases %+v, want none and 3", len(v.Offences), v.Phases)
	}
	for i, want := range []struct {
		name    string
		tasks   int
		longest float64 // no delivery, ms
	}{{"calm", 10, 1}, {"cut", 5, 500}, {"after cut", 15, 1}} {
		got := v.Phases[i]
		if got.Name != want.name || got.Tasks != want.tasks || got.NoDeliveryMS != want.longest {
			t.Errorf("phase %d is %+v, want %+v", i, got, want)
		}
	}
	if late := v.Phases[1].LateMS.Max; late < 490 || late > 510 {
		t.Errorf("worst lateness in the fault is %v ms, want 500", late)
	}
}

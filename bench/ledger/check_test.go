package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// tape makes the history of one task, "t", in milliseconds.
type tape struct {
	events []Event
	now    int64
	calls  uint64
}

// epoch is the time of day at which tapes begin, ms.
const epoch = 1_700_000_000_000

func (p *tape) put(e Event) {
	e.Mono, e.Wall = p.now*millisecond, (epoch+p.now)*millisecond
	if e.Topic == "" {
		e.Topic = "topic"
	}
	if e.Task == "" && e.Kind != Topic {
		e.Task = "t"
	}
	p.events = append(p.events, e)
}

func (p *tape) at(ms int64) *tape { p.now = ms; return p }

// call is one that is answered 1 ms later; an empty result is no answer.
func (p *tape) call(e Event, r Result, reason string, more ...func(*Event)) {
	p.calls++
	e.Kind, e.Call = Call, p.calls
	p.put(e)
	p.now++
	if r == "" {
		return
	}
	answer := Event{Kind: Answer, Call: p.calls, Op: e.Op, Token: e.Token, Result: r, Reason: reason}
	for _, do := range more {
		do(&answer)
	}
	p.put(answer)
}

func (p *tape) enqueue(due int64, r Result) {
	p.call(Event{Op: Enqueue, Due: epoch + due, Sum: "s"}, r, "", func(e *Event) { e.Due = epoch + due })
}

func (p *tape) move(due int64, r Result, reason string) {
	p.call(Event{Op: Reschedule, Due: epoch + due}, r, reason, func(e *Event) { e.Due = epoch + due })
}

func (p *tape) settle(o Op, token string, r Result) {
	reason := ""
	if r == Refused {
		reason = HoldLost
	}
	p.call(Event{Op: o, Token: token}, r, reason)
}

func (p *tape) extend(token string, hold int64, r Result) {
	p.call(Event{Op: Extend, Token: token}, r, "", func(e *Event) { e.HoldMS = hold })
}

// deliver is the delivery of a hold of a second.
func (p *tape) deliver(attempt int, token string) {
	p.put(Event{Kind: Delivered, Attempt: attempt, Token: token, HoldMS: 1000, Sum: "s"})
}

func (p *tape) found(state string, due int64, more ...func(*Event)) {
	e := Event{Kind: Found, State: state, Due: epoch + due}
	for _, do := range more {
		do(&e)
	}
	p.put(e)
}

// verdict checks the tape, audited at its end.
func (p *tape) verdict(r Rules) *Verdict {
	if !slices.ContainsFunc(p.events, func(e Event) bool { return e.Kind == Topic }) {
		p.put(Event{Kind: Topic, HoldMS: 1000})
	}
	p.put(Event{Kind: Audited, Topic: "-", Task: "-"})
	h := New([][]Event{p.events})
	return Check(h, r)
}

// TestCheckerFindsEachViolation plays histories that are right, and ones that are wrong
// by a little.
func TestCheckerFindsEachViolation(t *testing.T) {
	playScenes(t, []scene{
		{"delivered and acked", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, ""},
		{"stored by a try that the server repeated", func(p *tape) {
			p.enqueue(100, Already)
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, ""},
		{"stored by a try that the server repeated, and early", func(p *tape) {
			p.enqueue(100, Already)
			p.at(98).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, Early},
		{"tried while the server repeated the enqueue", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(100).deliver(1, "a")
			p.at(101).settle(Nack, "a", OK)
			p.at(150).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: Already, Due: epoch + 900})
			p.at(900).deliver(2, "b")
			p.at(901).settle(Ack, "b", OK)
		}, ""},
		{"deleted while the server repeated the enqueue", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(50).call(Event{Op: Delete}, OK, "")
			p.at(60).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 100})
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, ""},
		{"deleted just before the answer to the enqueue", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 100, Sum: "s"})
			p.at(2).call(Event{Op: Delete}, OK, "")
			p.at(5).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 100})
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, Resurrected},
		{"an edit finds it acked, and a delete comes later", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
			p.at(110).call(Event{Op: Update}, Refused, NoTask)
			p.at(200).call(Event{Op: Delete}, Unknown, "")
		}, ""},
		{"never delivered, and gone", func(p *tape) { p.enqueue(100, OK) }, Lost},
		{"delivered, never acked, and gone", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
		}, Lost},
		{"gone after an ack without an answer", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", "")
		}, ""},
		{"gone after an ack that was refused", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", Refused)
		}, Lost},
		{"gone after a delete with an unknown outcome", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).settle(Delete, "", Unknown)
		}, ""},
		{"an enqueue with an unknown outcome may be gone", func(p *tape) { p.enqueue(100, Unknown) }, ""},
		{"an enqueue without an answer may be delivered", func(p *tape) {
			p.enqueue(100, "")
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, ""},
		{"an enqueue that was refused is delivered", func(p *tape) {
			p.enqueue(100, Refused)
			p.at(100).deliver(1, "a")
		}, Phantom},
		{"an enqueue that was refused is stored", func(p *tape) {
			p.enqueue(100, Refused)
			p.at(500).found("ready", 100)
		}, Phantom},
		{"another payload", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).put(Event{Kind: Delivered, Attempt: 1, Token: "a", HoldMS: 1000, Sum: "other"})
			p.settle(Ack, "a", OK)
		}, Garbled},
		{"a millisecond early", func(p *tape) {
			p.enqueue(100, OK)
			p.at(99).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, Early},
		{"before the time it was moved to", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).move(300, OK, "")
			p.at(200).deliver(1, "a")
			p.at(201).settle(Ack, "a", OK)
		}, Early},
		{"before a time it may have been moved to", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).move(300, "", "")
			p.at(200).deliver(1, "a")
			p.at(201).settle(Ack, "a", OK)
		}, ""},
		{"moved when it was due, and delivered meanwhile", func(p *tape) {
			p.enqueue(100, OK)
			p.at(99).move(300, Refused, Running)
			p.at(100).deliver(1, "a")
			p.at(101).settle(Ack, "a", OK)
		}, ""},
		{"again before the delay of the nack", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(110).call(Event{Op: Nack, Token: "a", DelayMS: 300}, OK, "")
			p.at(400).deliver(2, "b")
			p.at(401).settle(Ack, "b", OK)
		}, Early},
		{"another task of the key before the delay of the nack", func(p *tape) {
			p.enqueue(100, OK)
			p.at(100).deliver(1, "a")
			p.at(110).call(Event{Op: Nack, Token: "a", DelayMS: 300}, OK, "")
			p.at(400).put(Event{Kind: Delivered, Attempt: 2, Token: "b", ID: "other", HoldMS: 1000, Sum: "s"})
			p.at(401).settle(Ack, "b", OK)
		}, ""},
		{"again while it is held", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(1080).deliver(2, "b")
			p.at(1090).settle(Ack, "b", OK)
		}, Overlap},
		{"again when the hold is over", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(1105).deliver(2, "b")
			p.at(1110).settle(Ack, "b", OK)
		}, ""},
		{"again while an extended hold is alive", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(600).extend("a", 1000, OK)
			p.at(1300).deliver(2, "b")
			p.at(1310).settle(Ack, "b", OK)
		}, Overlap},
		{"again when a hold is over that may have been extended", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(600).extend("a", 1000, "")
			p.at(1300).deliver(2, "b")
			p.at(1310).settle(Ack, "b", OK)
		}, ""},
		{"again after a nack without an answer", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(110).settle(Nack, "a", "")
			p.at(200).deliver(2, "b")
			p.at(210).settle(Ack, "b", OK)
		}, ""},
		{"the second attempt is received first, too early", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(2, "b")
			p.at(110).deliver(1, "a")
			p.at(111).settle(Ack, "b", OK)
		}, Overlap},
		{"the first attempt is received last, by a client that slept", func(p *tape) {
			p.enqueue(100, OK)
			p.at(1105).deliver(2, "b")
			p.at(1110).settle(Ack, "b", OK)
			p.at(5000).deliver(1, "a")
			p.settle(Ack, "a", Refused)
		}, ""},
		{"the same hold twice", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(106).deliver(1, "a")
			p.settle(Ack, "a", OK)
		}, Repeated},
		{"the same attempt under two holds", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(2000).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, Repeated},
		{"the same attempt after a release", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Release, "a", OK)
			p.at(300).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, ""},
		{"no time for the first attempt", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(2, "b")
			p.settle(Ack, "b", OK)
		}, Skipped},
		{"time for a first attempt that nobody received", func(p *tape) {
			p.enqueue(100, OK)
			p.at(1105).deliver(2, "b")
			p.settle(Ack, "b", OK)
		}, ""},
		{"no time for the second attempt", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Nack, "a", OK)
			p.at(900).deliver(3, "c")
			p.settle(Ack, "c", OK)
		}, Skipped},
		{"an ack is accepted when the next attempt has come", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(1105).deliver(2, "b")
			p.at(1110).settle(Ack, "b", Refused)
			p.at(1120).settle(Ack, "a", OK)
		}, Stale},
		{"an extend is accepted when the next attempt has come", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(1105).deliver(2, "b")
			p.at(1110).extend("a", 1000, OK)
			p.at(1120).settle(Ack, "b", OK)
		}, Stale},
		{"an ack is accepted after a nack", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Nack, "a", OK)
			p.at(110).settle(Ack, "a", OK)
		}, Stale},
		{"again after an ack", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", OK)
			p.at(5000).deliver(2, "b")
			p.settle(Ack, "b", Refused)
		}, Resurrected},
		{"again after an ack without an answer", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", "")
			p.at(5000).deliver(2, "b")
			p.settle(Ack, "b", OK)
		}, ""},
		{"stored after an ack", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", OK)
			p.at(5000).found("retrying", 6000)
		}, Resurrected},
		{"done is no life", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", OK)
			p.at(5000).found("done", 100)
		}, ""},
		{"delivered after it was deleted", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).settle(Delete, "", OK)
			p.at(105).deliver(1, "a")
		}, Resurrected},
		{"stored after it was deleted", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).settle(Delete, "", OK)
			p.at(60).found("scheduled", 100)
		}, Resurrected},
		{"received after a delete, held before it", func(p *tape) {
			p.enqueue(100, OK)
			p.at(2000).settle(Delete, "", OK)
			p.at(2105).deliver(1, "a")
			p.settle(Ack, "a", Refused)
		}, ""},
		{"acked after a delete, which is a resurrection", func(p *tape) {
			p.enqueue(100, OK)
			p.at(2000).settle(Delete, "", OK)
			p.at(2105).deliver(1, "a")
			p.settle(Ack, "a", OK)
		}, Resurrected},
		{"a second life after an enqueue without an answer", func(p *tape) {
			p.enqueue(100, "")
			p.at(20).enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", OK)
			p.at(500).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, ""},
		{"a second life after an enqueue and an ack whose answers the store lost", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 5, Sum: "s"})
			p.at(5).deliver(1, "a")
			p.at(10).put(Event{Kind: Call, Op: Ack, Call: 101, Token: "a"})
			p.at(300).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 5})
			p.at(310).deliver(1, "b")
			p.at(400).put(Event{Kind: Answer, Op: Ack, Call: 101, Token: "a", Result: Refused, Reason: HoldLost})
			p.settle(Ack, "b", OK)
		}, ""},
		{"a second life after an ack that was refused at once", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 5, Sum: "s"})
			p.at(5).deliver(1, "a")
			p.at(10).settle(Ack, "a", Refused)
			p.at(300).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 5})
			p.at(310).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, Repeated},
		{"a second life after an ack whose answer was lost, of an enqueue answered before it", func(p *tape) {
			p.enqueue(5, OK)
			p.at(5).deliver(1, "a")
			p.at(10).put(Event{Kind: Call, Op: Ack, Call: 101, Token: "a"})
			p.at(310).deliver(1, "b")
			p.at(400).put(Event{Kind: Answer, Op: Ack, Call: 101, Token: "a", Result: Refused, Reason: HoldLost})
			p.settle(Ack, "b", OK)
		}, Repeated},
		{"a second life after the first one died, and the enqueue took its place", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 5, Sum: "s"})
			p.at(5).deliver(1, "a")
			p.at(10).settle(Nack, "a", OK)
			p.at(400).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 5, Replaced: "dead"})
			p.at(410).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, ""},
		{"the same attempt, though the enqueue took no place", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 1})
			p.at(5).deliver(1, "a")
			p.at(10).settle(Nack, "a", OK)
			p.at(400).put(Event{Kind: Answer, Op: Enqueue, Call: 100, Result: OK, Due: epoch + 5})
			p.at(410).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, Repeated},
		{"a second life after the last attempt, and the enqueue has no answer", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 1})
			p.at(5).deliver(1, "a")
			p.at(10).settle(Nack, "a", OK)
			p.at(410).deliver(1, "b")
			p.settle(Ack, "b", OK)
		}, ""},
		{"the same attempt with another one left, and the enqueue has no answer", func(p *tape) {
			p.put(Event{Kind: Call, Op: Enqueue, Call: 100, Due: epoch + 5, Sum: "s", Attempts: 2})
			p.at(5).deliver(1, "a")
			p.at(10).settle(Nack, "a", OK)
			p.at(410).deliver(1, "b")
			p.settle(Nack, "b", OK)
			p.at(500).found("retrying", 900)
		}, Repeated},
		{"no such task, though it waits", func(p *tape) {
			p.enqueue(100, OK)
			p.at(50).call(Event{Op: Delete}, Refused, NoTask)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", OK)
		}, Wrong},
		{"no such task after it was acked", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Ack, "a", OK)
			p.at(150).call(Event{Op: Delete}, Refused, NoTask)
		}, ""},
		{"running longer before it was due than it may be held", func(p *tape) {
			p.enqueue(400, OK)
			p.at(100).move(600, Refused, Running)
			p.at(405).deliver(1, "a")
			p.settle(Ack, "a", OK)
		}, Wrong},
		{"running shortly before it was due", func(p *tape) {
			p.enqueue(400, OK)
			p.at(390).move(600, Refused, Running)
			p.at(405).deliver(1, "a")
			p.settle(Ack, "a", OK)
		}, ""},
		{"seen shortly before it was due", func(p *tape) {
			p.enqueue(400, OK)
			p.at(390).deliver(1, "a")
			p.at(410).settle(Ack, "a", OK)
		}, Early},
		{"deleted while it was held", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(300).settle(Delete, "", OK)
			p.at(400).settle(Ack, "a", Refused)
		}, Wrong},
		{"dead as permanent, though nobody said so", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Nack, "a", OK)
			p.at(300).found("dead", 100, func(e *Event) { e.Reason = "permanent" })
		}, Wrong},
		{"dead with retries left", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Nack, "a", OK)
			p.at(300).found("dead", 100, func(e *Event) { e.Reason, e.Retries, e.MaxRetries = "max_retries", 1, 3 })
		}, Wrong},
		{"dead after the last retry", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.settle(Nack, "a", OK)
			p.at(300).found("dead", 100, func(e *Event) { e.Reason = "max_retries" })
		}, ""},
		{"an ack is refused while the hold is alive", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(200).settle(Ack, "a", Refused)
			p.at(1200).deliver(2, "b")
			p.settle(Ack, "b", OK)
		}, Wrong},
		{"ready for long", func(p *tape) {
			p.enqueue(100, OK)
			p.at(20_000).found("ready", 100)
		}, Stuck},
		{"ready since a moment ago", func(p *tape) {
			p.enqueue(19_000, OK)
			p.at(20_000).found("ready", 19_000)
		}, ""},
		{"running though its hold is over", func(p *tape) {
			p.enqueue(100, OK)
			p.at(105).deliver(1, "a")
			p.at(20_000).found("running", 100, func(e *Event) { e.HoldMS = -15_000 })
		}, Stuck},
	})
}

// scene is a history, and what the checker has to say of it.
type scene struct {
	name string
	play func(*tape)
	want Violation // "" for none
}

func playScenes(t *testing.T, scenes []scene) {
	t.Helper()
	for _, test := range scenes {
		t.Run(test.name, func(t *testing.T) {
			p := &tape{}
			test.play(p)
			v := p.verdict(Rules{})
			var got []Violation
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
			p.at(0).put(Event{Kind: Topic})
			p.at(test.acknowledged).enqueue(9000, OK)
			p.at(3000).put(Event{Kind: Fault, Fault: "powercut", Topic: "-", Task: "-"})
			p.at(4000).put(Event{Kind: Healed, Fault: "powercut", Topic: "-", Task: "-"})
			v := p.at(9000).verdict(Rules{Allowances: []Allowance{{"powercut", 2 * time.Second}, {"other", time.Hour}}})
			if v.Counts[Lost] != test.want {
				t.Errorf("lost %d, want %d", v.Counts[Lost], test.want)
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
			p.at(ms).put(Event{Kind: Clock, StoreNow: epoch + ms + test.ahead, Took: millisecond})
		}
		p.at(1).enqueue(500, OK)
		p.at(500).deliver(1, "a")
		p.at(510).settle(Ack, "a", OK)
		if v := p.verdict(Rules{}); v.Counts[Early] != test.want {
			t.Errorf("store ahead by %d ms: early %d, want %d", test.ahead, v.Counts[Early], test.want)
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
			p.at(ms).put(Event{Kind: Clock, StoreNow: now, Took: millisecond})
		}
		p.at(1).enqueue(test.due, OK)
		p.at(535).deliver(1, "a") // held before, and long on its way
		p.at(540).settle(Ack, "a", OK)
		if v := p.verdict(Rules{}); v.Counts[Early] != test.want {
			t.Errorf("due at %d: early %d, want %d", test.due, v.Counts[Early], test.want)
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
		p.at(due - 50).put(Event{Kind: Call, Call: p.calls, Op: Enqueue, Task: id, Due: epoch + due, Sum: "s"})
		p.put(Event{Kind: Answer, Call: p.calls, Op: Enqueue, Task: id, Due: epoch + due, Result: OK})
		p.at(at).put(Event{Kind: Delivered, Task: id, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s"})
		p.calls++
		p.put(Event{Kind: Call, Call: p.calls, Op: Ack, Task: id, Token: id})
		p.put(Event{Kind: Answer, Call: p.calls, Op: Ack, Task: id, Token: id, Result: OK})
	}
	p.at(1000).put(Event{Kind: Fault, Fault: "cut"})
	p.at(1500).put(Event{Kind: Healed, Fault: "cut"})
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

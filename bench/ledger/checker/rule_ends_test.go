package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// cancel asks for the end of the task.
func (p *tape) cancel(r ledger.Result, reason, outcome string) {
	p.call(ledger.Event{Op: ledger.Cancel}, r, reason, func(e *ledger.Event) { e.Outcome = outcome })
}

// ack is one with a result.
func (p *tape) ack(token, output string, r ledger.Result) {
	p.call(ledger.Event{Op: ledger.Ack, Token: token, Output: output}, r, "")
}

// kept makes the topic of a tape one that keeps done tasks, enqueues the task and
// delivers it.
func (p *tape) kept() {
	p.limited(ledger.Event{KeepMS: 1000})
	p.enqueue(100, ledger.OK)
	p.at(100).put(ledger.Event{Kind: ledger.Delivered, Attempt: 1, Token: "a", HoldMS: 1000, Sum: "s", Client: "w"})
}

func (p *tape) done(output string, history ...ledger.Attempt) {
	p.at(900).found("done", 100, func(e *ledger.Event) { e.Output, e.History = output, history })
}

func was(number int, outcome string, started, ended int64) ledger.Attempt {
	return ledger.Attempt{Number: number, Worker: "w", Started: epoch + started, Ended: epoch + ended, Outcome: outcome}
}

func TestCheckerFindsWrongEnds(t *testing.T) {
	dead := func(e *ledger.Event) {
		e.Reason, e.History = "cancelled", []ledger.Attempt{was(1, "cancelled", 100, 120)}
	}
	playScenes(t, []scene{
		{"cancelled", func(p *tape) {
			p.kept()
			p.at(110).cancel(ledger.OK, "", confirmed)
			p.at(115).settle(ledger.Nack, "a", ledger.OK)
			p.at(900).found("dead", 100, dead)
		}, ""},
		{"cancelled, and acked", func(p *tape) {
			p.kept()
			p.at(110).cancel(ledger.OK, "", confirmed)
			p.at(115).ack("a", "r", ledger.OK)
			p.done("r", was(1, "acked", 100, 115))
		}, verdict.Wrong},
		{"asked to stop, and acked all the same", func(p *tape) {
			p.kept()
			p.at(110).cancel(ledger.OK, "", requested)
			p.at(115).ack("a", "r", ledger.OK)
			p.done("r", was(1, "acked", 100, 115))
		}, ""},
		{"asked to stop when it was held ahead, and nobody heard", func(p *tape) {
			p.limited(ledger.Event{KeepMS: 1000})
			p.enqueue(200, ledger.OK)
			p.at(110).cancel(ledger.OK, "", requested)
			p.at(200).put(ledger.Event{Kind: ledger.Delivered, Attempt: 1, Token: "a", HoldMS: 1000, Sum: "s", Client: "w", Due: epoch + 200})
			p.ack("a", "r", ledger.OK)
			p.at(900).found("done", 200, func(e *ledger.Event) { e.Output, e.History = "r", []ledger.Attempt{was(1, "acked", 200, 202)} })
		}, ""},
		{"asked to stop when it was held ahead, by nobody who had it before", func(p *tape) {
			p.kept()
			p.at(1190).cancel(ledger.OK, "", requested)
			p.at(1201).put(ledger.Event{Kind: ledger.Delivered, Attempt: 2, Token: "b", HoldMS: 1000, Sum: "s", Client: "w", Due: epoch + 1200})
			p.ack("b", "r", ledger.OK)
			p.at(1900).found("done", 1200, func(e *ledger.Event) {
				e.Output, e.History = "r", []ledger.Attempt{was(1, "expired", 100, 1100), was(2, "acked", 1200, 1202)}
			})
		}, ""},
		{"asked to stop, and tried again", func(p *tape) {
			p.kept()
			p.at(110).cancel(ledger.OK, "", requested)
			p.at(115).settle(ledger.Nack, "a", ledger.OK)
			p.at(300).put(ledger.Event{Kind: ledger.Delivered, Attempt: 2, Token: "b", HoldMS: 1000, Sum: "s", Client: "w", Due: epoch + 200})
			p.ack("b", "r", ledger.OK)
			p.done("r", was(1, "failed", 100, 115), was(2, "acked", 300, 302))
		}, verdict.Resurrected},
		{"too late, and tried again", func(p *tape) {
			p.kept()
			p.at(115).settle(ledger.Nack, "a", ledger.OK)
			p.at(120).cancel(ledger.OK, "", tooLate)
			p.at(300).put(ledger.Event{Kind: ledger.Delivered, Attempt: 2, Token: "b", HoldMS: 1000, Sum: "s", Client: "w", Due: epoch + 200})
			p.ack("b", "r", ledger.OK)
			p.done("r", was(1, "failed", 100, 115), was(2, "acked", 300, 302))
		}, verdict.Resurrected},
		{"does not run, while it is held", func(p *tape) {
			p.kept()
			p.at(110).cancel(ledger.Refused, notRunning, "")
			p.at(200).ack("a", "r", ledger.OK)
			p.done("r", was(1, "acked", 100, 200))
		}, verdict.Wrong},
		{"deleted by a cancel, and delivered", func(p *tape) {
			p.enqueue(100, ledger.OK)
			p.at(50).call(ledger.Event{Op: ledger.Cancel, Final: true}, ledger.OK, "", func(e *ledger.Event) { e.Outcome = dropped })
			p.at(100).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Resurrected},
		{"dead as cancelled, though nobody asked", func(p *tape) {
			p.kept()
			p.at(115).settle(ledger.Nack, "a", ledger.OK)
			p.at(900).found("dead", 100, dead)
		}, verdict.Wrong},
		{"done and kept, with its result", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.done("r", was(1, "acked", 100, 110))
		}, ""},
		{"done and not kept", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
		}, verdict.Lost},
		{"another result", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.done("q", was(1, "acked", 100, 110))
		}, verdict.Wrong},
		{"a result that no worker gave", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", "")
			p.done("q", was(1, "acked", 100, 110))
		}, verdict.Wrong},
		{"a wait that tells another result", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.at(120).call(ledger.Event{Op: ledger.Wait}, ledger.OK, "", func(e *ledger.Event) { e.State, e.Output = "done", "q" })
			p.done("r", was(1, "acked", 100, 110))
		}, verdict.Wrong},
		{"a wait that finds nothing", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.at(120).call(ledger.Event{Op: ledger.Wait}, ledger.Refused, ledger.NoTask)
			p.done("r", was(1, "acked", 100, 110))
		}, verdict.Wrong},
		{"a wait that is done before the ack", func(p *tape) {
			p.kept()
			p.at(105).call(ledger.Event{Op: ledger.Wait}, ledger.OK, "", func(e *ledger.Event) { e.State, e.Output = "done", "r" })
			p.at(110).ack("a", "r", "")
			p.done("r", was(1, "acked", 100, 110))
		}, verdict.Wrong},
		{"an attempt is not in the history", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.done("r")
		}, verdict.Wrong},
		{"an attempt ended otherwise", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.done("r", was(1, "hold_expired", 100, 110))
		}, verdict.Wrong},
		{"an attempt began after it was received", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.done("r", was(1, "acked", 105, 110))
		}, verdict.Wrong},
		{"an attempt that no worker made", func(p *tape) {
			p.kept()
			p.at(110).ack("a", "r", ledger.OK)
			p.done("r", was(1, "acked", 100, 110), was(2, "failed", 200, 210))
		}, verdict.Wrong},
		{"an attempt that nobody received", func(p *tape) {
			p.kept()
			p.at(1200).put(ledger.Event{Kind: ledger.Delivered, Attempt: 2, Token: "b", HoldMS: 1000, Sum: "s", Client: "w"})
			p.ack("b", "r", ledger.OK)
			p.at(1300).found("done", 100, func(e *ledger.Event) {
				e.Output, e.History = "r", []ledger.Attempt{was(1, "hold_expired", 100, 1100), was(2, "acked", 1199, 1201)}
			})
		}, ""},
		{"within the time that it may be due", func(p *tape) {
			p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 150 })
			p.at(150).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"before the time that was chosen", func(p *tape) {
			p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 150 })
			p.at(140).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Early},
		{"due later than it may be", func(p *tape) {
			p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 201 })
			p.at(250).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
		{"deleted, and enqueued again, due at another time", func(p *tape) {
			for i := range int64(2) {
				p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 150 + i })
				if i == 0 {
					p.settle(ledger.Delete, "", ledger.Unknown)
				}
			}
			p.at(250).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"moved, and enqueued again", func(p *tape) {
			e := ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}
			p.call(e, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 150 })
			p.move(50, ledger.OK, "")
			p.call(e, ledger.Already, "", func(e *ledger.Event) { e.Due = epoch + 50 })
			p.at(51).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, ""},
		{"tried, and enqueued again", func(p *tape) {
			e := ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}
			p.call(e, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 150 })
			p.at(150).deliver(1, "a")
			p.call(ledger.Event{Op: ledger.Nack, Token: "a"}, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 300 })
			p.call(e, ledger.Already, "", func(e *ledger.Event) { e.Due = epoch + 300 })
			p.at(300).deliver(2, "b")
			p.settle(ledger.Ack, "b", ledger.OK)
		}, ""},
		{"due too late, and moved only then", func(p *tape) {
			e := ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}
			p.call(e, ledger.OK, "", func(e *ledger.Event) { e.Due = epoch + 200 })
			p.call(e, ledger.Already, "", func(e *ledger.Event) { e.Due = epoch + 201 })
			p.move(250, ledger.OK, "")
			p.at(251).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
		{"due at two times", func(p *tape) {
			for i := range int64(2) {
				p.call(ledger.Event{Op: ledger.Enqueue, Due: epoch + 100, Latest: epoch + 200, Sum: "s"}, []ledger.Result{ledger.OK, ledger.Already}[i], "", func(e *ledger.Event) { e.Due = epoch + 150 + i })
			}
			p.at(250).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
	})
}

// change of the topic.
func (p *tape) change(o ledger.Op, version int64, r ledger.Result) {
	p.calls++
	e := ledger.Event{Kind: ledger.Call, Op: o, Call: p.calls, Settings: string(o)}
	for _, kind := range []ledger.Kind{ledger.Call, ledger.Answer} {
		e.Kind, e.Mono, e.Wall, e.Topic = kind, p.now*millisecond, (epoch+p.now)*millisecond, "topic"
		if kind == ledger.Answer {
			e.Result, e.Version = r, version
		}
		p.events = append(p.events, e)
		p.now++
	}
}

func TestCheckerFindsWrongTopics(t *testing.T) {
	at := func(fault, due int64) func(*tape) {
		return func(p *tape) {
			p.at(0).change(ledger.Pause, 2, ledger.OK)
			p.at(10).enqueue(due, ledger.OK)
			if fault != 0 {
				p.at(fault).put(ledger.Event{Kind: ledger.Fault, Fault: "kill", Topic: "-", Task: "-"})
				p.at(fault + 1000).put(ledger.Event{Kind: ledger.Healed, Fault: "kill", Topic: "-", Task: "-"})
			}
			p.at(5000).change(ledger.Resume, 3, ledger.OK)
			p.at(due).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}
	}
	playScenes(t, []scene{
		{"delivered while the word gets round", at(0, 2000), ""},
		{"delivered while it is paused", at(0, 2500), verdict.Paused},
		{"delivered while it is paused, with a fault meanwhile", at(2100, 2500), verdict.Paused},
		{"delivered after a fault that came before the word was round", at(1900, 4500), ""},
		{"delivered long after such a fault", at(1900, 4950), verdict.Paused},
		{"delivered when it goes on", at(0, 5000), ""},
		{"two changes of one version", func(p *tape) {
			p.at(0).change(ledger.Configure, 2, ledger.OK)
			p.at(10).change(ledger.Configure, 2, ledger.OK)
			p.at(20).enqueue(30, ledger.OK)
			p.at(30).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
		}, verdict.Wrong},
		{"another setting than the last one", func(p *tape) {
			p.at(0).change(ledger.Configure, 2, ledger.OK)
			p.at(20).enqueue(30, ledger.OK)
			p.at(30).deliver(1, "a")
			p.settle(ledger.Ack, "a", ledger.OK)
			p.events = append(p.events, ledger.Event{Kind: ledger.Found, Topic: "topic", Mono: 99 * millisecond, Wall: epoch * millisecond, Version: 2, Settings: "other"})
		}, verdict.Wrong},
	})
}

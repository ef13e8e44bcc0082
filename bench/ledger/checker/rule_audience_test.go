package checker

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

func spreadOfTapes() *ledger.Spread { return &ledger.Spread{Shards: 1, WindowMS: 1000, GrainMS: 100} }

// audience begins the story of an audience, and of a schedule with runs at 1000 and 2000.
func (p *tape) audience(members ...string) {
	p.at(1).put(ledger.Event{Kind: ledger.Topic, HoldMS: 1000, KeepMS: 1000})
	for _, m := range members {
		p.ofAudience(ledger.Event{Op: ledger.Join, Recipient: m}, ledger.OK)
	}
	p.ofAudience(ledger.Event{
		Op: ledger.PutSchedule, Schedule: "s", Spread: spreadOfTapes(),
		Timetable: &ledger.Timetable{FromMS: epoch + 1000, ToMS: epoch + 2000, EveryMS: 1000},
	}, ledger.OK)
}

// ofAudience is a call about the audience.
func (p *tape) ofAudience(e ledger.Event, r ledger.Result) {
	e.Task = "-"
	p.call(e, r, "", func(a *ledger.Event) {
		a.Task, a.Schedule, a.Recipient, a.Spread = "-", e.Schedule, e.Recipient, e.Spread
	})
	p.forget()
}

// forget takes the name from what is about no task.
func (p *tape) forget() {
	for i := range p.events {
		if p.events[i].Task == "-" {
			p.events[i].Task = ""
		}
	}
}

// placeOf is when the task of a recipient is due.
func placeOf(at int64, who string) int64 { return at + spreadOfTapes().Place(who).Milliseconds() }

// got is a task of a run that takes no time.
func (p *tape) got(at int64, who string, more ...func(*ledger.Event)) {
	id, due := fmt.Sprint(who, at), placeOf(at, who)
	e := ledger.Event{Kind: ledger.Delivered, Task: id, Schedule: "s", Occurrence: epoch + at, Recipient: who, Created: epoch + at + 1, Due: epoch + due, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s"}
	for _, do := range more {
		do(&e)
	}
	p.at(max(p.now, e.Due-epoch)).put(e)
	p.call(ledger.Event{Op: ledger.Ack, Task: e.Task, Token: id}, ledger.OK, "", func(a *ledger.Event) { a.Task = e.Task })
	e.Kind, e.Attempt, e.Token, e.HoldMS, e.State, e.History = ledger.Found, 0, "", 0, "done", []ledger.Attempt{{Number: 1, Started: e.Due, Outcome: "acked"}}
	p.put(e)
}

// walked is how the run at a time was found.
func (p *tape) walked(at, tasks int64, more ...func(*ledger.Walk)) {
	w := &ledger.Walk{Begin: epoch + at, Made: tasks, Ended: tasks, Over: true}
	for _, do := range more {
		do(w)
	}
	p.at(20_000).put(ledger.Event{Kind: ledger.Found, Task: "-", Schedule: "s", Occurrence: epoch + at, Walk: w})
	p.forget()
}

// far are two recipients, the first of whom has the earlier place.
func far() (first, last string) {
	for i := range 100 {
		switch name := fmt.Sprint("r", i); {
		case placeOf(0, name) < 300 && first == "":
			first = name
		case placeOf(0, name) > 600 && last == "":
			last = name
		}
	}
	return first, last
}

func TestCheckerFindsWrongRunsOfAudiences(t *testing.T) {
	ann, bob := far()
	playScenes(t, []scene{
		{"each has one task of each run", func(p *tape) {
			p.audience(ann, bob)
			p.got(1000, ann)
			p.got(1000, bob)
			p.got(2000, ann)
			p.got(2000, bob)
			p.walked(1000, 2)
			p.walked(2000, 2)
		}, ""},
		{"one has none", func(p *tape) {
			p.audience(ann, bob)
			p.got(1000, ann)
			p.got(1000, bob)
			p.got(2000, bob)
			p.walked(1000, 2)
			p.walked(2000, 1)
		}, verdict.Vanished},
		{"one has two", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.got(1000, ann, func(e *ledger.Event) { e.Task = "another" })
			p.got(2000, ann)
			p.walked(1000, 2)
			p.walked(2000, 1)
		}, verdict.Doubled},
		{"one is due elsewhere", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann, func(e *ledger.Event) { e.Due += 100 })
			p.got(2000, ann)
			p.walked(1000, 1)
			p.walked(2000, 1)
		}, verdict.Misplaced},
		{"a run began late, and its places with it", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann, func(e *ledger.Event) { e.Due += 30 })
			p.got(2000, ann)
			p.walked(1000, 1, func(w *ledger.Walk) { w.Begin += 30 })
			p.walked(2000, 1)
		}, ""},
		{"a run began early", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.got(2000, ann)
			p.walked(1000, 1, func(w *ledger.Walk) { w.Begin -= 30 })
			p.walked(2000, 1)
		}, verdict.Misplaced},
		{"one opted out between the runs", func(p *tape) {
			p.audience(ann, bob)
			p.got(1000, ann)
			p.got(1000, bob)
			p.ofAudience(ledger.Event{Op: ledger.OptOut, Recipient: bob}, ledger.OK)
			p.got(2000, ann)
			p.walked(1000, 2)
			p.walked(2000, 1)
		}, ""},
		{"one opted out, and has a task that was made long after", func(p *tape) {
			p.audience(ann, bob)
			p.got(1000, ann)
			p.got(1000, bob)
			p.ofAudience(ledger.Event{Op: ledger.DropOut, Recipient: bob}, ledger.OK)
			p.got(2000, ann)
			p.got(2000, bob, func(e *ledger.Event) { e.Created += 2000 })
			p.walked(1000, 2)
			p.walked(2000, 2)
		}, verdict.Strayed},
		{"one opted out when the run had passed, and has no task", func(p *tape) {
			p.audience(ann, bob)
			p.got(1000, bob)
			p.got(2000, bob)
			p.at(7500).ofAudience(ledger.Event{Op: ledger.OptOut, Recipient: ann}, ledger.OK)
			p.walked(1000, 1)
			p.walked(2000, 1)
		}, verdict.Vanished},
		{"one came between the runs", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.ofAudience(ledger.Event{Op: ledger.Join, Recipient: bob}, ledger.OK)
			p.got(2000, ann)
			p.got(2000, bob)
			p.walked(1000, 1)
			p.walked(2000, 2)
		}, ""},
		{"one came when the run had begun, and has a task of it", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.at(2500).ofAudience(ledger.Event{Op: ledger.Join, Recipient: bob}, ledger.OK)
			p.got(1000, bob)
			p.got(2000, ann)
			p.got(2000, bob)
			p.walked(1000, 2)
			p.walked(2000, 2)
		}, verdict.Strayed},
		{"one came, nobody knows when", func(p *tape) {
			p.audience(ann)
			p.at(500).ofAudience(ledger.Event{Op: ledger.Join, Recipient: bob}, "")
			p.got(1000, ann)
			p.got(2000, ann)
			p.got(2000, bob)
			p.walked(1000, 1)
			p.walked(2000, 2)
		}, ""},
		{"a run at a time that nobody asked for", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.got(1500, ann)
			p.got(2000, ann)
			p.walked(1000, 1)
			p.walked(2000, 1)
		}, verdict.Strayed},
		{"a run did not hear of an end", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.got(2000, ann)
			p.walked(1000, 1)
			p.walked(2000, 1, func(w *ledger.Walk) { w.Ended-- })
		}, verdict.Wrong},
		{"a run does not end", func(p *tape) {
			p.audience(ann)
			p.got(1000, ann)
			p.got(2000, ann)
			p.walked(1000, 1)
			p.walked(2000, 1, func(w *ledger.Walk) { w.Over = false })
		}, verdict.Stuck},
		{"a run that began by a clock ahead waits for that clock", func(p *tape) {
			p.audience(ann)
			p.at(1500).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 3_601_500})
			p.at(1600).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 1600})
			p.got(1000, ann)
			p.walked(1000, 1)
			p.walked(2000, 0, func(w *ledger.Walk) { w.Begin, w.Over = epoch+3_602_000, false })
		}, ""},
	})
}

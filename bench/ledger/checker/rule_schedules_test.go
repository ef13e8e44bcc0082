package checker

import (
	"testing"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// every200 is a timetable from 1000 to 2000.
func every200(more ...func(*ledger.Timetable)) *ledger.Timetable {
	t := &ledger.Timetable{FromMS: epoch + 1000, ToMS: epoch + 2000, EveryMS: 200, Overlap: ledger.OverlapSkip, CatchUp: ledger.CatchUpLast, GraceMS: 60_000}
	for _, do := range more {
		do(t)
	}
	return t
}

// diaryOf begins the story of the schedule "s".
func (p *tape) diaryOf(t *ledger.Timetable) {
	p.at(1).put(ledger.Event{Kind: ledger.Topic, HoldMS: 1000, KeepMS: 1000})
	p.ofSchedule(ledger.Event{Op: ledger.PutSchedule, Timetable: t, Sum: "s"}, ledger.OK)
}

// ofSchedule is a call about the schedule.
func (p *tape) ofSchedule(e ledger.Event, r ledger.Result, more ...func(*ledger.Event)) {
	e.Task, e.Schedule = "-", "s"
	p.call(e, r, "", append(more, func(a *ledger.Event) { a.Schedule, a.Task = "s", "-" })...)
	for i := range p.events {
		if p.events[i].Task == "-" {
			p.events[i].Task = ""
		}
	}
}

// begun is the delivery of a run, at its time.
func (p *tape) begun(at int64, more ...func(*ledger.Event)) {
	id := clockTime(at)
	e := ledger.Event{Kind: ledger.Delivered, Task: id, Schedule: "s", Occurrence: epoch + at, Due: epoch + at, Attempt: 1, Token: id, HoldMS: 1000, Sum: "s"}
	for _, do := range more {
		do(&e)
	}
	p.at(max(p.now, at)).put(e)
}

// ended is the ack of a run, and its done task.
func (p *tape) ended(at int64) {
	id := clockTime(at)
	p.call(ledger.Event{Op: ledger.Ack, Task: id, Token: id}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
	p.put(ledger.Event{Kind: ledger.Found, Task: id, Schedule: "s", Occurrence: epoch + at, State: "done", Due: epoch + at, History: []ledger.Attempt{{Number: 1, Started: epoch + at, Outcome: "acked"}}})
}

// runOf is a run that takes no time.
func (p *tape) runOf(at int64) {
	p.begun(at)
	p.ended(at)
}

// stands is how the schedule was found.
func (p *tape) stands(at int64, past ...ledger.Past) {
	for i := range past {
		past[i].At, past[i].Origin = past[i].At+epoch, ledger.ByTimetable
	}
	p.at(at).put(ledger.Event{Kind: ledger.Found, Task: "-", Schedule: "s", State: ledger.RunFinished, Standing: &ledger.Standing{Past: past}})
	p.events[len(p.events)-1].Task = ""
}

func skips(at, count int64, why string) ledger.Past {
	return ledger.Past{At: at, Count: count, Skipped: why}
}

// givenBack is a run that a worker gives back, and that comes again as an edit meanwhile has it.
func (p *tape) givenBack(at int64, meanwhile func()) {
	id := clockTime(at)
	p.begun(at)
	p.call(ledger.Event{Op: ledger.Release, Task: id, Token: id}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
	meanwhile()
	p.ofSchedule(ledger.Event{Op: ledger.PutSchedule, Timetable: every200(), Sum: "t"}, ledger.OK)
	p.begun(at, func(e *ledger.Event) { e.Token, e.Sum = "again", "t" })
	p.call(ledger.Event{Op: ledger.Ack, Task: id, Token: "again"}, ledger.OK, "", func(e *ledger.Event) { e.Task = id })
	p.put(ledger.Event{Kind: ledger.Found, Task: id, Schedule: "s", Occurrence: epoch + at, State: "done", Due: epoch + at, History: []ledger.Attempt{{Number: 1, Started: epoch + at, Outcome: "acked"}}})
}

func TestCheckerFindsWrongSchedules(t *testing.T) {
	all := func(p *tape) {
		for at := int64(1000); at <= 2000; at += 200 {
			p.runOf(at)
		}
	}
	playScenes(t, []scene{
		{"each occurrence has its run", func(p *tape) {
			p.diaryOf(every200())
			all(p)
			p.stands(3000)
		}, ""},
		{"active, with a run that is due when the clock is there again", func(p *tape) {
			p.diaryOf(every200())
			all(p)
			p.put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 3_602_000})
			p.at(2100).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + 2100})
			p.put(ledger.Event{Kind: ledger.Found, Task: "later", Schedule: "s", Occurrence: epoch + 3_602_000, State: "scheduled", Due: epoch + 3_602_000})
			p.ofSchedule(ledger.Event{Op: ledger.Trigger}, ledger.OK, func(e *ledger.Event) { e.ID = "later" })
			p.stands(40_000)
			p.events[len(p.events)-1].State = "active"
		}, ""},
		{"one has none, and a reason", func(p *tape) {
			p.diaryOf(every200())
			p.begun(1000)
			p.at(1250).ended(1000)
			for at := int64(1400); at <= 2000; at += 200 {
				p.runOf(at)
			}
			p.stands(3000, skips(1200, 1, ledger.SkipOverlap))
		}, ""},
		{"one has none", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			for at := int64(1400); at <= 2000; at += 200 {
				p.runOf(at)
			}
			p.stands(3000)
		}, verdict.Vanished},
		{"the last has none yet, and time to come", func(p *tape) {
			p.diaryOf(every200())
			for at := int64(1000); at < 2000; at += 200 {
				p.runOf(at)
			}
			p.stands(3000)
			p.events[len(p.events)-1].State = "active"
		}, ""},
		{"the schedule does not come to its end", func(p *tape) {
			p.diaryOf(every200())
			all(p)
			p.stands(60_000)
			p.events[len(p.events)-1].State = "active"
		}, verdict.Stuck},
		{"the schedule is gone", func(p *tape) {
			p.diaryOf(every200())
			all(p)
		}, verdict.Vanished},
		{"too few for what it remembers", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.stands(3000)
			p.events[len(p.events)-1].Standing = &ledger.Standing{Made: 5, Cut: true}
		}, verdict.Vanished},
		{"a run that a trigger was answered with", func(p *tape) {
			p.diaryOf(every200())
			p.ofSchedule(ledger.Event{Op: ledger.Trigger}, ledger.OK, func(e *ledger.Event) { e.ID = "x" })
			all(p)
			p.stands(3000)
		}, verdict.Vanished},
		{"two runs", func(p *tape) {
			p.diaryOf(every200())
			all(p)
			p.begun(2000, func(e *ledger.Event) { e.Task, e.Token = "another", "another" })
			p.call(ledger.Event{Op: ledger.Ack, Task: "another", Token: "another"}, ledger.OK, "", func(e *ledger.Event) { e.Task = "another" })
			p.put(ledger.Event{Kind: ledger.Found, Task: "another", Schedule: "s", Occurrence: epoch + 2000, State: "done", Due: epoch + 2000})
			p.stands(3000)
		}, verdict.Doubled},
		{"a run and a reason", func(p *tape) {
			p.diaryOf(every200())
			all(p)
			p.stands(3000, skips(1400, 1, ledger.SkipOverlap))
		}, verdict.Doubled},
		{"a run that is made again when it is over", func(p *tape) {
			p.diaryOf(every200())
			all(p)
			p.at(2500).begun(2000, func(e *ledger.Event) { e.Token = "again" })
			p.stands(3000)
		}, verdict.Doubled},
		{"a paused worker tells of an attempt after the next one was acked", func(p *tape) {
			p.diaryOf(every200())
			for at := int64(1000); at < 2000; at += 200 {
				p.runOf(at)
			}
			p.at(3100).begun(2000, func(e *ledger.Event) { e.Attempt, e.Token = 2, clockTime(2000) })
			p.ended(2000)
			p.events[len(p.events)-1].History = []ledger.Attempt{
				{Number: 1, Started: epoch + 2000, Ended: epoch + 3000, Outcome: "expired"}, {Number: 2, Started: epoch + 3100, Outcome: "acked"},
			}
			p.at(3200).begun(2000, func(e *ledger.Event) { e.Token = "first" })
			p.stands(3500)
		}, ""},
		{"skipped as overlap, and nothing is open", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			for at := int64(1400); at <= 2000; at += 200 {
				p.runOf(at)
			}
			p.stands(3000, skips(1200, 1, ledger.SkipOverlap))
		}, verdict.Unreasonable},
		{"skipped for the run after it", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			for at := int64(1400); at < 2000; at += 200 {
				p.runOf(at)
			}
			p.begun(2000)
			p.at(2500).ended(2000)
			p.stands(3000, skips(1200, 1, ledger.SkipOverlap))
		}, verdict.Unreasonable},
		{"several in a row", func(p *tape) {
			p.diaryOf(every200())
			p.begun(1000)
			p.at(1650).ended(1000)
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1600, 3, ledger.SkipOverlap))
		}, ""},
		{"one of them after the end", func(p *tape) {
			p.diaryOf(every200())
			p.begun(1000)
			p.at(1450).ended(1000)
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1600, 3, ledger.SkipOverlap))
		}, verdict.Unreasonable},
		{"one of them after an end that was told while a node was away", func(p *tape) {
			p.diaryOf(every200())
			p.begun(1000)
			p.at(1400).put(ledger.Event{Kind: ledger.Fault, Fault: "kill", Topic: "-", Task: "-"})
			p.at(1450).ended(1000)
			p.at(1500).put(ledger.Event{Kind: ledger.Healed, Fault: "kill", Topic: "-", Task: "-"})
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1600, 3, ledger.SkipOverlap))
		}, ""},
		{"missed within its grace", func(p *tape) {
			p.diaryOf(every200())
			for at := int64(1200); at <= 2000; at += 200 {
				p.runOf(at)
			}
			p.stands(3000, skips(1000, 1, ledger.SkipMissed))
		}, verdict.Unreasonable},
		{"missed", func(p *tape) {
			p.diaryOf(every200(func(t *ledger.Timetable) { t.GraceMS = 1000 }))
			for at := int64(1400); at <= 2000; at += 200 {
				p.at(2500).runOf(at)
			}
			p.stands(3000, skips(1200, 2, ledger.SkipMissed))
		}, ""},
		{"missed, and so are all after it", func(p *tape) {
			p.diaryOf(every200(func(t *ledger.Timetable) { t.GraceMS = 1000 }))
			for at := int64(1600); at <= 2000; at += 200 {
				p.at(2500).runOf(at)
			}
			p.stands(3000, skips(1400, 3, ledger.SkipMissed))
		}, verdict.Unreasonable},
		{"missed, and all are caught up with", func(p *tape) {
			p.diaryOf(every200(func(t *ledger.Timetable) { t.GraceMS, t.CatchUp = 1000, ledger.CatchUpAll }))
			for at := int64(1600); at <= 2000; at += 200 {
				p.at(2500).runOf(at)
			}
			p.stands(3000, skips(1400, 3, ledger.SkipMissed))
		}, verdict.Unreasonable},
		{"all are missed, and the last is caught up with", func(p *tape) {
			p.diaryOf(every200(func(t *ledger.Timetable) { t.GraceMS = 1000 }))
			p.at(8000).stands(9000, skips(2000, 6, ledger.SkipMissed))
		}, verdict.Unreasonable},
		{"paused", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.at(1100).ofSchedule(ledger.Event{Op: ledger.PauseSchedule}, ledger.OK)
			p.at(1700).ofSchedule(ledger.Event{Op: ledger.ResumeSchedule}, ledger.OK)
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1600, 3, ledger.SkipPaused))
		}, ""},
		{"skipped as paused, and it goes on", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.at(1100).ofSchedule(ledger.Event{Op: ledger.PauseSchedule}, ledger.OK)
			p.at(1500).ofSchedule(ledger.Event{Op: ledger.ResumeSchedule}, ledger.OK)
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1600, 3, ledger.SkipPaused))
		}, verdict.Unreasonable},
		{"refused, and nothing is broken", func(p *tape) {
			p.diaryOf(every200())
			for at := int64(1200); at <= 2000; at += 200 {
				p.runOf(at)
			}
			p.stands(3000, skips(1000, 1, ledger.SkipRefused))
		}, verdict.Unreasonable},
		{"a trigger is refused for a run that is over", func(p *tape) {
			p.diaryOf(every200(func(t *ledger.Timetable) { t.EveryMS = 500 }))
			p.runOf(1000)
			p.at(1100).ofSchedule(ledger.Event{Op: ledger.Trigger}, ledger.Refused, func(e *ledger.Event) { e.Reason = ledger.RunOpen })
			p.runOf(1500)
			p.runOf(2000)
			p.stands(3000)
		}, verdict.Unreasonable},
		{"a trigger is refused for a run that is open", func(p *tape) {
			p.diaryOf(every200(func(t *ledger.Timetable) { t.EveryMS = 500 }))
			p.begun(1000)
			p.at(1100).ofSchedule(ledger.Event{Op: ledger.Trigger}, ledger.Refused, func(e *ledger.Event) { e.Reason = ledger.RunOpen })
			p.ended(1000)
			p.runOf(1500)
			p.runOf(2000)
			p.stands(3000)
		}, ""},
		{"before its time", func(p *tape) {
			p.diaryOf(every200())
			p.begun(1000, func(e *ledger.Event) { e.Occurrence += 200; e.Due += 200 })
			p.stands(3000)
		}, verdict.Premature},
		{"while it is paused", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.at(1100).ofSchedule(ledger.Event{Op: ledger.PauseSchedule}, ledger.OK)
			p.runOf(1600)
			p.at(1700).ofSchedule(ledger.Event{Op: ledger.ResumeSchedule}, ledger.OK)
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1400, 2, ledger.SkipPaused))
		}, verdict.Strayed},
		{"in hand when it was paused", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.at(1150).ofSchedule(ledger.Event{Op: ledger.PauseSchedule}, ledger.OK)
			p.runOf(1200)
			p.at(1700).ofSchedule(ledger.Event{Op: ledger.ResumeSchedule}, ledger.OK)
			p.runOf(1800)
			p.runOf(2000)
			p.stands(3000, skips(1600, 2, ledger.SkipPaused))
		}, ""},
		{"edited", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.runOf(1200)
			p.at(1300).ofSchedule(ledger.Event{Op: ledger.PutSchedule, Timetable: every200(func(t *ledger.Timetable) { t.EveryMS = 500 }), Sum: "t"}, ledger.OK)
			p.begun(1500, func(e *ledger.Event) { e.Sum = "t" })
			p.ended(1500)
			p.begun(2000, func(e *ledger.Event) { e.Sum = "t" })
			p.ended(2000)
			p.stands(3000)
		}, ""},
		{"by the timetable of before", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.runOf(1200)
			p.at(1300).ofSchedule(ledger.Event{Op: ledger.PutSchedule, Timetable: every200(func(t *ledger.Timetable) { t.EveryMS = 500 }), Sum: "t"}, ledger.OK)
			p.begun(1500, func(e *ledger.Event) { e.Sum = "t" })
			p.ended(1500)
			p.begun(1800, func(e *ledger.Event) { e.Sum = "t" })
			p.ended(1800)
			p.begun(2000, func(e *ledger.Event) { e.Sum = "t" })
			p.ended(2000)
			p.stands(3000)
		}, verdict.Strayed},
		{"made anew by an edit, when the clock was set back", func(p *tape) {
			p.diaryOf(every200())
			for at := int64(1000); at < 2000; at += 200 {
				p.runOf(at)
			}
			p.givenBack(2000, func() {
				p.put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + p.now - 3_600_000})
				p.at(p.now + 100).put(ledger.Event{Kind: ledger.Clock, StoreNow: epoch + p.now})
			})
			p.stands(3000)
		}, ""},
		{"made anew by an edit after it had begun", func(p *tape) {
			p.diaryOf(every200())
			for at := int64(1000); at < 2000; at += 200 {
				p.runOf(at)
			}
			p.givenBack(2000, func() {})
			p.stands(3000)
		}, verdict.Garbled},
		{"with the payload of before", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.runOf(1200)
			p.at(1210).ofSchedule(ledger.Event{Op: ledger.PutSchedule, Timetable: every200(), Sum: "t"}, ledger.OK)
			for at := int64(1400); at <= 1800; at += 200 {
				p.begun(at, func(e *ledger.Event) { e.Sum = "t" })
				p.ended(at)
			}
			p.runOf(2000)
			p.stands(3000)
		}, verdict.Strayed},
		{"one edit or the other", func(p *tape) {
			p.diaryOf(every200())
			p.runOf(1000)
			p.runOf(1200)
			p.at(1300).ofSchedule(ledger.Event{Op: ledger.PutSchedule, Timetable: every200(func(t *ledger.Timetable) { t.EveryMS = 500 }), Sum: "t"}, "")
			p.runOf(1400)
			p.runOf(1600)
			p.runOf(2000)
			p.stands(3000)
		}, ""},
	})
}

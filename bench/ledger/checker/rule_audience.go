package checker

import (
	"slices"

	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// A task has been created, by the clock of a node, when its run begins to look at recipients.
const (
	// lookTakes is how long after that a recipient may be looked at, ns: a node that is slow, paused
	// or far from its store goes on when it can.
	lookTakes = 5000 * millisecond
	// nodesOff is how far the clock of a node is from that of its store, ns, at most.
	nodesOff = 1000 * millisecond
)

// reached: each recipient who was one when a run began, and still was when the run came to it, has
// one task of it.
func reached(a *audience) {
	if !a.Audited {
		return
	}
	for _, m := range a.members {
		for _, r := range a.runs {
			switch tasks := r.tasks[m.id]; {
			case len(tasks) > 1 && !tasks[0].loose() && !tasks[1].loose():
				a.offend(verdict.Doubled, m, "it has the tasks %s and %s of the run at %s", tasks[0].id, tasks[1].id, clockTime(r.at))
			case len(tasks) == 1 && !tasks[0].loose() && tasks[0].begunAnew():
				a.offend(verdict.Doubled, m, "the task %s of the run at %s was made again", tasks[0].id, clockTime(r.at))
			case len(tasks) == 0 && a.wants(r, m) && a.long(r) && !a.undone(r.at):
				a.offend(verdict.Vanished, m, "it has no task of the run at %s", clockTime(r.at))
			}
		}
	}
}

// wants reports whether a recipient is to have a task of a run for certain.
func (a *audience) wants(r *run, m *member) bool {
	from, _ := a.clock.Bounds(r.at)
	refused := asked(m.refuses)
	return r.certain && answered(m.joins) < from && (refused == never || a.passed(r, m, refused))
}

// placed: a task is due at the place of its recipient, and no run begins before its time.
func placed(a *audience) {
	for _, r := range a.runs {
		f := a.found[r.at]
		if f == nil {
			continue // nobody remembers when it began
		}
		if f.Walk.Begin < r.at {
			a.evidence.offend(verdict.Misplaced, a.topic, f.Schedule, a.events, "the run at %s began at %s", clockTime(r.at), clockTime(f.Walk.Begin))
		}
		for _, m := range a.members {
			due := f.Walk.Begin + a.spread.Place(m.id).Milliseconds()
			for _, s := range r.tasks[m.id] {
				d := s.firstDelivery()
				if d == nil || d != s.deliveries[0] || d.Due > due && a.mayBeGivenBack(d.Due) {
					continue
				}
				if d.Due != due {
					a.offend(verdict.Misplaced, m, "its task of the run at %s is due at %s, and its place is at %s", clockTime(r.at), clockTime(d.Due), clockTime(due))
				}
			}
		}
	}
}

// mayBeGivenBack reports whether a node may have given tasks back at a time, ms, which are due then:
// in trouble, or when its shards went to another node after that.
func (a *audience) mayBeGivenBack(ms int64) bool {
	from, to := a.clock.Bounds(ms)
	return slices.ContainsFunc(a.faults, func(f verdict.Fault) bool {
		return f.From <= to && (f.To == never || f.To+verdict.Settling.Nanoseconds() >= from)
	})
}

// heeded: nobody has a task who was no recipient when the run began, or had opted out or left when
// it came by.
func heeded(a *audience) {
	for _, m := range a.members {
		for _, r := range a.runs {
			for _, s := range r.tasks[m.id] {
				if s.created == 0 || s.loose() {
					continue
				}
				from, _ := a.clock.Bounds(s.created)
				switch left := answered(m.refuses); {
				case left != never && left+nodesOff < from:
					a.offend(verdict.Strayed, m, "the run at %s made its task at %s, after it had opted out", clockTime(r.at), clockTime(s.created))
				case r.begun != never && r.begun+nodesOff < asked(m.joins):
					a.offend(verdict.Strayed, m, "it has a task of the run at %s, which had begun when it came", clockTime(r.at))
				}
			}
		}
	}
}

// counted: a run comes to its end, and has heard of the end of each of its tasks.
func counted(a *audience) {
	for _, r := range a.runs {
		f := a.found[r.at]
		if f == nil || a.mayUndo() {
			continue
		}
		known := int64(0)
		for _, tasks := range r.tasks {
			known += int64(len(tasks))
		}
		switch walk := f.Walk; {
		case !walk.Over && a.long(r):
			a.evidence.offend(verdict.Stuck, a.topic, f.Schedule, a.events, "the run at %s is open at the end, with %d of %d tasks", clockTime(r.at), walk.Ended, walk.Made)
		case walk.Over && (walk.Made != known || walk.Ended != known):
			a.evidence.offend(verdict.Wrong, a.topic, f.Schedule, a.events, "the run at %s says that it made %d tasks, of which %d ended, and %d are known", clockTime(r.at), walk.Made, walk.Ended, known)
		}
	}
}

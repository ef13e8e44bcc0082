package checker

import "github.com/ddq-io/ddq/bench/ledger/verdict"

// scope says which tasks a rule is asked of. A task that may have lived twice, because an
// enqueue with an unknown outcome may have come after its end, is not asked what only one
// life can tell.
type scope int

const (
	every    scope = iota
	unstored       // by the answers to its enqueues
	stored
	storedOnce
	audited // stored, and the store was read at the end
)

// covers reports whether a task is one of those.
func (s scope) covers(t *task, lives int) bool {
	switch s {
	case unstored:
		return lives == 0
	case stored:
		return lives > 0
	case storedOnce:
		return lives == 1
	case audited:
		return lives > 0 && t.Audited
	}
	return true
}

// taskRule is a promise about each task by itself.
type taskRule struct {
	scope
	check func(*task)
}

// taskRules are all of those.
func taskRules() []taskRule {
	return []taskRule{
		{every, keyed},
		{unstored, phantom},
		{stored, garbled},
		{stored, early},
		{stored, doubled},
		{storedOnce, overlaps},
		{storedOnce, attempts},
		{storedOnce, stale},
		{storedOnce, resurrected},
		{storedOnce, answers},
		{storedOnce, refusals},
		{storedOnce, versions},
		{storedOnce, contents},
		{storedOnce, chosen},
		{storedOnce, cancels},
		{storedOnce, results},
		{storedOnce, history},
		{storedOnce, ranAgain},
		{storedOnce, lateCheckpoints},
		{storedOnce, served},
		{audited, lost},
		{audited, left},
	}
}

// runRules are the promises about several tasks, about topics and about watches.
func runRules() []func(*evidence) {
	return []func(*evidence){groups, limits, tokens, orders, lanes, topics, logs, watches, enqueued, idle}
}

// scheduleRules are the promises about each schedule by itself.
func scheduleRules() []func(*schedule) {
	return []func(*schedule){twice, vanished, unreasonable, premature, strayed}
}

// audienceRules are the promises about each audience by itself.
func audienceRules() []func(*audience) {
	return []func(*audience){reached, placed, heeded, counted}
}

// workflowRules are the promises about each workflow by itself.
func workflowRules() []func(*workflow) {
	return []func(*workflow){stranded, untimely, tasksOfSteps, grownWhole, misled, unwound, zombie}
}

// Check tells what of the promises a history breaks.
func Check(h *History, r Rules) *verdict.Verdict {
	acknowledged := h.acknowledged() // before a fault is an excuse
	ev := newEvidence(h, &r)
	rules := taskRules()
	for _, s := range h.stories {
		t, lives := ev.task(s), s.creations()
		for _, rule := range rules {
			if rule.covers(t, lives) {
				rule.check(t)
			}
		}
	}
	for _, check := range runRules() {
		check(ev)
	}
	for _, d := range h.schedules {
		s := ev.schedule(d)
		for _, check := range scheduleRules() {
			check(s)
		}
	}
	for _, r := range h.registers {
		a := ev.audience(r)
		if a == nil {
			continue
		}
		for _, check := range audienceRules() {
			check(a)
		}
	}
	for _, c := range h.workflows {
		w := ev.workflow(c)
		for _, check := range workflowRules() {
			check(w)
		}
	}
	v := ev.verdict()
	v.Acknowledged = acknowledged
	return v
}

// acknowledged is how many tasks the server said it stored.
func (h *History) acknowledged() (n int) {
	for _, s := range h.stories {
		if s.stored() != nil {
			n++
		}
	}
	return n
}

package checker

import (
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// groups complains when more tasks went on as before than a call about all of them says
// that it left alone. Which ones it changed, it does not say.
func groups(ev *evidence) {
	for _, g := range ev.groups {
		changed(ev, g)
	}
}

// changed checks one call.
func changed(ev *evidence, g *group) {
	if o := g.ops[0]; o.answer == nil || o.answer.Result == ledger.Refused && o.answer.Changed == 0 {
		return
	}
	untouched := 0
	var last *task
	for i, s := range g.stories {
		if s.creations() != 1 || g.ops[i].excused {
			return
		}
		if last = ev.task(s); last.untouched(g.ops[i]) {
			untouched++
		}
	}
	if changed := g.ops[0].answer.Changed; int(changed)+untouched > len(g.ops) {
		last.offend(verdict.Wrong, "%s of %s says that it changed %d of %d tasks, and %d went on as before", g.ops[0].Op, g.ops[0].Group, changed, len(g.ops), untouched)
	}
}

// untouched reports whether a task shows that a call about many has not changed it.
func (t *task) untouched(o *op) bool {
	for _, d := range t.deliveries {
		if !d.loose && t.granted(d) > o.to && (o.Op == ledger.Delete || d.Version == 1) {
			return true
		}
	}
	f := t.found
	return f != nil && (o.Op == ledger.Delete || f.Version == 1)
}

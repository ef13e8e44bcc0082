package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/states"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rules of a topic's log, which was read once everything was over: what it tells of
// each task is a life that a task can have, ends as the store has the task, and has
// everything in it that clients know of, and nothing that they did not ask for.

// life is what a log tells of one task, in order.
type life struct {
	*task
	id      string // a key may have several
	changes []*ledger.Event
}

// logs checks the log of every topic that keeps one.
func logs(ev *evidence) {
	for topic, log := range ev.logs {
		unbroken(ev, topic, log)
		lives := livesIn(ev, topic, log)
		trimmed(ev, topic, lives)
		for _, l := range lives {
			if l.possible() && ev.Audited {
				l.endsAs()
			}
			switch lives := l.creations(); {
			case lives == 0 && len(l.changes) > 0:
				l.offend(verdict.Mistold, "the log tells of a task that nobody enqueued")
			case lives == 1 && len(l.ids()) <= 1:
				l.complete()
				l.asked()
			}
		}
	}
}

// unbroken: the positions of each shard rise by one from the first on.
func unbroken(ev *evidence, topic string, log []*ledger.Event) {
	shards := byShard(log)
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		for i, e := range shards[shard] {
			if want := int64(i) + 1; e.Change.Position != want {
				ev.offend(verdict.Missed, topic, e.Task, []*ledger.Event{e}, "position %d of shard %d is where %d should be", e.Change.Position, e.Change.Shard, want)
				return
			}
		}
	}
}

// livesIn are those of all tasks that clients know of, or the log. A task whose
// idempotency key nobody knows, as an answer was lost, is left out.
func livesIn(ev *evidence, topic string, log []*ledger.Event) []*life {
	lives := map[string]*life{}
	unnamed := false // there may be tasks that no client knows of
	for _, s := range ev.stories {
		if s.topic != topic {
			continue
		}
		ids := []string{s.id}
		if s.conflict() != "" {
			ids = s.ids()
			unnamed = unnamed || slices.ContainsFunc(s.enqueues, func(o *op) bool { return o.may() && (o.answer == nil || o.answer.ID == "") })
		}
		for _, id := range ids {
			lives[id] = &life{task: ev.task(s), id: id}
		}
	}
	for _, e := range log {
		l := lives[e.Task]
		if l == nil {
			if unnamed || strings.HasPrefix(e.Task, ledger.Marker) {
				continue
			}
			l = &life{task: ev.task(&story{topic: topic, id: e.Task}), id: e.Task}
			lives[e.Task] = l
		}
		l.changes = append(l.changes, e)
	}
	all := make([]*life, 0, len(lives))
	for _, l := range lives {
		l.timeline = slices.Concat(l.events, l.changes)
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *life) int { return cmp.Compare(a.id, b.id) })
	return all
}

// possible reports whether the changes of a task are a life that one can have.
func (l *life) possible() bool {
	w := states.New()
	for _, e := range l.changes {
		if wrong := w.Step(e.Change); wrong != "" {
			l.offend(verdict.Mistold, "the log has it %s", wrong)
			return false
		}
		if tag := l.tag(); len(l.enqueues) > 0 && e.Change.Tag != tag {
			l.offend(verdict.Mistold, "the log has it with attribute %q, not %q", e.Change.Tag, tag)
			return false
		}
	}
	return true
}

// endsAs: the last change is what the store has in the end.
func (l *life) endsAs() {
	w := states.New()
	for _, e := range l.changes {
		w.Step(e.Change)
	}
	found := l.found()
	state := states.Gone
	if found != nil {
		state = map[string]string{"running": states.Held, "done": states.Done, "dead": states.Dead, "expired": states.Dead}[found.State]
		state = cmp.Or(state, states.Waiting)
	}
	t := l.policy()
	forgotten := state == states.Gone && (w.State == states.Done && (t == nil || t.KeepMS == 0) || w.State == states.Dead && t != nil && t.MaxDead > 0)
	switch {
	case state != w.State && !forgotten:
		l.offend(verdict.Missed, "the log ends with the task %s, and it is %s", w.State, state)
	case found != nil && found.Version != 0 && found.Version != w.Version:
		l.offend(verdict.Missed, "the log ends with version %d, and it has %d", w.Version, found.Version)
	case state == states.Waiting && found.Due != w.Due:
		l.offend(verdict.Missed, "the log ends with it due at %d, and it is at %d", w.Due, found.Due)
	}
}

// found is the task as it lay in the store in the end, nil when it did not.
func (l *life) found() (found *ledger.Event) {
	for _, f := range l.allFound {
		if f.ID == "" || f.ID == l.id {
			found = f
		}
	}
	return found
}

// trimmed: of the dead letters of a topic that keeps so many, no more are deleted than
// there are too many.
func trimmed(ev *evidence, topic string, lives []*life) {
	t := ev.topics[topic]
	if t == nil || t.MaxDead == 0 || !ev.Audited || ev.mayUndo() {
		return
	}
	var last *life
	kept := 0
	for _, l := range lives {
		for i, e := range l.changes {
			switch died := e.Change.What == "dead"; {
			case !died:
			case i < len(l.changes)-1: // and came back, or was deleted
				kept++
			case l.found() != nil:
				kept++
			default:
				last = l
			}
		}
	}
	if last != nil && kept < t.MaxDead {
		last.offend(verdict.Lost, "a dead letter was deleted as one of too many, and there were %d others, of %d", kept, t.MaxDead)
	}
}

// count is how many changes of some kinds there are of an attempt; 0: of any.
func (l *life) count(attempt int, kinds ...string) (n int) {
	for _, e := range l.changes {
		if (attempt == 0 || e.Change.Attempt == attempt) && slices.Contains(kinds, e.Change.What) {
			n++
		}
	}
	return n
}

// complete: what clients know to have happened is in the log once.
func (l *life) complete() {
	if n := l.count(0, "enqueued"); n != 1 && l.stored() != nil || n > 1 {
		l.told(n, "the enqueue")
		return
	}
	for _, d := range l.deliveries {
		taken := slices.ContainsFunc(l.changes, func(e *ledger.Event) bool {
			return e.Change.What == "held" && e.Change.Attempt == d.Attempt && e.Change.Worker == d.Client
		})
		if !d.loose && !taken {
			l.told(0, fmt.Sprintf("attempt %d of %s", d.Attempt, d.Client))
			return
		}
	}
	for _, o := range l.settles {
		if o.Op != ledger.Extend && o.did() && o.settled != nil && !o.settled.loose && !l.ended(o) {
			l.told(0, fmt.Sprintf("the %s of attempt %d", o.Op, o.settled.Attempt))
			return
		}
	}
	for _, o := range l.removals {
		if n := l.count(0, "deleted"); o.did() && n != 1 {
			l.told(n, "the "+string(o.Op))
			return
		}
	}
	for _, o := range l.numbered() {
		made := func(e *ledger.Event) bool { return e.Change.What == "updated" && e.Change.Version == o.answer.Version }
		if !slices.ContainsFunc(l.changes, made) {
			l.told(0, fmt.Sprintf("the %s to version %d", o.Op, o.answer.Version))
			return
		}
	}
	for _, o := range l.cancels {
		if o.did() && o.answer.Outcome == requested && l.count(0, "cancel_requested") == 0 {
			l.told(0, "the cancel")
			return
		}
	}
}

func (l *life) told(n int, what string) {
	if n == 0 {
		l.offend(verdict.Missed, "%s is not in the log", what)
		return
	}
	l.offend(verdict.Mistold, "%s is in the log %d times", what, n)
}

// ended reports whether the log has that a settlement ended its attempt.
func (l *life) ended(o *op) bool {
	return slices.ContainsFunc(l.changes, func(e *ledger.Event) bool {
		x := e.Change
		if x.Worker != o.settled.Client {
			return false
		}
		switch o.Op {
		case ledger.Ack:
			return x.What == "done" && x.Attempt == o.settled.Attempt
		case ledger.Nack:
			return (x.What == "retrying" || x.What == "dead") && x.Attempt == o.settled.Attempt
		}
		// The attempt does not count any more.
		return (x.What == "released" || x.What == "dead") && x.Attempt == o.settled.Attempt-1
	})
}

// asked: what the log has is what clients asked for.
func (l *life) asked() {
	edits, repeated := 0, false
	for _, o := range l.edits {
		if o.may() {
			edits++
		}
		repeated = repeated || o.mayBeRepeated()
	}
	if n := l.count(0, "updated"); n > edits && !repeated && l.conflict() == "" {
		l.offend(verdict.Mistold, "the log has %d edits, of %d", n, edits)
	}
	if l.count(0, "deleted") > 0 && !slices.ContainsFunc(l.removals, (*op).may) {
		l.offend(verdict.Mistold, "the log has it deleted, and nobody asked for that")
	}
	if l.count(0, "cancel_requested") > 0 && !slices.ContainsFunc(l.cancels, (*op).may) {
		l.offend(verdict.Mistold, "the log has a cancel, and nobody asked for one")
	}
	outcomes := map[string]ledger.Op{"acked": ledger.Ack, "failed": ledger.Nack, "released": ledger.Release}
	for i, e := range l.changes {
		kind := outcomes[e.Change.Outcome]
		if l.cancelledByRelease(i) {
			kind = ledger.Release
		}
		if kind == "" {
			continue
		}
		if !slices.ContainsFunc(l.settles, func(o *op) bool { return o.Op == kind && o.may() && o.Client == e.Change.Worker }) {
			l.offend(verdict.Mistold, "the log has an attempt of %s that was %s, and it did not say so", e.Change.Worker, e.Change.Outcome)
			return
		}
	}
}

// cancelledByRelease reports whether a change ended an attempt that was to be cancelled
// without counting it: only a release does that. One without an outcome is the server's own.
func (l *life) cancelledByRelease(i int) bool {
	x := l.changes[i].Change
	return i > 0 && x.What == "dead" && x.Outcome == "cancelled" && x.Attempt < l.changes[i-1].Change.Attempt
}

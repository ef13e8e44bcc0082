package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The rules of a topic's log, which was read once everything was over: what it tells of
// each task is a life that a task can have, ends as the store has the task, and has
// everything in it that clients know of, and nothing that they did not ask for.

// life is what a log tells of one task, in order.
type life struct {
	s       *story
	id      string
	changes []*Event
}

// logs checks the log of every topic that keeps one.
func (c *checker) logs() {
	for topic, log := range c.h.logs {
		c.unbroken(topic, log)
		lives := c.livesIn(topic, log)
		c.trimmed(topic, lives)
		for _, l := range lives {
			c.s, c.earliest = l.s, l.s.earliestDue(&c.h.clock)
			c.s.events = append(c.s.events, l.changes...)
			if c.possible(l) && c.h.Audited {
				c.endsAs(l)
			}
			switch lives := l.s.creations(); {
			case lives == 0 && len(l.changes) > 0:
				c.offend(Mistold, "the log tells of a task that nobody enqueued")
			case lives == 1 && len(l.s.ids()) <= 1:
				c.complete(l)
				c.asked(l)
			}
		}
	}
}

// unbroken: the positions of each shard rise by one from the first on.
func (c *checker) unbroken(topic string, log []*Event) {
	for _, changes := range byShard(log) {
		for i, e := range changes {
			if want := int64(i) + 1; e.Change.Position != want {
				c.s = &story{topic: topic, id: e.Task, events: []*Event{e}}
				c.offend(Missed, "position %d of shard %d is where %d should be", e.Change.Position, e.Change.Shard, want)
				return
			}
		}
	}
}

func byShard(changes []*Event) map[int][]*Event {
	shards := map[int][]*Event{}
	for _, e := range changes {
		shards[e.Change.Shard] = append(shards[e.Change.Shard], e)
	}
	return shards
}

// livesIn are those of all tasks that clients know of, or the log. A task whose
// idempotency key nobody knows, as an answer was lost, is left out.
func (c *checker) livesIn(topic string, log []*Event) []*life {
	lives := map[string]*life{}
	unnamed := false // there may be tasks that no client knows of
	for _, s := range c.h.stories {
		if s.topic != topic {
			continue
		}
		ids := []string{s.id}
		if s.conflict() != "" {
			ids = s.ids()
			unnamed = unnamed || slices.ContainsFunc(s.enqueues, func(o *op) bool { return o.may() && (o.answer == nil || o.answer.ID == "") })
		}
		for _, id := range ids {
			lives[id] = &life{s: s, id: id}
		}
	}
	for _, e := range log {
		l := lives[e.Task]
		if l == nil {
			if unnamed || strings.HasPrefix(e.Task, Marker) {
				continue
			}
			l = &life{s: &story{topic: topic, id: e.Task}, id: e.Task}
			lives[e.Task] = l
		}
		l.changes = append(l.changes, e)
	}
	all := make([]*life, 0, len(lives))
	for _, l := range lives {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b *life) int { return cmp.Compare(a.id, b.id) })
	return all
}

// The states of a task, as its changes have it.
const (
	gone    = "gone"
	waiting = "waiting"
	held    = "held"
	done    = "done"
	dead    = "dead"
)

// steps are the states before and after each change.
var steps = map[string]struct {
	from []string
	to   string
}{
	"enqueued":         {[]string{gone, done, dead}, waiting},
	"updated":          {[]string{waiting}, waiting},
	"held":             {[]string{waiting}, held},
	"released":         {[]string{held}, waiting},
	"retrying":         {[]string{held}, waiting},
	"done":             {[]string{held}, done},
	"dead":             {[]string{held, waiting}, dead},
	"deleted":          {[]string{waiting, dead}, gone},
	"requeued":         {[]string{dead}, waiting},
	"cancel_requested": {[]string{held}, held},
}

// walker goes along a life.
type walker struct {
	state    string
	attempts int
	due      int64
	version  int64
}

// step applies a change and returns what is wrong with it.
func (w *walker) step(x *Change) string {
	if by, ok := steps[x.What]; !ok || !slices.Contains(by.from, w.state) {
		return fmt.Sprintf("%s while the task was %s", x.What, w.state)
	}
	want, version, due := w.attempts, w.version, w.due
	switch x.What {
	case "enqueued":
		want, version, due = 0, 1, x.Due
	case "updated":
		want, version, due = x.Attempt, w.version+1, x.Due
	case "held":
		want++
	case "released":
		want, due = want-1, x.Due
	case "retrying":
		due = x.Due
	case "requeued":
		want, due = 0, x.Due
	}
	before := w.version
	w.state, w.attempts, w.version, w.due = steps[x.What].to, want, version, due
	switch {
	case x.Attempt != want && x.What != "deleted":
		return fmt.Sprintf("%s with attempt %d, not %d", x.What, x.Attempt, want)
	case x.Version != 0 && x.Version != version:
		return fmt.Sprintf("%s with version %d after version %d", x.What, x.Version, before)
	case x.What == "held" && x.Due != 0 && x.Due != due:
		return fmt.Sprintf("held as due at %d, which was %d", x.Due, due)
	case x.What == "held" && x.At/1000 < due-heldAhead:
		return fmt.Sprintf("held %d ms before it was due", due-x.At/1000)
	}
	return ""
}

// possible reports whether the changes of a task are a life that one can have.
func (c *checker) possible(l *life) bool {
	w := walker{state: gone}
	for _, e := range l.changes {
		if wrong := w.step(e.Change); wrong != "" {
			c.offend(Mistold, "the log has it %s", wrong)
			return false
		}
		if tag := l.s.tag(); len(l.s.enqueues) > 0 && e.Change.Tag != tag {
			c.offend(Mistold, "the log has it with attribute %q, not %q", e.Change.Tag, tag)
			return false
		}
	}
	return true
}

// tag is the attribute of a task.
func (s *story) tag() string {
	for _, o := range s.enqueues {
		if o.Tag != "" {
			return o.Tag
		}
	}
	return ""
}

// endsAs: the last change is what the store has in the end.
func (c *checker) endsAs(l *life) {
	w := walker{state: gone}
	for _, e := range l.changes {
		w.step(e.Change)
	}
	found := l.found()
	state := gone
	if found != nil {
		state = map[string]string{"running": held, "done": done, "dead": dead, "expired": dead}[found.State]
		state = cmp.Or(state, waiting)
	}
	t := c.h.topics[l.s.topic]
	forgotten := state == gone && (w.state == done && (t == nil || t.KeepMS == 0) || w.state == dead && t != nil && t.MaxDead > 0)
	switch {
	case state != w.state && !forgotten:
		c.offend(Missed, "the log ends with the task %s, and it is %s", w.state, state)
	case found != nil && found.Version != 0 && found.Version != w.version:
		c.offend(Missed, "the log ends with version %d, and it has %d", w.version, found.Version)
	case state == waiting && found.Due != w.due:
		c.offend(Missed, "the log ends with it due at %d, and it is at %d", w.due, found.Due)
	}
}

// found is the task as it lay in the store in the end, nil when it did not.
func (l *life) found() (found *Event) {
	for _, f := range l.s.allFound {
		if f.ID == "" || f.ID == l.id {
			found = f
		}
	}
	return found
}

// trimmed: of the dead letters of a topic that keeps so many, no more are deleted than
// there are too many.
func (c *checker) trimmed(topic string, lives []*life) {
	t := c.h.topics[topic]
	if t == nil || t.MaxDead == 0 || !c.h.Audited || c.mayUndo() {
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
		c.s = last.s
		c.offend(Lost, "a dead letter was deleted as one of too many, and there were %d others, of %d", kept, t.MaxDead)
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
func (c *checker) complete(l *life) {
	if n := l.count(0, "enqueued"); n != 1 && l.s.stored() != nil || n > 1 {
		c.told(n, "the enqueue")
		return
	}
	for _, d := range l.s.deliveries {
		taken := slices.ContainsFunc(l.changes, func(e *Event) bool {
			return e.Change.What == "held" && e.Change.Attempt == d.Attempt && e.Change.Worker == d.Client
		})
		if !d.loose && !taken {
			c.told(0, fmt.Sprintf("attempt %d of %s", d.Attempt, d.Client))
			return
		}
	}
	for _, o := range l.s.settles {
		if o.Op != Extend && o.did() && o.settled != nil && !o.settled.loose && !l.ended(o) {
			c.told(0, fmt.Sprintf("the %s of attempt %d", o.Op, o.settled.Attempt))
			return
		}
	}
	for _, o := range l.s.removals {
		if n := l.count(0, "deleted"); o.did() && n != 1 {
			c.told(n, "the "+string(o.Op))
			return
		}
	}
	for _, o := range c.numbered() {
		made := func(e *Event) bool { return e.Change.What == "updated" && e.Change.Version == o.answer.Version }
		if !slices.ContainsFunc(l.changes, made) {
			c.told(0, fmt.Sprintf("the %s to version %d", o.Op, o.answer.Version))
			return
		}
	}
	for _, o := range l.s.cancels {
		if o.did() && o.answer.Outcome == requested && l.count(0, "cancel_requested") == 0 {
			c.told(0, "the cancel")
			return
		}
	}
}

func (c *checker) told(n int, what string) {
	if n == 0 {
		c.offend(Missed, "%s is not in the log", what)
		return
	}
	c.offend(Mistold, "%s is in the log %d times", what, n)
}

// ended reports whether the log has that a settlement ended its attempt.
func (l *life) ended(o *op) bool {
	return slices.ContainsFunc(l.changes, func(e *Event) bool {
		x := e.Change
		if x.Worker != o.settled.Client {
			return false
		}
		switch o.Op {
		case Ack:
			return x.What == "done" && x.Attempt == o.settled.Attempt
		case Nack:
			return (x.What == "retrying" || x.What == "dead") && x.Attempt == o.settled.Attempt
		}
		// The attempt does not count any more.
		return x.What == "released" && x.Attempt == o.settled.Attempt-1 || x.What == "dead"
	})
}

// asked: what the log has is what clients asked for.
func (c *checker) asked(l *life) {
	edits, repeated := 0, false
	for _, o := range l.s.edits {
		if o.may() {
			edits++
		}
		repeated = repeated || o.mayBeRepeated()
	}
	if n := l.count(0, "updated"); n > edits && !repeated && l.s.conflict() == "" {
		c.offend(Mistold, "the log has %d edits, of %d", n, edits)
	}
	if l.count(0, "deleted") > 0 && !slices.ContainsFunc(l.s.removals, (*op).may) {
		c.offend(Mistold, "the log has it deleted, and nobody asked for that")
	}
	if l.count(0, "cancel_requested") > 0 && !slices.ContainsFunc(l.s.cancels, (*op).may) {
		c.offend(Mistold, "the log has a cancel, and nobody asked for one")
	}
	outcomes := map[string]Op{"acked": Ack, "failed": Nack, "released": Release}
	for _, e := range l.changes {
		kind := outcomes[e.Change.Outcome]
		if kind == "" {
			continue
		}
		if !slices.ContainsFunc(l.s.settles, func(o *op) bool { return o.Op == kind && o.may() && o.Client == e.Change.Worker }) {
			c.offend(Mistold, "the log has an attempt of %s that was %s, and it did not say so", e.Change.Worker, e.Change.Outcome)
			return
		}
	}
}

package dispatch

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// assigner has tasks held for which there is room, and asks the store for what those need that are under
// limits. Topic is told what happened, and leaves the rest to it.
type assigner struct {
	core    dispatcher
	limiter *limiter      // nil: the topic has had no limits; also that of core
	shards  []bool        // by number: the shard has an actor here
	cut     time.Time     // when core.most was lowered last
	way     time.Duration // how long a task takes from its tokens to its hold, lately
	armed   time.Time     // the Tick that is asked for; zero: none

	effects [2]Effects // the one that is filled, and the one that was returned last
	filling int
	groups  map[Address]int // scratch of assign: index into Hold
}

// Shards sets which shards have an actor here. Tasks of others cannot be held.
func (t *assigner) Shards(present []bool) { t.shards = present }

func (t *assigner) present(shard int) bool {
	return shard >= 0 && shard < len(t.shards) && t.shards[shard]
}

// hold has assigned tasks held, and goes on with what is assigned because of that. Those of a topic with
// limits are assigned here.
func (t *assigner) hold(now time.Time, assigned []assignment) {
	if t.limiter != nil {
		t.step(now)
		return
	}
	fx := t.fill()
	for len(assigned) > 0 {
		a := assigned[0]
		assigned = assigned[1:]
		if !t.present(a.Shard) { // retired
			assigned = append(assigned, t.core.refund(a.Sub, len(a.Tasks))...)
			continue
		}
		fx.Hold = append(fx.Hold, Hold{Address: Address{Sub: a.Sub, Shard: a.Shard}, Tasks: a.Tasks})
	}
}

// step has tasks held that need nothing, or have what they need, and asks for what others need, while there is
// room. One call is on its way at a time.
func (t *assigner) step(now time.Time) {
	g, fx := t.limiter, t.fill()
	if !g.retry.IsZero() && !g.retry.After(now) {
		g.retry = time.Time{}
	}
	g.due(now)
	t.come(now)
	for g.call == nil && g.retry.IsZero() {
		if g.settle(); g.shut() != nil {
			break
		}
		room := g.through(t.core.vacancy())
		if room <= 0 {
			break
		}
		picked := g.pick(room)
		if len(picked) == 0 {
			break
		}
		free, call := g.ask(picked, room)
		t.assign(now, free)
		if call != nil {
			t.core.reserved += call.Room
			fx.Take = append(fx.Take, call)
		}
	}
	g.settle()
	t.core.left()
	g.passOn(now, len(t.core.subs))
	if call := g.giveBackAlone(now); call != nil {
		fx.Take = append(fx.Take, call)
	}
	t.watch(now)
	t.arm(fx)
}

// come assigns tasks whose moments have come.
func (t *assigner) come(now time.Time) {
	g, n := t.limiter, 0
	for n < len(g.coming) && !g.coming[n].at.After(now) {
		n++
	}
	if n == 0 {
		return
	}
	due := slices.Clone(g.coming[:n])
	g.coming = slices.Delete(g.coming, 0, n)
	t.core.reserved -= n
	t.assign(now, due)
}

// assign gives tasks to subscriptions with room. Those that find none any more are ready again.
func (t *assigner) assign(now time.Time, tasks []admitted) {
	fx, next := t.fill(), 0
	clear(t.groups)
	tasks = slices.DeleteFunc(tasks, func(a admitted) bool {
		gone := !t.present(a.Shard)
		if gone {
			t.turnBack(&a, false)
		}
		return gone
	})
	n := len(tasks)
	if t.core.paused { // since they were asked for
		n = 0
	}
	t.core.deal(n, "", func(s *subState, share int) {
		t.core.pace -= share
		for range share {
			a := &tasks[next]
			next++
			t.limiter.gone(&a.readyTask)
			to := Address{Sub: s.ID, Shard: a.Shard}
			at, known := t.groups[to]
			if !known {
				at = len(fx.Hold)
				t.groups[to] = at
				fx.Hold = append(fx.Hold, Hold{Address: to, Counted: true})
			}
			h := &fx.Hold[at]
			h.Tasks, h.Admissions = append(h.Tasks, a.Entry), append(h.Admissions, a.admission(s.visibility))
			t.core.unheld.addOne(a.Shard)
		}
	})
	for i := len(tasks) - 1; i >= next; i-- {
		t.turnBack(&tasks[i], true)
	}
}

// turnBack gives back what a task has that does not go.
func (t *assigner) turnBack(a *admitted, ready bool) {
	t.limiter.unused(a.receipt, a.permit)
	if ready {
		t.limiter.giveBack(a.readyTask)
	} else {
		t.limiter.gone(&a.readyTask)
	}
}

// arm asks for a Tick when the next moment comes that something waits for.
func (t *assigner) arm(fx *Effects) {
	at := t.limiter.wakeAt()
	if at.IsZero() || !t.armed.IsZero() && !at.Before(t.armed) {
		return
	}
	t.armed = at
	fx.WakeAt = append(fx.WakeAt, at)
}

// wakeAt is when to tick next, zero when nothing waits for a moment.
func (g *limiter) wakeAt() (at time.Time) {
	soonest := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	soonest(g.retry)
	if !g.owes.IsZero() && g.call == nil && g.retry.IsZero() {
		soonest(g.owes.Add(mostOwed))
	}
	if len(g.coming) > 0 {
		soonest(g.coming[0].at)
	}
	if g.call == nil && g.retry.IsZero() {
		for _, k := range g.turns {
			if !k.turn.IsZero() {
				soonest(k.turn.Add(roomComes))
			}
		}
	}
	if k := g.wakes.next(); k != nil {
		soonest(k.again)
	}
	return at
}

// taken records what became of a call.
func (t *assigner) taken(now time.Time, a *Taken) {
	g := t.limiter
	t.core.reserved -= g.call.Room
	granted := g.answered(now, a)
	var due []admitted
	for _, a := range granted {
		if !a.at.After(now) || a.doomed {
			due = append(due, a)
			continue
		}
		at, _ := slices.BinarySearchFunc(g.coming, a, func(x, a admitted) int {
			if x.at.After(a.at) {
				return 1
			}
			return -1
		})
		g.coming = slices.Insert(g.coming, at, a)
		t.core.reserved++
	}
	t.assign(now, due)
}

// turnBackComing gives back what tasks have whose moments are still to come.
func (t *assigner) turnBackComing(which func(a *admitted) bool, ready bool) {
	g := t.limiter
	for i := len(g.coming) - 1; i >= 0; i-- {
		if a := g.coming[i]; which(&a) {
			g.coming = slices.Delete(g.coming, i, i+1)
			t.core.reserved--
			t.turnBack(&a, ready)
		}
	}
}

// Permit is a task's right to be held under caps.
type Permit struct {
	Holder store.Token
	Keys   []store.LimitKey
	Until  store.Millis
}

// Each returns it as the store names permits, by key.
func (p *Permit) Each() []store.Permit {
	all := make([]store.Permit, len(p.Keys))
	for i, key := range p.Keys {
		all[i] = store.Permit{Key: key, Holder: p.Holder, Until: p.Until}
	}
	return all
}

// Admission is what a hold was admitted with.
type Admission struct {
	Since  store.Millis // it had all its tokens
	before store.Millis // of the hold, see store.Hold
	until  store.Millis
	Permit *Permit // nil: under no cap
	Doomed bool    // to be dead-lettered

	receipt store.TokenReceipt // of its tokens
}

// admission says how a task may be held. A hold that reaches the store so late that it
// would outlast its permit is refused there.
func (a *admitted) admission(visibility time.Duration) *Admission {
	if !a.limited || a.before.IsZero() && a.permit == nil && !a.doomed {
		return nil
	}
	l := &Admission{Permit: a.permit, Doomed: a.doomed, receipt: a.receipt}
	if since := a.since; !a.doomed {
		if a.at.After(since) {
			since = a.at
		}
		l.Since = store.Millis(since.UnixMilli())
	}
	if !a.before.IsZero() {
		l.before = store.Millis(a.before.UnixMilli())
	}
	if a.permit != nil {
		l.until = a.permit.Until.Add(-store.PermitSkew)
		late := l.until - store.Millis(visibility.Milliseconds())
		if l.before == 0 || late < l.before {
			l.before = late
		}
	}
	return l
}

// Apply has a hold keep to what it was let through with; nil is nothing.
func (l *Admission) Apply(h *store.Hold) {
	if l == nil {
		return
	}
	h.Before, h.Until = l.before, l.until
	if l.Permit != nil {
		h.Token = l.Permit.Holder
	}
}

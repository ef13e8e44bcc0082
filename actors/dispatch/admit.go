package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/ordered"
)

// assigner has what the dispatcher assigns held, or wait for what the limiter says it
// lacks, until nothing moves. Topic is told what happened, and leaves the rest to it.
type assigner struct {
	core    dispatcher
	limiter *limiter  // nil: the topic has had no limits
	shards  []bool    // by number: the shard has an actor here
	cut     time.Time // when core.most was lowered last
	armed   time.Time // the Tick that is asked for; zero: none

	effects [2]Effects // the one that is filled, and the one that was returned last
	filling int
	groups  map[Address]int // scratch of pass: index into Hold
}

// Shards sets which shards have an actor here. Tasks of others cannot be held.
func (t *assigner) Shards(present []bool) { t.shards = present }

func (t *assigner) present(shard int) bool {
	return shard >= 0 && shard < len(t.shards) && t.shards[shard]
}

// hold has assigned tasks held, or wait for what they lack, and goes on with what is
// assigned because of that.
func (t *assigner) hold(now time.Time, assigned []assignment) {
	if t.limiter == nil {
		t.holdAll(assigned)
		return
	}
	for len(assigned) > 0 {
		for _, a := range assigned {
			t.limiter.admit(now, a)
		}
		assigned = t.admitted()
	}
	t.reserve(now)
}

// reserve asks for the tokens that are wanted. That comes last: what room is left once all
// is assigned is for those who wait for tokens.
func (t *assigner) reserve(now time.Time) {
	if len(t.limiter.reserve)+len(t.limiter.windows) > 0 {
		fx := t.fill()
		fx.Reserve = t.limiter.reservations(now, fx.Reserve, t.core.vacancy())
	}
}

// holdAll is hold of a topic that has had no limits.
func (t *assigner) holdAll(assigned []assignment) {
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

// admitted records what the limiter decided, and returns what is assigned since.
func (t *assigner) admitted() (assigned []assignment) {
	g, fx := t.limiter, t.fill()
	t.pass(fx)
	move(&fx.Acquire, &g.ask)
	move(&fx.Resign, &g.resign)
	ready := g.ready
	slices.SortStableFunc(ready, func(a, b readyTask) int { return cmp.Compare(a.Shard, b.Shard) })
	for len(ready) > 0 {
		n := 1
		for n < len(ready) && ready[n].Shard == ready[0].Shard {
			n++
		}
		assigned = append(assigned, t.core.again(ready[:n])...)
		ready = ready[n:]
	}
	empty(&g.ready)
	for to, n := range ordered.All(g.refunds, Address.Compare) {
		delete(g.refunds, to)
		assigned = append(assigned, t.core.unassign(to, n)...)
	}
	t.arm(fx)
	return assigned
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

// pass has admitted tasks held. Those whose subscription ended meanwhile are ready again.
func (t *assigner) pass(fx *Effects) {
	g := t.limiter
	clear(t.groups)
	for i := range g.passed {
		p := &g.passed[i]
		sub, present := t.core.sub(p.Sub), t.present(p.Task.Shard)
		if sub == nil || !present {
			g.turnBack(p, present)
			if p.Permit != nil {
				fx.Free = append(fx.Free, p.Permit)
			}
			continue
		}
		to := Address{Sub: p.Sub, Shard: p.Task.Shard}
		at, known := t.groups[to]
		if !known {
			at = len(fx.Hold)
			t.groups[to] = at
			fx.Hold = append(fx.Hold, Hold{Address: to, Counted: true})
		}
		h := &fx.Hold[at]
		h.Tasks, h.Admissions = append(h.Tasks, p.Task.Entry), append(h.Admissions, p.admission(sub.visibility))
	}
	empty(&g.passed)
}

// move appends a slice to another, and empties it.
func move[T any](to, from *[]T) {
	*to = append(*to, *from...)
	empty(from)
}

// empty keeps the room of a slice, and nothing that was in it.
func empty[T any](s *[]T) {
	clear(*s)
	*s = (*s)[:0]
}

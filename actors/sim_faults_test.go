package actors_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/checker"
	"github.com/ddq-io/ddq/store"
)

// trouble plans the faults of a run. All of them are over when the producers stop.
func (s *sim) trouble() {
	for range s.plan.faults {
		from := s.between(3*time.Second, s.plan.active-10*time.Second)
		s.at(s.start.Add(from), s.fault)
	}
	for range s.plan.drops {
		s.at(s.start.Add(s.between(10*time.Second, s.plan.active-10*time.Second)), s.drop)
	}
	rng := rand.New(rand.NewPCG(s.seed, 63))
	for range s.plan.shuts {
		at, which, lasts := simBetween(rng, 3*time.Second, s.plan.active-10*time.Second), rng.Int(), simBetween(rng, time.Millisecond, 2*s.plan.lease)
		s.at(s.start.Add(at), func() { s.shut(which, lasts) })
	}
	s.planReshards()
}

// drawShuts draws how often a shard is away, from a source of its own like drawIdle: where messages go to other shards, which
// are there meanwhile. Not where tasks expire: trouble excuses what nobody looked at for so long.
func (s *sim) drawShuts(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 62))
	if p.away+p.chained == 0 || p.expiring || rng.IntN(2) == 0 {
		return 0
	}
	return 1 + rng.IntN(6)
}

// shut has the primary of some shard be away for a while.
func (s *sim) shut(which int, lasts time.Duration) {
	shards := s.shards()
	sh := shards[which%len(shards)].For(0)
	s.log("%v is away", sh)
	s.excuse(lasts)
	s.faults.shut[sh]++
	s.after(lasts, func() {
		if s.faults.shut[sh] > 0 {
			s.faults.shut[sh]--
		}
		s.log("%v is there: %v", sh, s.faults.shut[sh] == 0)
	})
}

// drop deletes the topic with its tasks, under traffic.
func (s *sim) drop() {
	n := s.anyNode()
	if n == nil {
		return
	}
	s.order.forget()
	s.excuse(s.plan.callTimeout + s.plan.housekeepEvery)
	s.client("dropper").call(n, history.Event{Op: history.Drop, Topic: simTopic}, func(ctx context.Context) (history.Event, error) {
		err := n.use.Topics.Delete(ctx, simTopic, true)
		s.arrive(s.order.forget)
		return history.Event{}, err
	})
}

// fault breaks something.
func (s *sim) fault() {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	lasts := s.between(100*time.Millisecond, 2*s.plan.lease)
	s.excuse(lasts)
	if s.plan.rewind > 0 { // what is late then would be of a past that was undone
		switch s.rng.IntN(3) {
		case 0:
			s.restart(n, lasts)
		case 1:
			s.rewind(lasts)
		case 2:
			if len(n.workers) > 0 {
				s.crashWorker(n.workers[s.rng.IntN(len(n.workers))])
			}
		}
		return
	}
	kind := s.rng.IntN(10)
	if s.plan.lies.fences { // an owner has to miss that another one claimed its shard
		kind = 9
	}
	switch kind {
	case 0:
		s.restart(n, lasts)
	case 1:
		s.pause(n)
		s.after(lasts, func() { s.resume(n) })
	case 2:
		s.log("%s is cut from the store", n.key)
		n.cut = true
		s.after(lasts, func() { n.cut = false; s.log("%s reaches the store", n.key) })
	case 3:
		s.log("store down")
		s.faults.down = true
		s.after(lasts, func() { s.faults.down = false; s.log("store up") })
	case 4:
		s.log("store silent")
		s.faults.silent = true
		s.after(lasts, func() { s.faults.silent = false; s.log("store speaks") })
	case 5:
		s.log("store loses calls and answers")
		putOff(&s.late.slow, lasts+simAftermath)
		s.faults.loseReply, s.faults.loseCall, s.faults.slow = 0.2, 0.1, 0.1
		s.after(lasts, func() { s.faults.loseReply, s.faults.loseCall, s.faults.slow = 0, 0, 0 })
	case 6:
		if len(n.workers) > 0 {
			s.crashWorker(n.workers[s.rng.IntN(len(n.workers))])
		}
	case 7:
		other := s.nodes[s.rng.IntN(len(s.nodes))]
		s.part(n, other, true)
		s.after(lasts, func() { s.part(n, other, false) })
	case 8:
		s.panics(n)
	case 9:
		s.forgetSession(n, lasts)
	}
}

// forgetSession has the store know nothing of a node's session any more: a later one of the node
// began and is over. Its shards are anyone's until it begins another one, and at times the others
// take it for gone meanwhile, so that they claim them.
func (s *sim) forgetSession(n *simNode, lasts time.Duration) {
	s.log("store forgets the session of %s", n.key)
	s.excuse(2 * s.plan.lease) // it finds out when it renews, and claims anew
	later := store.Session{Node: n.name, Start: store.Token{1}, TTL: time.Millisecond, Begin: true}
	if _, err := s.on(store.Shard{}).RenewSession(simContext, later); err != nil {
		panic(err) // memstore fails only when it is closed
	}
	if s.chance(0.5) {
		return
	}
	for _, other := range s.nodes {
		if other != n {
			other.see(slices.DeleteFunc(s.membersFor(other), func(m fleet.Member) bool { return m.Name == n.name }))
		}
	}
	s.misled()
	s.after(lasts, s.gossip)
}

// panics has one of a node's actors panic at the message that it gets next.
func (s *sim) panics(n *simNode) {
	names := slices.DeleteFunc(actors.SortedActors(n.actors), func(name string) bool { return !actors.MayPanic(n.actors[name]) })
	if !n.dead.Load() && len(names) > 0 {
		n.fatal[names[s.rng.IntN(len(names))]] = true
	}
}

// part cuts the way from one node to another, or mends it.
func (s *sim) part(from, to *simNode, apart bool) {
	s.log("%s to %s apart: %v", from.name, to.name, apart)
	if s.apart == nil {
		s.apart = map[[2]string]bool{}
	}
	s.apart[[2]string{from.name, to.name}] = apart
	if apart {
		for _, l := range slices.Concat(from.links, from.served) {
			if l.to == to.name || l.from == to {
				l.cutOff()
			}
		}
		if s.chance(0.5) { // it is not seen either
			from.see(slices.DeleteFunc(s.membersFor(from), func(m fleet.Member) bool { return m.Name == to.name && to != from }))
		}
		return
	}
	s.gossip()
}

// restart kills a node and starts another life of it.
func (s *sim) restart(n *simNode, after time.Duration) {
	s.kill(n, "fault")
	s.gossip()
	s.after(after, func() { s.revive(n) })
}

func (s *sim) revive(n *simNode) {
	if s.nodes[n.i] == n {
		s.nodes[n.i] = s.startNode(n.i, n.life+1)
		s.gossip()
	}
}

// rewind sets the store back to what it was some time before, as a failover to a
// replica that lags does. The ledger is told.
func (s *sim) rewind(lag time.Duration) {
	lag = min(lag, s.plan.rewind)
	was, fences := s.mem.Clone(), maps.Clone(s.fences)
	s.after(lag, func() {
		c := s.client("rig")
		c.write(history.Event{Kind: history.Fault, Fault: "rewind"})
		s.mem.Restore(was)
		s.fences = fences
		s.excuse(0)
		s.after(5*time.Second, func() { c.write(history.Event{Kind: history.Healed, Fault: "rewind"}) })
	})
}

// allowances is what the faults of a plan may cost.
func (p *simPlan) allowances() []checker.Allowance {
	return []checker.Allowance{{Fault: "rewind", Before: p.rewind}}
}

// heal ends every fault.
func (s *sim) heal() {
	s.excuse(0)
	s.faults = newSimFaults()
	s.apart = nil
	for _, n := range s.nodes {
		n.cut = false
		s.resume(n)
		if n.dead.Load() {
			s.revive(n)
		}
	}
	s.gossip()
}

// parted reports whether two nodes cannot reach each other.
func (s *sim) parted(a, b string) bool { return s.apart[[2]string{a, b}] || s.apart[[2]string{b, a}] }

package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// simNode is one life of a node: a System, and what is around it. It is the System's
// Fleet and Peers. Everything in it but what is named belongs to the loop.
type simNode struct {
	s    *sim
	name string
	key  string // name and life
	i    int
	life int
	sys  actors.SimNode
	care *upkeep.Upkeep
	use  *service.Service

	dead   atomic.Bool
	killed chan struct{} // closed once dead
	ctx    context.Context
	cancel context.CancelFunc

	up       bool // System has started
	paused   bool
	cut      bool                   // from the store
	backlog  []simJob               // of a paused node
	actors   map[string]actor.Actor // those that run, by name
	fatal    map[string]bool        // of those: who panics at the next message
	fallen   map[string]bool        // those that panicked and are not restarted yet
	later    []func()               // what reaches it once it wakes up
	view     []fleet.Member         // who it thinks is there
	viewMu   sync.Mutex             // guards view
	changed  bool
	draining bool
	links    []*simLink // that it opened
	served   []*simLink // that others opened to it
	workers  []*simWorker
}

func simName(i int) string { return fmt.Sprintf("n%d", i) }

// simLife says how a fleet is set up: nodes of one run.
func (s *sim) startNode(i, life int) *simNode {
	name := simName(i)
	n := &simNode{s: s, name: name, key: fmt.Sprintf("%s.%d", name, life), i: i, life: life, killed: make(chan struct{})}
	ctx, cancel := context.WithCancel(simContext)
	n.ctx, n.cancel = simCtx{ctx, n}, cancel
	n.actors, n.fatal, n.fallen = map[string]actor.Actor{}, map[string]bool{}, map[string]bool{}
	n.sys = actors.NewSimNode(s.plan.config(i), n.store(), actors.SimSeams{
		Engine: s.engine, Random: rand.New(rand.NewPCG(s.rng.Uint64(), 1)).Float64, Fleet: n, Peers: n,
		Take: func(f func(), mailbox bool) { s.job(n, f, mailbox) }, Turn: func() { s.myTurn(n) }, Probe: n.probe,
	})
	n.sys.Topics().Caps.Set(func(string) int { return s.plan.shared })
	n.care = upkeep.New(n.sys.Node)
	n.use = service.New(n.sys.Node, n.care.IndexNow)
	s.log("%s starts", n.key)
	n.view = s.membersFor(n)
	n.try()
	return n
}

// try starts the System, or dies of it and is started again.
func (n *simNode) try() {
	n.s.spawn(n, func() error { return n.sys.Begin(n.ctx, simTopic) }, func(err error) {
		if err != nil {
			n.s.log("%s did not start", n.key)
			n.s.restart(n, n.s.between(time.Second, 5*time.Second))
			return
		}
		n.up = true
		n.s.log("%s is up", n.key)
		n.live()
	})
}

// spawn runs something of a node that waits, and then has the loop go on.
func (s *sim) spawn(n *simNode, do func() error, then func(error)) {
	s.ask(simArrival{wakes: true, do: func() {
		s.spawned(func() {
			err := do()
			s.arrive(func() {
				if !n.dead.Load() {
					n.whenAwake(func() { then(err) })
				}
			})
		})
	}})
}

// live keeps the node's clocks going: what tickers do in a real one.
func (n *simNode) live() {
	p := &n.s.plan
	n.every(p.lease/actors.Renewals, func(int) { n.sys.Renew(n.ctx) })
	n.every(p.seqEvery, func(turn int) {
		n.care.FollowServers(n.ctx)
		if n.viewChanged() {
			n.sys.FollowView()
			n.care.Discover(n.ctx)
			return
		}
		if turn%p.discoverTurns == 0 {
			n.care.Discover(n.ctx)
			return
		}
		n.care.CheckSeqs(n.ctx)
	})
	n.every(p.housekeepEvery, func(turn int) {
		n.care.FollowTopics(n.ctx)
		n.sys.Topics().CloseIdle(n.ctx)
		if turn%3 == 0 {
			n.care.Chores(n.ctx)
			n.care.IndexBehind(n.ctx)
		}
	})
	n.ticks(p.loadEvery, n.sys.LoadNow)
	n.ticks(p.watchdog, n.sys.WatchNow)
	n.ticks(clock.JumpPause, func() { n.sys.Clocks().LookForJumps(n.ctx) })
	for k := range p.workers + len(n.s.topics()) - 1 {
		n.s.after(n.s.between(0, 100*time.Millisecond), func() { n.s.startWorker(n, k) })
	}
}

// every does something again and again. Like with a ticker, turns are left out while
// it takes longer.
func (n *simNode) every(d time.Duration, do func(turn int)) {
	turn := 0
	var next func()
	next = func() {
		if n.dead.Load() {
			return
		}
		n.whenAwake(func() {
			turn++
			at := turn
			n.s.spawn(n, func() error {
				do(at)
				return nil
			}, func(error) { n.s.after(d, next) })
		})
	}
	n.s.after(n.s.between(d/2, d), next)
}

// ticks does something that does not wait again and again.
func (n *simNode) ticks(d time.Duration, do func()) {
	var next func()
	next = func() {
		if !n.dead.Load() {
			n.whenAwake(do)
			n.s.after(d, next)
		}
	}
	n.s.after(n.s.between(d/2, d), next)
}

// whenAwake does something now, or once the node is not paused any more.
func (n *simNode) whenAwake(do func()) {
	switch {
	case n.paused && !n.dead.Load():
		n.later = append(n.later, do)
	default:
		do()
	}
}

// wheelDue is how long it is until the node's wheel has something due; negative: not
// to be foreseen.
func (n *simNode) wheelDue() time.Duration {
	if n.dead.Load() || n.paused || !n.up {
		return -1
	}
	left, ok := n.sys.Due()
	switch {
	case !ok:
		return -1
	case left <= 0:
		return 0
	}
	return left + time.Duration(n.i+1)*time.Microsecond // two nodes do not wake up at once
}

// pause stops a node where it is.
func (s *sim) pause(n *simNode) {
	s.log("%s is paused", n.key)
	n.paused = true
}

// resume lets a paused node go on: what piled up comes in any order.
func (s *sim) resume(n *simNode) {
	if n.dead.Load() || !n.paused {
		return
	}
	s.log("%s goes on", n.key)
	n.paused = false
	s.ready = append(s.ready, n.backlog...)
	n.backlog = nil
	later := n.later
	n.later = nil
	for _, do := range later {
		s.after(s.between(0, time.Millisecond), func() { n.whenAwake(do) })
	}
}

// kill ends a life at once.
func (s *sim) kill(n *simNode, why string) {
	if n.dead.Swap(true) {
		return
	}
	s.log("%s is killed: %s", n.key, why)
	close(n.killed)
	n.cancel()
	for _, w := range n.workers {
		w.lose()
	}
	for _, l := range slices.Concat(n.links, n.served) {
		l.cutOff()
	}
	pending := n.backlog
	s.ready = slices.DeleteFunc(s.ready, func(j simJob) bool {
		if j.node == n {
			pending = append(pending, j)
		}
		return j.node == n
	})
	for _, j := range pending {
		go j.f()
	}
	n.backlog = nil
	n.later = nil // store calls that wait for an answer have been told
	go n.sys.Abandon()
}

// A node as the Fleet of its System.

// membersFor is who is there, as a node could know it.
func (s *sim) membersFor(n *simNode) []fleet.Member {
	members := []fleet.Member{}
	for _, other := range s.nodes {
		if !other.dead.Load() && other.i != n.i {
			members = append(members, other.member())
		}
	}
	members = append(members, n.member())
	slices.SortFunc(members, func(a, b fleet.Member) int {
		return place.Compare(store.Shard{Topic: a.Name}, store.Shard{Topic: b.Name})
	})
	return members
}

func (n *simNode) member() fleet.Member {
	state := fleet.MemberActive
	if n.draining {
		state = fleet.MemberDraining
	}
	return fleet.Member{Name: n.name, Addr: n.name, State: state, NoQueues: time.Since(n.s.start) < n.s.plan.former}
}

// gossip has every node learn some time who is there, each at its own.
func (s *sim) gossip() {
	s.excuse(0)
	s.misled()
	for _, n := range s.nodes {
		s.after(s.between(10*time.Millisecond, s.plan.gossipLag), func() {
			if !n.dead.Load() {
				n.see(s.membersFor(n))
			}
		})
	}
}

func (n *simNode) see(members []fleet.Member) {
	n.viewMu.Lock()
	defer n.viewMu.Unlock()
	n.view, n.changed = members, true
}

func (n *simNode) viewChanged() bool {
	n.viewMu.Lock()
	defer n.viewMu.Unlock()
	changed := n.changed
	n.changed = false
	return changed
}

func (n *simNode) View() fleet.View {
	n.viewMu.Lock()
	defer n.viewMu.Unlock()
	return simView(n.view)
}

func (n *simNode) Changed() <-chan struct{} { return nil } // see live

func (n *simNode) SetDraining(draining bool) error {
	if n.dead.Load() {
		return nil
	}
	n.s.arrive(func() {
		n.draining = draining
		n.s.log("%s draining: %v", n.key, draining)
		n.s.gossip()
	})
	return nil
}

// A node as the Peers of its System.

// reach returns the node of a name, nil when it is away.
func (s *sim) find(name string) *simNode {
	for _, n := range s.nodes {
		if n.name == name && !n.dead.Load() && n.up {
			return n
		}
	}
	return nil
}

func (n *simNode) Notify(to fleet.Member, notice fleet.Notice) {
	if n.dead.Load() {
		return
	}
	n.s.arrive(func() {
		if n.s.chance(n.s.plan.loseNotice) || n.s.parted(n.name, to.Name) {
			n.s.log("%s notice to %s lost", n.key, to.Name)
			return
		}
		n.s.after(n.s.lag(), func() {
			if other := n.s.find(to.Name); other != nil {
				other.whenAwake(func() { other.sys.Peer().Notified(notice) })
			}
		})
	})
}

func (n *simNode) Keep([]fleet.Member) {} // it keeps nothing

var errSimAway = errors.New("no way there")

func (n *simNode) Describe(context.Context, fleet.Member, fleet.StatusQuery) (fleet.PeerStatus, error) {
	return fleet.PeerStatus{}, errSimAway
}

func (n *simNode) Workers(context.Context, fleet.Member, fleet.WorkersQuery) ([]fleet.Worker, error) {
	return nil, errSimAway
}

func (n *simNode) Drain(context.Context, fleet.Member, bool) error { return errSimAway }

func (n *simNode) Audit(context.Context, fleet.Member, fleet.AuditQuery) (fleet.AuditPage, error) {
	return fleet.AuditPage{None: true}, nil
}

func (n *simNode) VerifyAudit(context.Context, fleet.Member) (fleet.AuditChain, error) {
	return fleet.AuditChain{State: fleet.AuditNone}, nil
}

func (n *simNode) SetLogLevel(context.Context, fleet.Member, fleet.LogLevel) (time.Time, error) {
	return time.Time{}, errSimAway
}

func (n *simNode) Release(context.Context, fleet.Member, store.Shard) error { return errSimAway }

// Subscribe opens a link.
func (n *simNode) Subscribe(to fleet.Member, o subscription.Options, link fleet.Link) fleet.RemoteSubscription {
	l := &simLink{Link: link, s: n.s, from: n, to: to.Name, options: o}
	if n.dead.Load() {
		l.over.Store(true)
		return l
	}
	n.s.arrive(func() {
		n.links = append(n.links, l)
		n.s.after(n.s.lag(), l.open)
	})
	return l
}

// simLink is a subscription at another node, and its Outbox there. What goes one way
// stays in order.
type simLink struct {
	fleet.Link
	s       *sim
	from    *simNode
	to      string
	at      *simNode // that serves it
	options subscription.Options
	sub     *service.Subscription
	over    atomic.Bool // at the serving end
	told    bool        // Closed was called
	broken  bool        // nothing that is on the way arrives
	out, in time.Time   // when the last message of each way arrives
	went    simInOrder  // what arrived at the other end
	came    simInOrder  // and at this one
	queued  int         // credit granted before it was open
	drained bool        // it is to begin anew
}

func (l *simLink) open() {
	at := l.s.find(l.to)
	if at == nil || l.s.parted(l.from.name, l.to) {
		l.over.Store(true)
		l.back(func() { l.close(errSimAway) })
		return
	}
	l.at = at
	at.served = append(at.served, l)
	at.whenAwake(func() {
		l.s.spawn(at, func() (err error) {
			l.sub, err = at.use.Delivery.Subscribe(at.ctx, l.options, l)
			return err
		}, func(err error) {
			switch {
			case err != nil:
				l.over.Store(true)
				l.back(func() { l.close(err) })
			case l.over.Load():
				l.sub.Unsubscribe(nil)
			default:
				l.back(func() { l.Link.Opened() })
				if l.queued > 0 {
					_ = l.sub.Grant(l.queued)
				}
			}
		})
	})
}

// there has something happen at the other end.
func (l *simLink) there(do func()) {
	if l.from.dead.Load() {
		return
	}
	l.s.arrive(func() {
		l.out = later(l.out, time.Now().Add(l.s.lag()))
		l.s.at(l.out, func() {
			if !l.over.Load() && !l.broken && (l.at == nil || !l.at.dead.Load()) {
				if l.at == nil {
					do()
					return
				}
				l.at.whenAwake(l.went.next(do))
			}
		})
	})
}

// back has something happen at this end. The loop calls it.
func (l *simLink) back(do func()) {
	l.in = later(l.in, time.Now().Add(l.s.lag()))
	l.s.at(l.in, func() {
		if !l.from.dead.Load() && !l.told && !l.broken {
			l.from.whenAwake(l.came.next(do))
		}
	})
}

// simInOrder is what arrived and may have to wait for a paused node, which takes what piled up in any order.
type simInOrder []func()

// next returns a function that does what has waited longest, once each for what arrived.
func (q *simInOrder) next(do func()) func() {
	*q = append(*q, do)
	return func() {
		first := (*q)[0]
		*q = (*q)[1:]
		first()
	}
}

func later(a, b time.Time) time.Time {
	if !b.After(a) {
		return a.Add(1)
	}
	return b
}

func (l *simLink) close(err error) {
	if !l.told {
		l.told = true
		l.Link.Closed(err)
	}
}

// cutOff ends the link in the middle of everything: each end finds out by itself.
func (l *simLink) cutOff() {
	if l.told || l.broken {
		return
	}
	l.broken = true
	l.s.after(l.s.between(time.Millisecond, 2*time.Second), func() {
		if !l.from.dead.Load() {
			l.from.whenAwake(func() { l.close(errSimAway) })
		}
	})
	l.s.after(l.s.between(time.Millisecond, 2*time.Second), func() {
		if !l.over.Swap(true) && l.sub != nil && !l.at.dead.Load() {
			l.sub.Unsubscribe(nil)
		}
	})
}

func (l *simLink) Grant(n int) {
	l.there(func() {
		if l.sub == nil {
			l.queued += n
			return
		}
		_ = l.sub.Grant(n)
	})
}

func (l *simLink) Close() { l.there(l.finish) }

// finish ends the link in order, at the serving end.
func (l *simLink) finish() {
	if l.over.Swap(true) {
		return
	}
	if l.sub != nil {
		l.sub.Unsubscribe(nil)
	}
	l.back(func() { l.close(nil) })
}

func (l *simLink) Deliver(tasks []subscription.Delivery) bool {
	if l.over.Load() || l.at.dead.Load() {
		return false
	}
	l.s.leaves(l.at.key, tasks)
	l.s.arrive(func() { l.back(func() { l.Link.Deliver(tasks) }) })
	return true
}

func (l *simLink) Demand(ready, returned int) {
	if l.over.Load() || l.at.dead.Load() {
		return
	}
	l.s.arrive(func() { l.back(func() { l.Link.Demand(ready, returned) }) })
}

func (l *simLink) Cancel(asks []subscription.CancelAsk) {
	if !l.over.Load() && !l.at.dead.Load() {
		l.s.arrive(func() { l.back(func() { l.Link.Cancel(asks) }) })
	}
}

func (l *simLink) NodesChanged() {}

func (l *simLink) Settled(uint64, []subscription.Settled) {}

func (l *simLink) Drain(time.Duration) {
	if !l.at.dead.Load() {
		l.drained = true
		l.s.arrive(l.finish)
	}
}

// simView places by rendezvous hashing.
type simView []fleet.Member

func (v simView) Members() []fleet.Member { return v }

func (v simView) Owner(s store.Shard) (owner string) {
	best := uint64(0)
	for _, m := range v {
		if weight := simWeight(m.Name, s); m.State == fleet.MemberActive && weight >= best {
			best, owner = weight, m.Name
		}
	}
	return owner
}

func simWeight(name string, s store.Shard) uint64 {
	h := uint64(s.N)*0x9E3779B97F4A7C15 + 1
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0xBF58476D1CE4E5B9
	}
	return h ^ h>>29
}

func (v simView) Without(names ...string) fleet.View { return v }

// store is the store as the node reaches it. It keeps cells in runs that have use for them.
func (n *simNode) store() store.Store {
	if n.s.keepsCells() {
		return simCells{&simStore{n.s, n}}
	}
	return &simStore{n.s, n}
}

package actors_test

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/pprof"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// A simulation is a fleet of whole Systems in one bubble of fake time, in which one
// loop decides, from a seed, what happens next. Every function that a node would run
// on a goroutine, every store call, notice, frame and timer waits for the loop, which
// lets one of them go at a time and then waits until nothing moves any more. So a seed
// gives the same run again, to the last message.
//
// What the nodes decide is the product's; only what surrounds them is made up: the
// network, the store's trouble (in front of memstore), gossip, producers and workers.

// sim is one run.
type sim struct {
	seed   uint64
	plan   simPlan
	rng    *rand.Rand
	start  time.Time
	handed time.Time // when the last task was delivered
	trace  io.Writer // nil: none
	engine *actor.ActorSystem

	mem    *memstore.Store
	faults simFaults
	apart  map[[2]string]bool          // from, to: nothing gets through
	fences map[store.Shard]store.Fence // of the last claim, as the store granted it
	nodes  []*simNode
	events simEvents
	pushed int
	steps  int
	ready  []simJob

	stepped *simNode // by the last step: to be checked

	poke chan struct{}

	books map[string]*simClient
	order *simOrder
	late  simLate

	schedules map[store.CellID]*simSchedule
	flows     map[string]*simFlow
	audience  *simAudience    // nil: there is none
	away      map[string]bool // tasks of the other topic
	chains    simChains
	messages  simMessages
	limits    simLimits
	dead      simDead
	twin      *simTwin // nil: there is none
	calendars schedule.Calendars
	met       map[string]bool // probes and excuses
	breach    []string        // of what only the simulation can see

	mu       sync.Mutex
	arrivals []simArrival  // guarded by mu
	resting  []chan func() // goroutines that are done; guarded by mu

	idle  []chan func() // goroutines that wait for something to run
	turns simTurns
	loop  context.Context // with the labels of the loop's goroutine
}

// simEvent is something that will happen.
type simEvent struct {
	at time.Time
	n  int // in the order of asking
	do func()
}

type simEvents []simEvent

func (q simEvents) Len() int { return len(q) }
func (q simEvents) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].n, q[j].n)) < 0
}
func (q simEvents) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *simEvents) Push(x any)   { *q = append(*q, x.(simEvent)) }
func (q *simEvents) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = simEvent{}
	*q = (*q)[:last]
	return e
}

// simJob is a function of a node that could run now.
type simJob struct {
	node    *simNode
	f       func()
	mailbox bool // it never waits
}

func simRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15)) }

func newSim(seed uint64, plan simPlan, trace io.Writer) *sim {
	s := &sim{
		schedules: make(map[store.CellID]*simSchedule),
		flows:     make(map[string]*simFlow),
		away:      make(map[string]bool),
		chains:    simChains{acked: make(map[string]bool), topics: make(map[string]string), keyed: make(map[string]bool)},
		met:       make(map[string]bool), messages: newSimMessages(), dead: newSimDead(), faults: newSimFaults(),
		seed: seed, plan: plan, trace: trace, engine: actors.NewSimEngine(),
		rng:   simRandom(seed),
		start: time.Now(), mem: memstore.New(), poke: make(chan struct{}, 1),
		fences: map[store.Shard]store.Fence{}, books: map[string]*simClient{}, order: newSimOrder(),
		loop: pprof.WithLabels(simContext, pprof.Labels("sim", "loop")), turns: simTurns{labels: map[unsafe.Pointer]simTurn{}},
	}
	pprof.SetGoroutineLabels(s.loop)
	s.turns.labels[goroutineLabels()] = simLoop
	return s
}

// after has the loop do something in a while.
func (s *sim) after(d time.Duration, do func()) { s.at(time.Now().Add(d), do) }

func (s *sim) at(at time.Time, do func()) {
	s.pushed++
	heap.Push(&s.events, simEvent{at, s.pushed, do})
}

// run lets things happen until done says so.
func (s *sim) run(done func() bool) {
	for !done() {
		synctest.Wait()
		if s.admit() {
			continue
		}
		if s.stepped != nil {
			s.check(s.stepped)
			s.stepped = nil
		}
		switch {
		case len(s.ready) > 0:
			s.step()
		case s.turnWheels():
		default:
			s.next()
		}
	}
}

// admit records what goroutines asked for since.
func (s *sim) admit() bool {
	arrivals := s.takeArrivals()
	select {
	case <-s.poke:
	default:
	}
	for _, a := range arrivals {
		a.do()
		if a.wakes {
			synctest.Wait() // it does what it does before the next one
		}
	}
	return len(arrivals) > 0
}

// step runs one of the functions that could. It takes a moment of its own, so that
// no two timers are set for the same one.
func (s *sim) step() {
	i := s.rng.IntN(len(s.ready))
	j := s.ready[i]
	last := len(s.ready) - 1
	s.ready[i], s.ready[last] = s.ready[last], simJob{}
	s.ready = s.ready[:last]
	if j.node.paused {
		j.node.backlog = append(j.node.backlog, j)
		return
	}
	s.steps++
	s.stepped = j.node
	time.Sleep(time.Duration(1 + s.rng.IntN(3000)))
	s.spawned(j.f)
}

// spawned runs a function on a goroutine of its own, one that was used before if there
// is one: a new one would grow its stack anew.
func (s *sim) spawned(f func()) {
	last := len(s.idle) - 1
	if last < 0 {
		next := make(chan func())
		go func() {
			for f := range next {
				f()
				s.mu.Lock()
				s.resting = append(s.resting, next)
				s.mu.Unlock()
			}
		}()
		s.idle = append(s.idle, next)
		last = 0
	}
	to := s.idle[last]
	s.idle = s.idle[:last]
	turn := s.newTurn()
	s.give(turn)
	to <- func() {
		s.enter(turn)
		f()
	}
}

// turnWheels fires the wheel of a node that has something due.
func (s *sim) turnWheels() (any bool) {
	for _, n := range s.nodes {
		if n.wheelDue() == 0 {
			n.sys.Fire()
			any = true
		}
	}
	return any
}

// next waits for what comes next, or for a goroutine that asks for something.
func (s *sim) next() {
	s.steps++
	wait := time.Hour
	if len(s.events) > 0 {
		wait = time.Until(s.events[0].at)
	}
	for _, n := range s.nodes {
		if d := n.wheelDue(); d >= 0 {
			wait = min(wait, d)
		}
	}
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.poke:
		}
		return
	}
	e := heap.Pop(&s.events).(simEvent)
	e.do()
}

// job takes a function of a node.
func (s *sim) job(n *simNode, f func(), mailbox bool) {
	if n.dead.Load() { // nobody cares any more, but it must come to its end
		go f()
		return
	}
	s.arrive(func() {
		if n.dead.Load() {
			go f()
			return
		}
		s.ready = append(s.ready, simJob{n, f, mailbox})
	})
}

// log is one line of the trace.
func (s *sim) log(format string, args ...any) {
	if s.trace != nil {
		fmt.Fprintf(s.trace, "%15.9f  %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// broken notes a broken promise that the ledger cannot show.
func (s *sim) broken(format string, args ...any) {
	if len(s.breach) >= simBreaches {
		return
	}
	line := fmt.Sprintf("%12.6f  ", time.Since(s.start).Seconds()) + fmt.Sprintf(format, args...)
	s.breach = append(s.breach, line)
	s.log("BROKEN %s", line)
}

func (s *sim) chance(p float64) bool { return s.rng.Float64() < p }

// between is a duration from a to b.
func (s *sim) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.rng.Int64N(int64(b-a)+1))
}

// lag is how long a message is on its way.
func (s *sim) lag() time.Duration {
	switch {
	case s.chance(0.02):
		return s.between(10*time.Millisecond, 300*time.Millisecond)
	default:
		return s.between(100*time.Microsecond, 2*time.Millisecond)
	}
}

// simResult is what came of a run.
type simResult struct {
	Seed     uint64
	Steps    int
	Lasted   time.Duration // simulated
	Breaches []string
	Verdict  *verdict.Verdict
	Met      map[string]bool
}

func (r *simResult) ok() bool { return len(r.Breaches) == 0 && r.Verdict.OK() }

// simulate runs one seed in a bubble of its own.
func simulate(t *testing.T, seed uint64, plan simPlan, trace io.Writer) (r *simResult) {
	synctest.Test(t, func(*testing.T) {
		s := newSim(seed, plan, trace)
		r = s.whole()
	})
	return r
}

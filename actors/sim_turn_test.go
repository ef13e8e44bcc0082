package actors_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"slices"
	"unsafe"
)

// What the loop lets go may wake other goroutines: a batch that is answered wakes its callers,
// and they run while whoever answered them goes on. So that a seed does not depend on which of
// them is faster, the loop numbers what it lets go. A goroutine knows the number by its profiler
// label, which those that it starts inherit. One goroutine has the turn. Any other one waits for
// it before it sends a message to an actor or waits for something, and what several ask of the loop is put in order by
// their numbers.

// simTurn is what one function that the loop let go does, on all of its goroutines.
type simTurn uint64

const (
	simLoop    simTurn = 0 // the loop's own, which need not wait
	simUnknown         = ^simTurn(0)
)

// goroutineLabels identifies the labels of the calling goroutine.
//
//go:linkname goroutineLabels runtime/pprof.runtime_getProfLabel
func goroutineLabels() unsafe.Pointer

// simTurns are the turns of a run.
type simTurns struct {
	last   simTurn
	labels map[unsafe.Pointer]simTurn // guarded by sim.mu
	has    simTurn                    // whose turn it is; guarded by sim.mu
}

// newTurn is the next number. The loop calls it.
func (s *sim) newTurn() simTurn {
	s.turns.last++
	return s.turns.last
}

// enter makes the calling goroutine one of a turn.
func (s *sim) enter(t simTurn) {
	pprof.SetGoroutineLabels(pprof.WithLabels(simContext, pprof.Labels("sim", "turn")))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns.labels[goroutineLabels()] = t
}

// give gives a turn to its goroutines.
func (s *sim) give(t simTurn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns.has = t
}

// whose is the turn of the calling goroutine.
func (s *sim) whose() simTurn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn()
}

// turn is the turn of the calling goroutine. The caller holds mu.
func (s *sim) turn() simTurn {
	if t, ok := s.turns.labels[goroutineLabels()]; ok {
		return t
	}
	return simUnknown
}

// myTurn returns once it is the calling goroutine's turn, or its node is dead: then it does
// not matter any more.
func (s *sim) myTurn(n *simNode) {
	s.jostle()
	s.mu.Lock()
	t, has := s.turn(), s.turns.has
	s.mu.Unlock()
	if t == simLoop || t == has || n.dead.Load() {
		return
	}
	granted := make(chan struct{})
	s.ask(simArrival{wakes: true, do: func() {
		s.give(t)
		close(granted)
	}})
	select {
	case <-granted:
	case <-n.killed:
	}
}

// simCtx has a goroutine wait for its turn before it waits for anything else, a lock for one:
// who was faster would be first in line.
type simCtx struct {
	context.Context
	node *simNode
}

func (c simCtx) Done() <-chan struct{} {
	c.node.s.myTurn(c.node)
	return c.Context.Done()
}

// timeout is the context of a call at the node.
func (n *simNode) timeout() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(n.ctx, n.s.plan.callTimeout)
	return simCtx{ctx, n}, cancel
}

// simArrival is what some goroutine asks of the loop.
type simArrival struct {
	turn  simTurn
	call  string // puts calls of goroutines that share a turn in order; a goroutine makes one at a time
	n     int
	wakes bool // it lets a goroutine go on
	do    func()
}

// jostle holds the calling goroutine up.
func (s *sim) jostle() {
	if s.plan.jostled {
		for range rand.IntN(20) {
			runtime.Gosched()
		}
	}
}

// ask asks something of the loop. Safe from any goroutine.
func (s *sim) ask(a simArrival) {
	s.jostle()
	s.mu.Lock()
	a.turn = s.turn()
	s.arrivals = append(s.arrivals, a)
	s.mu.Unlock()
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// arrive asks the loop to do something. Safe from any goroutine.
func (s *sim) arrive(do func()) { s.ask(simArrival{do: do}) }

// takeArrivals returns what was asked since, in an order that does not depend on who was faster.
func (s *sim) takeArrivals() []simArrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	arrivals := s.arrivals
	s.arrivals = nil
	s.idle = append(s.idle, s.resting...)
	s.resting = s.resting[:0]
	if len(arrivals) > 1 {
		slices.SortStableFunc(arrivals, simArrival.compare)
	}
	return arrivals
}

func (a simArrival) compare(b simArrival) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.call, b.call), cmp.Compare(a.n, b.n))
}

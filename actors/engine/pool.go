package engine

import (
	"sync"
	"sync/atomic"
)

// Pool runs functions on goroutines that it keeps: a new goroutine would grow its
// stack anew for every store call, which costs more than many of the calls. It
// never queues; a function that finds no idle goroutine gets a new one.
//
// It owns all its goroutines; they are gone when close returns.
type Pool struct {
	work chan func()
	stop chan struct{}
	kept atomic.Int32 // goroutines that stay

	// taker, if set, is given every function to run when it pleases, and is told
	// whether it is the mailbox of an actor, which never waits. A simulation decides
	// the order of everything by it.
	Taker func(f func(), mailbox bool)

	mu     sync.Mutex
	closed bool           // guarded by mu
	wg     sync.WaitGroup // grows under mu, before closed is set
}

// poolSize is how many goroutines a pool keeps.
const poolSize = 64

// NewPool returns a pool without goroutines. Close ends it.
func NewPool() *Pool {
	return &Pool{work: make(chan func()), stop: make(chan struct{})}
}

// Run runs f on a goroutine of the pool, at once. After close it may drop f: then
// all actors have stopped, and what is sent to them by who has not heard of it yet,
// such as a stream that ends, is for nobody.
func (p *Pool) Run(f func()) {
	if p.Taker != nil {
		p.Taker(f, false)
		return
	}
	select {
	case p.work <- f:
	default:
		p.add(f)
	}
}

func (p *Pool) add(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.wg.Go(func() {
		f()
		p.stay()
	})
}

// stay makes the calling goroutine one of the kept ones, if there is room.
func (p *Pool) stay() {
	if p.kept.Add(1) > poolSize {
		p.kept.Add(-1)
		return
	}
	for {
		select {
		case f := <-p.work:
			f()
		case <-p.stop:
			return
		}
	}
}

// Close ends idle goroutines and waits for busy ones.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.stop)
	p.wg.Wait()
}

// Schedule and Throughput make the pool a dispatcher of the actor library.

// Schedule runs the mailbox of an actor that has something to do.
func (p *Pool) Schedule(f func()) {
	if p.Taker != nil {
		p.Taker(f, true)
		return
	}
	p.Run(f)
}

// Throughput is how many messages an actor handles before others get a turn.
func (p *Pool) Throughput() int { return 300 }

package actors

import (
	"sync"
	"sync/atomic"
)

// pool runs functions on goroutines that it keeps: a new goroutine would grow its
// stack anew for every store call, which costs more than many of the calls. It
// never queues; a function that finds no idle goroutine gets a new one.
//
// It owns all its goroutines; they are gone when close returns.
type pool struct {
	work chan func()
	stop chan struct{}
	kept atomic.Int32 // goroutines that stay

	// taker, if set, is given every function to run when it pleases, and is told
	// whether it is the mailbox of an actor, which never waits. A simulation decides
	// the order of everything by it.
	taker func(f func(), mailbox bool)

	mu     sync.Mutex
	closed bool           // guarded by mu
	wg     sync.WaitGroup // grows under mu, before closed is set
}

// poolSize is how many goroutines a pool keeps.
const poolSize = 64

func newPool() *pool {
	return &pool{work: make(chan func()), stop: make(chan struct{})}
}

// run runs f on a goroutine of the pool, at once. After close it may drop f: then
// all actors have stopped, and what is sent to them by who has not heard of it yet,
// such as a stream that ends, is for nobody.
func (p *pool) run(f func()) {
	if p.taker != nil {
		p.taker(f, false)
		return
	}
	select {
	case p.work <- f:
	default:
		p.add(f)
	}
}

func (p *pool) add(f func()) {
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
func (p *pool) stay() {
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

// close ends idle goroutines and waits for busy ones.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.stop)
	p.wg.Wait()
}

// Schedule and Throughput make the pool a dispatcher of the actor library.

// Schedule runs the mailbox of an actor that has something to do.
func (p *pool) Schedule(f func()) {
	if p.taker != nil {
		p.taker(f, true)
		return
	}
	p.run(f)
}

// Throughput is how many messages an actor handles before others get a turn.
func (p *pool) Throughput() int { return 300 }

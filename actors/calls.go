package actors

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ddq-io/ddq/store"
)

// calls runs store calls off an actor, on the node's pool; close waits for them.
type calls struct {
	pool   *pool
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newCalls(p *pool) *calls {
	ctx, cancel := context.WithCancel(context.Background())
	return &calls{pool: p, ctx: ctx, cancel: cancel}
}

func (c *calls) run(f func(ctx context.Context)) {
	c.wg.Add(1)
	c.pool.run(func() {
		defer c.wg.Done()
		f(c.ctx)
	})
}

// fly starts the store calls that may start. Handlers ask for it with flyLater, so
// that what waits in the mailbox joins the batches first.
func (s *shard) fly() {
	s.flightAsked = false
	s.flushAdds()
	s.flushHolds()
	s.flushSettles()
	s.flushRecovers()
}

func (s *shard) flyLater() {
	if !s.flightAsked {
		s.flightAsked = true
		s.post(&takeOff{})
	}
}

// reply is what a store call came to. Its callers are answered after the actor
// was told: whatever they do next reaches the actor later.
type reply interface{ answer() }

// call runs a store call, tells the actor, and answers the callers.
func (s *shard) call(do func(ctx context.Context) reply) {
	s.calls.run(func(ctx context.Context) {
		m := do(ctx)
		s.post(m)
		m.answer()
	})
}

// close abandons running calls and waits for them.
func (c *calls) close() {
	c.cancel()
	c.wg.Wait()
}

// runway queues items for one kind of store call and cuts batches: at most `most`
// calls fly at a time, and what arrives meanwhile makes the next batch.
type runway[T any] struct {
	waiting []T
	flying  int
	most    int
	limit   int          // items in a batch
	size    func(*T) int // bytes of an item; nil when they do not count
}

const (
	batchItems = 512
	batchBytes = 4 << 20
)

// next returns the next batch, or nil when none may start.
func (l *runway[T]) next() []T {
	if len(l.waiting) == 0 || l.flying >= l.most {
		return nil
	}
	n := l.cut()
	batch := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	if len(l.waiting) == 0 {
		l.waiting = nil // the batch owns the array now
	}
	l.flying++
	return batch
}

func (l *runway[T]) cut() int {
	n := min(len(l.waiting), l.limit)
	if l.size == nil {
		return n
	}
	bytes := 0
	for i := range n {
		if bytes += l.size(&l.waiting[i]); bytes > batchBytes && i > 0 {
			return i
		}
	}
	return n
}

// landed takes in that a batch is done.
func (l *runway[T]) landed() { l.flying-- }

func (l *runway[T]) idle() bool { return l.flying == 0 && len(l.waiting) == 0 }

// resolveFor is how long a store call with unknown outcome is repeated.
const resolveFor = 3 * time.Second

// resolve runs a store call, and repeats it while its outcome is unknown: every
// mutating call of a store is safe to repeat with the same arguments. When the
// outcome stays unknown the error says so, whatever the last try returned.
// repeated tells that an answer was lost on the way: what the call did first is
// not in the results.
func (rt *runtime) resolve(ctx context.Context, call func() error) (repeated bool, err error) {
	unknown := false
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := call()
		switch {
		case errors.Is(err, store.ErrUnknown):
			unknown = true
			return struct{}{}, err
		case unknown && errors.Is(err, store.ErrUnavailable):
			return struct{}{}, err
		case err != nil:
			return struct{}{}, backoff.Permanent(err)
		}
		return struct{}{}, nil
	}, backoff.WithMaxElapsedTime(resolveFor), backoff.WithBackOff(newResolvePause(rt.random)))
	if unknown && errors.Is(err, store.ErrUnavailable) {
		err = errors.Join(store.ErrUnknown, err)
	}
	return unknown, err
}

// resolvePause is how long to wait between the tries of a call: longer each time, and
// never the same for the calls of many shards.
type resolvePause struct {
	*backoff.ExponentialBackOff
	random func() float64
}

func newResolvePause(random func() float64) resolvePause {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.RandomizationFactor = 20*time.Millisecond, 500*time.Millisecond, 0
	return resolvePause{b, random}
}

// NextBackOff returns the next pause, up to a half more or less.
func (p resolvePause) NextBackOff() time.Duration {
	return time.Duration(float64(p.ExponentialBackOff.NextBackOff()) * (0.5 + p.random()))
}

// countdown calls done when all of n parts are finished.
type countdown struct {
	left atomic.Int32
	done func()
}

func newCountdown(n int, done func()) *countdown {
	c := &countdown{done: done}
	c.left.Store(int32(n))
	return c
}

// finish takes in that k parts are finished.
func (c *countdown) finish(k int) {
	if c.left.Add(-int32(k)) == 0 {
		c.done()
	}
}

package engine

import (
	"context"
	"sync"
)

// Calls runs store calls off an actor, on the node's pool; close waits for them.
type Calls struct {
	pool   *Pool
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// NewCalls returns calls that run on a pool. Close ends them.
func NewCalls(p *Pool) *Calls {
	ctx, cancel := context.WithCancel(context.Background())
	return &Calls{pool: p, ctx: ctx, cancel: cancel}
}

// Run runs f on the pool. Its context ends with Close.
func (c *Calls) Run(f func(ctx context.Context)) {
	c.wg.Add(1)
	c.pool.Run(func() {
		defer c.wg.Done()
		f(c.ctx)
	})
}

// Close abandons running calls and waits for them.
func (c *Calls) Close() {
	c.cancel()
	c.wg.Wait()
}

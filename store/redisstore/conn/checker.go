package conn

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/store"
)

// checker checks how the servers keep data, which is what Info tells. It owns one
// goroutine, started by start and gone once stop returns.
type checker struct {
	nodes         *nodes
	wait          wait
	allowVolatile bool
	log           *slog.Logger

	info atomic.Pointer[store.Info]
	stop func() // set by start
}

// first refuses a server that must not be used.
func (c *checker) first(ctx context.Context) error {
	found, err := probe(ctx, c.nodes)
	if err != nil {
		return fmt.Errorf("open redis: %w: is it running, and is the url right?", translate(err, store.ErrUnavailable))
	}
	if dangers := found.dangers(c.allowVolatile); len(dangers) > 0 {
		return fmt.Errorf("%w: %s", store.ErrUnsafe, dangers[0])
	}
	info := found.info(c.allowVolatile, c.wait)
	c.info.Store(&info)
	return nil
}

// start checks the servers again and again.
func (c *checker) start(every time.Duration) {
	watching, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.watch(watching, every)
	}()
	c.stop = func() {
		cancel()
		<-done
	}
}

// watch checks the servers until the context ends.
func (c *checker) watch(ctx context.Context, every time.Duration) {
	var last fleet
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			last = c.check(ctx, last)
		}
	}
}

// check looks at the servers once more and logs what is new. It returns what it found,
// last when that is nothing.
func (c *checker) check(ctx context.Context, last fleet) fleet {
	before := c.info.Load()
	found, err := probe(ctx, c.nodes)
	if ctx.Err() != nil {
		return last
	}
	info := *before
	if err != nil {
		info.Warnings = []string{"redis cannot be reached: " + err.Error()}
	} else {
		found.compare(last)
		last = found
		info = found.info(c.allowVolatile, c.wait)
	}
	c.info.Store(&info)
	known := strings.Join(before.Warnings, "\n")
	for _, warning := range info.Warnings {
		if !strings.Contains(known, warning) {
			c.log.Warn("store has a problem", "err", warning)
		}
	}
	return last
}

package server

import (
	"context"
	"sync"

	"github.com/ddq-io/ddq/api/server/status"
)

// lifetime is that of streams and long polls: they end when the node goes away, which waits
// for their goroutines.
type lifetime struct {
	drain    context.Context // done once the server stops
	startEnd func()          // ends drain
	loops    sync.WaitGroup  // stream goroutines that may outlive their handler
}

func newLifetime() *lifetime {
	l := &lifetime{}
	l.drain, l.startEnd = context.WithCancel(context.Background())
	return l
}

// poll is the context of a long poll, which ends when the node goes away. done is to
// be called when it is over.
func (l *lifetime) poll(ctx context.Context) (poll context.Context, done func()) {
	poll, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.drain, cancel)
	return poll, func() { stop(); cancel() }
}

// pollError is why a long poll failed: the node's end is its own, not the caller's.
func (l *lifetime) pollError(ctx context.Context, err error) error {
	if ctx.Err() == nil && l.drain.Err() != nil {
		return status.Draining()
	}
	return err
}

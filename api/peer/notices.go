package peer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	maxQueued   = 100_000 // tasks and holds that wait to be told; more are dropped
	frameQueued = 5_000   // in one frame, but for one large notice
)

// notices are the hints for one node. They wait in the frames they will go out in.
type notices struct {
	peer ddqv1.PeerServiceClient
	log  *slog.Logger
	wake chan struct{} // something waits

	mu      sync.Mutex
	frames  []*ddqv1.NotifyRequest // guarded by mu
	last    int                    // tasks and holds in the last of frames; guarded by mu
	waiting int                    // and in all of them; guarded by mu
	dropped bool                   // since lost was asked; guarded by mu
}

func newNotices(peer ddqv1.PeerServiceClient, log *slog.Logger) *notices {
	return &notices{peer: peer, log: log, wake: make(chan struct{}, 1)}
}

// add queues a notice.
func (q *notices) add(n *actors.Notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := sizeOf(n)
	if q.waiting+size > maxQueued {
		if !q.dropped {
			q.log.Warn("node too slow to be told of changes; it finds them in the store")
		}
		q.dropped = true
		return
	}
	if len(q.frames) == 0 || q.last+size > frameQueued {
		q.frames, q.last = append(q.frames, &ddqv1.NotifyRequest{}), 0
	}
	appendNotice(q.frames[len(q.frames)-1], n)
	q.last, q.waiting = q.last+size, q.waiting+size
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what waits.
func (q *notices) take() []*ddqv1.NotifyRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	frames := q.frames
	q.frames, q.last, q.waiting = nil, 0, 0
	return frames
}

// lost reports whether notices were dropped since it was asked last.
func (q *notices) lost() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	dropped := q.dropped
	q.dropped = false
	return dropped
}

// run sends what is queued until ctx ends.
func (q *notices) run(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 2 * time.Second}
	for ctx.Err() == nil {
		opened := time.Now()
		err := q.stream(ctx)
		if time.Since(opened) > pause.MaxInterval {
			pause.Reset()
		}
		if ctx.Err() != nil {
			return
		}
		q.log.Debug("notices interrupted", "err", err)
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// stream sends over one stream until it breaks. The first thing to say opens it.
func (q *notices) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	select {
	case <-q.wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	rpc, err := q.peer.Notify(ctx)
	if err != nil {
		return err
	}
	for {
		for _, f := range q.take() {
			if err := rpc.Send(f); err != nil {
				_, err = rpc.CloseAndRecv() // has the reason
				return err
			}
		}
		if q.lost() {
			return errDropped // a new stream makes the other node look into the store
		}
		select {
		case <-q.wake:
		case <-rpc.Context().Done():
			return rpc.Context().Err()
		}
	}
}

func sizeOf(n *actors.Notice) int {
	size := len(n.Released)
	for i := range n.Pending {
		size += 1 + len(n.Pending[i].Tasks)
	}
	for i := range n.Ended {
		size += len(n.Ended[i].Holds)
	}
	return size
}

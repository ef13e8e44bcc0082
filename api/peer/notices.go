package peer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ddq-io/ddq/actors/fleet"
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
func (q *notices) add(n *fleet.Notice) {
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

// reopenFor is how long a stream is opened again unasked: one that broke with
// nothing to say, and one that could not be opened. What waits is dropped then:
// the node finds it in the store.
const reopenFor = time.Minute

// run sends what is queued until ctx ends. A stream that broke after something was
// sent is opened again at once: that is how the other node learns that it may have
// missed something.
func (q *notices) run(ctx context.Context) {
	pause := &backoff.ExponentialBackOff{InitialInterval: 50 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 2 * time.Second}
	var until time.Time // to which the stream is opened unasked
	for tried := false; ; tried = true {
		if time.Now().After(until) {
			if tried {
				q.take() // for too long; a stream says that something may be lost when it opens
			}
			select {
			case <-q.wake:
				until = time.Now().Add(reopenFor)
			case <-ctx.Done():
				return
			}
		}
		opened := time.Now()
		sent, err := q.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		q.log.Debug("notices interrupted", "err", err)
		if sent {
			until = time.Now().Add(reopenFor)
		}
		if time.Since(opened) > pause.MaxInterval {
			pause.Reset()
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}

// stream sends over one stream until it breaks, and reports whether anything was
// sent, or tried to.
func (q *notices) stream(ctx context.Context) (sent bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	rpc, err := q.peer.Notify(ctx)
	if err != nil {
		cancel()
		return false, err
	}
	ended := make(chan error, 1)
	var reading sync.WaitGroup
	reading.Go(func() { ended <- rpc.RecvMsg(new(ddqv1.NotifyResponse)) })
	defer reading.Wait()
	defer cancel()
	for {
		for _, f := range q.take() {
			sent = true
			if err := rpc.Send(f); err != nil {
				return sent, err
			}
		}
		if q.lost() {
			return true, errDropped
		}
		select {
		case <-q.wake:
		case err := <-ended:
			return sent, err
		}
	}
}

func sizeOf(n *fleet.Notice) int {
	size := len(n.Released)
	for i := range n.Pending {
		size += 1 + len(n.Pending[i].Tasks)
	}
	for i := range n.Freed {
		size += len(n.Freed[i].Keys) + len(n.Freed[i].RateKeys)
	}
	for i := range n.Ended {
		size += len(n.Ended[i].Holds)
	}
	for i := range n.Waiting {
		size += len(n.Waiting[i].IDs)
	}
	for i := range n.Settled {
		size += len(n.Settled[i].IDs)
	}
	for i := range n.Cancels {
		size += len(n.Cancels[i].Holds)
	}
	return size
}

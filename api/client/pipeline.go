package client

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Bounds of one frame. A frame goes out at once when it is full, or when nothing
// is in flight; see frameGap for the others.
const (
	frameTasks = 512
	frameBytes = 1 << 20
)

// pipeline sends calls over one EnqueueStream: whatever is pending becomes the
// next frame. When the stream breaks, everything unanswered fails as
// unavailable, and who waits for it decides to repeat. It owns a writing
// goroutine, started with the first call, and that one's stream.
type pipeline struct {
	queue  ddqv1.DelayQueueServiceClient
	stall  time.Duration // a frame unanswered for that long condemns its stream
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // something is pending, or closing
	filled chan struct{} // a full frame is pending, or closing
	done   chan struct{} // the writer is gone

	mu      sync.Mutex
	pending []part  // not sent, oldest first; guarded by mu
	tasks   int     // of pending, at most; guarded by mu
	gone    int     // of pending, at least: abandoned by their callers; guarded by mu
	stream  *stream // the current one, if any; guarded by mu
	running bool    // the writer was started; guarded by mu
	closed  bool    // guarded by mu
}

// part is a run of one call's requests.
type part struct {
	call    *call
	from, n int
}

func newPipeline(queue ddqv1.DelayQueueServiceClient, timeout time.Duration) *pipeline {
	ctx, cancel := context.WithCancel(context.Background())
	return &pipeline{
		queue:  queue,
		stall:  2 * timeout,
		ctx:    ctx,
		cancel: cancel,
		wake:   make(chan struct{}, 1),
		filled: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
}

// send queues k and waits for its answers.
func (p *pipeline) send(ctx context.Context, k *call) {
	k.expect()
	if !p.submit(k) {
		k.fail(0, len(k.requests), closed())
	}
	if !k.wait(ctx) {
		p.abandoned()
	}
}

// submit queues k unless the pipeline is closed.
func (p *pipeline) submit(k *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !p.running {
		p.running = true
		go p.write()
	}
	p.pending = append(p.pending, part{call: k, n: len(k.requests)})
	p.tasks += len(k.requests)
	if len(p.pending) == 1 {
		poke(p.wake)
	}
	if p.tasks >= frameTasks {
		poke(p.filled)
	}
	return true
}

// poke wakes who waits for a channel with room for one value.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// abandoned counts a call whose caller left. Now and then it clears them from
// pending, so that callers who come and go cannot pile up behind a stream that
// is stuck, and it breaks a stream on which nothing moves.
func (p *pipeline) abandoned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone++; p.gone > len(p.pending)/2 {
		p.gone = 0
		p.pending = slices.DeleteFunc(p.pending, func(q part) bool { return q.call.abandoned() })
	}
	if p.stream != nil && p.stream.stuckFor(p.stall) {
		p.stream.cancel()
	}
}

// close lets what is pending be answered until ctx ends, and then fails it.
func (p *pipeline) close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	running := p.running
	p.mu.Unlock()
	defer p.cancel()
	if !running {
		return
	}
	poke(p.wake)
	poke(p.filled)
	defer context.AfterFunc(ctx, p.cancel)()
	<-p.done
}

// write is the writer: it makes frames until the pipeline is closed and empty.
func (p *pipeline) write() {
	defer close(p.done)
	defer p.finish()
	frames := frameMaker{}
	for p.waitPending() {
		s, err := p.connect()
		if err != nil {
			p.failPending(err)
			continue
		}
		if !s.reserve() {
			continue // it broke; the next one takes what is pending
		}
		p.gather(s)
		if !frames.fill(p) {
			s.unreserve() // all left meanwhile
			continue
		}
		s.send(&frames)
	}
}

// waitPending blocks until something is pending and returns false once the
// pipeline is closed and nothing is.
func (p *pipeline) waitPending() bool {
	for {
		p.mu.Lock()
		n, closed := len(p.pending), p.closed
		p.mu.Unlock()
		if n > 0 {
			return true
		}
		if closed {
			return false
		}
		<-p.wake
		runtime.Gosched() // let others who are about to enqueue join the frame
	}
}

// gather lets pending tasks wait for company while a frame of s is in flight.
func (p *pipeline) gather(s *stream) {
	p.mu.Lock()
	full := p.tasks >= frameTasks || p.closed
	p.mu.Unlock()
	wait := s.pause()
	if full || wait <= 0 {
		return
	}
	gap := time.NewTimer(wait)
	defer gap.Stop()
	select {
	case <-gap.C:
	case <-s.quiet:
		runtime.Gosched() // those who were answered are about to enqueue again
	case <-p.filled:
	case <-s.done:
	}
}

// connect returns the current stream, or a new one when there is none.
func (p *pipeline) connect() (*stream, *Error) {
	p.mu.Lock()
	s := p.stream
	p.mu.Unlock()
	if s != nil && !s.spent() {
		return s, nil
	}
	if s != nil {
		s.finish()
	}
	s, err := openStream(p.ctx, p.queue)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.stream = s
	p.mu.Unlock()
	return s, nil
}

// failPending answers everything pending with err.
func (p *pipeline) failPending(err *Error) {
	p.mu.Lock()
	pending := p.pending
	p.pending, p.tasks, p.gone = nil, 0, 0
	p.mu.Unlock()
	if p.ctx.Err() != nil {
		err = closed()
	}
	for _, q := range pending {
		q.call.fail(q.from, q.n, err)
	}
}

// finish waits for the stream's last answers.
func (p *pipeline) finish() {
	if p.stream != nil {
		p.stream.finish()
	}
}

// frameMaker turns pending parts into frames. Its buffers serve frame after
// frame; the writer owns it.
type frameMaker struct {
	request ddqv1.EnqueueStreamRequest
	parts   []part
}

// fill takes the next frame from p's pending parts. It returns false when all
// of them were abandoned.
func (f *frameMaker) fill(p *pipeline) bool {
	f.parts = nil // the stream keeps them until the answer
	f.request.Tasks = f.request.Tasks[:0]
	bytes, taken := 0, 0
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pending {
		q := &p.pending[i]
		if q.call.abandoned() {
			taken++
			continue
		}
		n := f.take(q, &bytes)
		if n < q.n {
			q.from, q.n = q.from+n, q.n-n
			break
		}
		taken++
	}
	p.pending = slices.Delete(p.pending, 0, taken)
	if p.tasks -= len(f.request.Tasks); len(p.pending) == 0 {
		p.tasks = 0 // what was abandoned is not counted out one by one
	}
	return len(f.parts) > 0
}

// take adds as many requests of q as fit.
func (f *frameMaker) take(q *part, bytes *int) (n int) {
	for _, r := range q.call.requests[q.from : q.from+q.n] {
		full := len(f.request.Tasks) == frameTasks || *bytes+r.size > frameBytes
		if full && len(f.request.Tasks) > 0 {
			break
		}
		f.request.Tasks = append(f.request.Tasks, &r.wire)
		*bytes += r.size
		n++
	}
	if n > 0 {
		f.parts = append(f.parts, part{q.call, q.from, n})
	}
	return n
}

// unavailable is a failure of the stream rather than of a request.
func unavailable(message string, cause error) *Error {
	return &Error{Code: codes.Unavailable, Message: message, cause: cause}
}

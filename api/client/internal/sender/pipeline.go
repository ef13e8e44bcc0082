package sender

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Pipeline sends calls over one EnqueueStream: whatever is pending becomes the
// next frame. When the stream breaks, nobody knows what became of the frames in flight:
// they fail as unknown, and who waits for them decides to repeat. It owns a writing
// goroutine, started with the first call, and that one's streams.
type Pipeline struct {
	queue  ddqv1.DelayQueueServiceClient
	alone  Unary         // of what shares no stream
	stall  time.Duration // a frame unanswered for that long condemns its stream
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // something is pending, or closing
	filled chan struct{} // a full frame is pending, or closing
	done   chan struct{} // the writer is gone

	mu      sync.Mutex
	pending []part    // not sent, oldest first; guarded by mu
	tasks   int       // of pending, at most; guarded by mu
	gone    int       // of pending, at least: abandoned by their callers; guarded by mu
	stream  *stream   // the current one, if any; guarded by mu
	former  []*stream // those before it, which wait for their last answers; guarded by mu
	running bool      // the writer was started; guarded by mu
	closed  bool      // guarded by mu
}

// NewPipeline returns a pipeline to queue, whose calls wait for timeout at most.
func NewPipeline(queue ddqv1.DelayQueueServiceClient, timeout time.Duration) *Pipeline {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pipeline{
		queue:  queue,
		alone:  Unary{queue},
		stall:  2 * timeout,
		ctx:    ctx,
		cancel: cancel,
		wake:   make(chan struct{}, 1),
		filled: make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
}

// Send queues k and waits for its answers.
func (p *Pipeline) Send(ctx context.Context, k *Call) {
	if k.alone {
		p.alone.Send(ctx, k)
		return
	}
	k.expect()
	if !p.submit(k) {
		k.fail(0, len(k.requests), closed())
	}
	if !k.wait(ctx) {
		p.abandoned()
	}
}

// submit queues k unless the pipeline is closed.
func (p *Pipeline) submit(k *Call) bool {
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
func (p *Pipeline) abandoned() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone++; p.gone > len(p.pending)/2 {
		p.gone = 0
		p.pending = slices.DeleteFunc(p.pending, func(q part) bool { return q.call.abandoned() })
	}
	for _, s := range append(p.former, p.stream) {
		if s != nil && s.stuckFor(p.stall) {
			s.cancel()
		}
	}
}

// Close lets what is pending be answered until ctx ends, and then fails it.
func (p *Pipeline) Close(ctx context.Context) {
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
func (p *Pipeline) write() {
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
func (p *Pipeline) waitPending() bool {
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
func (p *Pipeline) gather(s *stream) {
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

// formerStreams bounds those that wait for their last answers beside the current one.
const formerStreams = 8

// connect returns the current stream, or a new one when there is none. What the one before it has in
// flight may take long, and holds up nothing.
func (p *Pipeline) connect() (*stream, error) {
	p.mu.Lock()
	s := p.stream
	p.former = slices.DeleteFunc(p.former, (*stream).over)
	many := len(p.former) >= formerStreams
	p.mu.Unlock()
	if s != nil && (!s.spent() || many && !s.over()) {
		return s, nil
	}
	if s != nil {
		s.finish()
		p.mu.Lock()
		p.stream, p.former = nil, append(p.former, s)
		p.mu.Unlock()
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
func (p *Pipeline) failPending(err error) {
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

// finish waits for the last answers of all streams.
func (p *Pipeline) finish() {
	if p.stream != nil {
		p.stream.finish()
		<-p.stream.done
	}
	for _, s := range p.former {
		<-s.done
	}
}

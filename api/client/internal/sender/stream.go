package sender

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	// framesInFlight bounds the frames of a stream that have no answer yet.
	framesInFlight = 16

	// frameGap is how long tasks that do not fill a frame wait for the answer to
	// the one before. Where answers come sooner, frames grow with the load instead
	// of their number; where they come later, tasks do not wait for the round trip
	// of others.
	frameGap = 3 * time.Millisecond
)

// stream is one EnqueueStream and its unanswered frames. It owns a reading
// goroutine, gone once done is closed.
type stream struct {
	rpc    grpc.BidiStreamingClient[ddqv1.EnqueueStreamRequest, ddqv1.EnqueueStreamResponse]
	cancel context.CancelFunc
	room   chan struct{} // holds one value for each frame in flight
	quiet  chan struct{} // has a value when nothing is in flight any more
	done   chan struct{} // the reader is gone

	mu       sync.Mutex
	sequence uint64                       // of the last frame; guarded by mu
	flying   map[uint64]frame             // unanswered, by sequence; guarded by mu
	sending  uint64                       // the frame in Send, which still reads its requests; 0: none; guarded by mu
	early    *ddqv1.EnqueueStreamResponse // the answer to sending; guarded by mu
	last     time.Time                    // when the last frame left; guarded by mu
	err      error                        // why the stream broke; guarded by mu
	poor     bool                         // its server could not do what was asked; guarded by mu
}

// frame is one request in flight.
type frame struct {
	parts []part
	tasks int
	sent  time.Time
}

func openStream(ctx context.Context, queue ddqv1.DelayQueueServiceClient) (*stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	rpc, err := queue.EnqueueStream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &stream{
		rpc:    rpc,
		cancel: cancel,
		room:   make(chan struct{}, framesInFlight),
		quiet:  make(chan struct{}, 1),
		done:   make(chan struct{}),
		flying: make(map[uint64]frame, framesInFlight),
	}
	go s.read()
	return s, nil
}

// reserve waits for room for a frame; false means that the stream broke.
func (s *stream) reserve() bool {
	select {
	case s.room <- struct{}{}:
		return true
	case <-s.done:
		return false
	}
}

// unreserve gives back room that was not used.
func (s *stream) unreserve() { <-s.room }

// send sends a frame, for which there is room. If the stream breaks, its tasks fail.
//
// Send reads the requests of the frame, and whoever is answered may fill them anew. So
// nobody is answered before Send has returned, whatever the reader hears meanwhile.
func (s *stream) send(f *frameMaker) {
	flying := frame{f.parts, len(f.request.Tasks), time.Now()}
	s.mu.Lock()
	err := s.err
	if err == nil {
		s.sequence++
		f.request.Sequence = s.sequence
		s.flying[s.sequence] = flying
		s.sending = s.sequence
		s.last = flying.sent
	}
	s.mu.Unlock()
	if err != nil {
		flying.fail(err)
		return
	}
	if s.rpc.Send(&f.request) != nil {
		s.cancel() // the reader learns why
	}
	s.sent(flying)
}

// sent says that Send has returned, and catches up on what the reader heard of its frame.
func (s *stream) sent(f frame) {
	s.mu.Lock()
	sequence, reply, err := s.sending, s.early, s.err
	s.sending, s.early = 0, nil
	lost := err != nil && reply == nil
	if lost {
		delete(s.flying, sequence)
	}
	s.mu.Unlock()
	if reply != nil {
		s.answered(reply)
	}
	if lost {
		f.fail(err)
	}
}

// read is the reader: it hands out answers until the stream ends.
func (s *stream) read() {
	defer close(s.done)
	defer s.cancel()
	for {
		reply, err := s.rpc.Recv()
		if err != nil {
			s.fail(s.ended(err))
			return
		}
		s.answered(reply)
	}
}

// answered hands out a reply.
func (s *stream) answered(reply *ddqv1.EnqueueStreamResponse) {
	if f, ok := s.landed(reply); ok {
		if outOfOrder(reply) {
			s.leave()
		}
		f.answer(reply)
		<-s.room
	}
}

// outOfOrder reports whether a server says that it cannot do its work for now.
func outOfOrder(reply *ddqv1.EnqueueStreamResponse) bool {
	cannot := func(e *ddqv1.Error) bool {
		c := codes.Code(e.GetCode())
		return c == codes.Unavailable || c == codes.Unknown
	}
	return cannot(reply.GetError()) ||
		slices.ContainsFunc(reply.GetResults(), func(r *ddqv1.EnqueueResult) bool { return cannot(r.GetError()) })
}

// leave has the next frame go out over another stream: of several servers another
// one may do what this one cannot.
func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poor = true
}

// landed takes the frame of a reply out of those in flight, unless it is being sent.
func (s *stream) landed(reply *ddqv1.EnqueueStreamResponse) (frame, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sequence := reply.GetSequence()
	if sequence != 0 && sequence == s.sending {
		s.early = reply
		return frame{}, false
	}
	f, ok := s.flying[sequence]
	delete(s.flying, sequence)
	if len(s.flying) == 0 {
		select {
		case s.quiet <- struct{}{}:
		default:
		}
	}
	return f, ok
}

// pause is how long a frame that is not full waits before it follows the last
// one: not at all when nothing is in flight.
func (s *stream) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.quiet: // of a frame that nobody waited for
	default:
	}
	if len(s.flying) == 0 {
		return 0
	}
	return frameGap - time.Since(s.last)
}

// fail breaks the stream and fails what is in flight.
func (s *stream) fail(err error) {
	s.mu.Lock()
	s.err = err
	sending, busy := s.flying[s.sending]
	delete(s.flying, s.sending)
	flying := slices.Collect(maps.Values(s.flying))
	clear(s.flying)
	if busy {
		s.flying[s.sending] = sending // its writer fails it
	}
	s.mu.Unlock()
	for _, f := range flying {
		f.fail(err)
	}
}

// spent reports whether the stream is to take no more.
func (s *stream) spent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || s.poor
}

// stuckFor reports whether a frame has had no answer for d.
func (s *stream) stuckFor(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flying {
		if time.Since(f.sent) >= d {
			return true
		}
	}
	return false
}

// finish says that nothing more comes, and waits for the last answers or the
// end of the stream's context.
func (s *stream) finish() {
	_ = s.rpc.CloseSend() // fails only when the stream is broken, which the reader knows
	<-s.done
}

// ended is the error of everything in flight when Recv returned err. A server that sent no
// header, and says itself why, did not take the stream; of any other end nobody knows how far
// it had come.
func (s *stream) ended(err error) error {
	if header, _ := s.rpc.Header(); header == nil && refusal(err) {
		return err
	}
	return inDoubt(err)
}

// answer hands each part its results.
func (f frame) answer(reply *ddqv1.EnqueueStreamResponse) {
	results := reply.GetResults()
	if err := reply.GetError(); err != nil {
		results = slices.Repeat([]*ddqv1.EnqueueResult{{Error: err}}, f.tasks)
	}
	if len(results) != f.tasks {
		f.fail(status.Error(codes.Internal, "the server answered with another number of results"))
		return
	}
	for _, q := range f.parts {
		q.call.answer(q.from, results[:q.n])
		results = results[q.n:]
	}
}

func (f frame) fail(err error) {
	for _, q := range f.parts {
		q.call.fail(q.from, q.n, err)
	}
}

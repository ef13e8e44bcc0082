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
	// framesInFlight bounds the frames of a stream that have no answer yet, but for slow ones: those that
	// were answered in part, or are older than slowFrame when others wait for room, or than slowBeside
	// where there are slow ones already. A part of the server takes long then, and is not to hold up others.
	framesInFlight = 16
	slowFrame      = 100 * time.Millisecond
	slowBeside     = 5 * time.Millisecond
	mostInFlight   = 16 * framesInFlight // with slow ones

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
	room   chan struct{} // holds one value for each frame in flight that is not slow
	quiet  chan struct{} // has a value when nothing is in flight any more
	done   chan struct{} // the reader is gone

	mu       sync.Mutex
	sequence uint64                         // of the last frame; guarded by mu
	flying   map[uint64]*frame              // unanswered, by sequence; guarded by mu
	slow     int                            // of flying; guarded by mu
	sending  uint64                         // the frame in Send, which still reads its requests; 0: none; guarded by mu
	early    []*ddqv1.EnqueueStreamResponse // the answers to sending; guarded by mu
	last     time.Time                      // when the last frame left; guarded by mu
	heard    time.Time                      // when the last answer came; guarded by mu
	err      error                          // why the stream broke; guarded by mu
	poor     bool                           // its server could not do what was asked; guarded by mu
}

// frame is one request in flight. Whoever hands out its answers reads and writes answered: the reader,
// and while it is in Send the writer behind that.
type frame struct {
	parts    []part
	tasks    int
	sent     time.Time
	slow     bool   // it is not in the stream's room; guarded by the stream's mu
	answered []bool // by place in the frame, of one that is answered in parts; nil: none
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
		flying: make(map[uint64]*frame, framesInFlight),
	}
	go s.read()
	return s, nil
}

// reserve waits for room for a frame; false means that the stream broke.
func (s *stream) reserve() bool {
	select {
	case s.room <- struct{}{}:
		return true
	default:
	}
	look := time.NewTicker(slowBeside)
	defer look.Stop()
	for {
		select {
		case s.room <- struct{}{}:
			return true
		case <-s.done:
			return false
		case now := <-look.C:
			s.passBy(now)
		}
	}
}

// passBy makes room beside the frames that take long.
func (s *stream) passBy(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after := slowFrame
	if s.slow > 0 {
		after = slowBeside
	}
	for _, f := range s.flying {
		if s.slow < mostInFlight && !f.slow && now.Sub(f.sent) >= after {
			f.slow = true
			s.slow++
			<-s.room
		}
	}
}

// unreserve gives back room that was not used.
func (s *stream) unreserve() { <-s.room }

// send sends a frame, for which there is room. If the stream breaks, its tasks fail.
//
// Send reads the requests of the frame, and whoever is answered may fill them anew. So
// nobody is answered before Send has returned, whatever the reader hears meanwhile.
func (s *stream) send(f *frameMaker) {
	flying := &frame{parts: f.parts, tasks: len(f.request.Tasks), sent: time.Now()}
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
func (s *stream) sent(f *frame) {
	for {
		s.mu.Lock()
		early, err := s.early, s.err
		s.early = nil
		if len(early) > 0 {
			s.mu.Unlock()
			for _, reply := range early {
				s.answered(reply)
			}
			continue
		}
		sequence := s.sending
		s.sending = 0
		_, lost := s.flying[sequence]
		if lost = lost && err != nil; lost {
			delete(s.flying, sequence)
		}
		s.mu.Unlock()
		if lost {
			f.fail(err)
		}
		return
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
		if !s.postpone(reply) {
			s.answered(reply)
		}
	}
}

// answered hands out a reply.
func (s *stream) answered(reply *ddqv1.EnqueueStreamResponse) {
	f := s.landed(reply)
	if f == nil {
		return
	}
	if outOfOrder(reply) {
		s.leave()
	}
	f.answer(reply)
}

// postpone keeps a reply to the frame in Send until that has returned; false: it is to another one.
func (s *stream) postpone(reply *ddqv1.EnqueueStreamResponse) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sending == 0 || reply.GetSequence() != s.sending {
		return false
	}
	s.early = append(s.early, reply)
	return true
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

// landed returns the frame of a reply, and takes it out of those in flight if nothing more is to come.
// It is nil where nobody waits for the reply.
func (s *stream) landed(reply *ddqv1.EnqueueStreamResponse) *frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	sequence := reply.GetSequence()
	f := s.flying[sequence]
	if f == nil {
		return nil
	}
	s.heard = time.Now()
	if !f.slow {
		<-s.room
		f.slow = true
		s.slow++
	}
	if len(reply.GetPart()) == 0 {
		delete(s.flying, sequence)
		s.slow--
	} else if f.answered == nil {
		f.answered = make([]bool, f.tasks)
	}
	if len(s.flying) == s.slow {
		select {
		case s.quiet <- struct{}{}:
		default:
		}
	}
	return f
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
	if len(s.flying) == s.slow {
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
	s.slow = 0
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

// stuckFor reports whether a frame has had no answer for d, and no other one either.
func (s *stream) stuckFor(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.heard) < d {
		return false
	}
	for _, f := range s.flying {
		if time.Since(f.sent) >= d {
			return true
		}
	}
	return false
}

// finish says that nothing more comes. The stream is done with the last answer, or with its context.
func (s *stream) finish() {
	_ = s.rpc.CloseSend() // fails only when the stream is broken, which the reader knows
}

// over reports whether the stream has ended.
func (s *stream) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
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
func (f *frame) answer(reply *ddqv1.EnqueueStreamResponse) {
	results := reply.GetResults()
	switch err := reply.GetError(); {
	case len(reply.GetPart()) > 0:
		f.answerPart(reply.GetPart(), results)
		return
	case err != nil:
		results = slices.Repeat([]*ddqv1.EnqueueResult{{Error: err}}, f.left())
	}
	if len(results) != f.left() {
		f.fail(status.Error(codes.Internal, "the server answered with another number of results"))
		return
	}
	if f.answered != nil {
		f.each(func(call *Call, i int) {
			call.answer(i, results[:1])
			results = results[1:]
		})
		return
	}
	for _, q := range f.parts {
		q.call.answer(q.from, results[:q.n])
		results = results[q.n:]
	}
}

// answerPart hands out results of the tasks at these places.
func (f *frame) answerPart(places []uint32, results []*ddqv1.EnqueueResult) {
	for n, at := range places {
		if int(at) >= f.tasks || f.answered[at] || n >= len(results) {
			continue // no server says so; the last answer does not fit then
		}
		f.answered[at] = true
		i := int(at)
		for _, q := range f.parts {
			if i < q.n {
				q.call.answer(q.from+i, results[n:n+1])
				break
			}
			i -= q.n
		}
	}
}

// left is how many tasks have no answer.
func (f *frame) left() (n int) {
	n = f.tasks
	for _, done := range f.answered {
		if done {
			n--
		}
	}
	return n
}

// each calls do with each task that has no answer: its call, and where it is there.
func (f *frame) each(do func(call *Call, i int)) {
	at := 0
	for _, q := range f.parts {
		for i := range q.n {
			if !f.answered[at] {
				do(q.call, q.from+i)
			}
			at++
		}
	}
}

// fail answers with err what has no answer.
func (f *frame) fail(err error) {
	if f.answered != nil {
		f.each(func(call *Call, i int) { call.fail(i, 1, err) })
		return
	}
	for _, q := range f.parts {
		q.call.fail(q.from, q.n, err)
	}
}

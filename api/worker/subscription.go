package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// subscription is the worker's part in one topic: the tasks it holds, what it
// has to tell the server, and the credit that follows from both. It outlives
// the streams it speaks on.
//
// Invariants, under mu:
//   - credit + inFlight <= limit, unless the server sends unasked
//   - live holds exactly the tasks that are waiting or running
//   - an outcome is in settle, later or unanswered until the server accepts it
type subscription struct {
	w     *Worker
	topic string
	rpc   ddqv1.DelayQueueServiceClient
	armed chan struct{} // the sweeper has to look at its next wake-up
	moved chan struct{} // something was finished or answered while stopping
	heard chan struct{} // something was answered while nobody speaks

	mu         sync.Mutex
	current    *session          // speaks for the subscription; nil before the first; guarded by mu
	live       []*held           // guarded by mu
	inFlight   int               // received, and not gone through the pool; guarded by mu
	credit     int               // granted on current and not used; guarded by mu
	limit      int               // of inFlight and credit together, as the server agreed; guarded by mu
	settle     []*held           // outcomes to send; guarded by mu
	extend     []*held           // holds to ask more of; guarded by mu
	later      []postponed       // outcomes to send again after a while; guarded by mu
	unanswered map[uint64]*frame // by sequence; guarded by mu
	sequence   uint64            // of the last frame with settlements; guarded by mu
	spoke      time.Time         // when that was made; guarded by mu
	nextSweep  time.Time         // zero when the sweeper sleeps; guarded by mu
	stopping   bool              // takes nothing more; guarded by mu
	over       bool              // ends its last session; guarded by mu
}

// frame is what one frame to the server settled and extended.
type frame struct {
	settled  []*held
	extended []*held
	sent     time.Time // not later than it left
}

// postponed is an outcome that the server could not take just now.
type postponed struct {
	h  *held
	at time.Time
}

func newSubscription(w *Worker, topic string, rpc ddqv1.DelayQueueServiceClient) *subscription {
	return &subscription{
		w:          w,
		topic:      topic,
		rpc:        rpc,
		armed:      make(chan struct{}, 1),
		moved:      make(chan struct{}, 1),
		heard:      make(chan struct{}, 1),
		limit:      w.cfg.MaxInFlight,
		unanswered: make(map[uint64]*frame),
	}
}

// run keeps the subscription until ctx ends or the server refuses it for good,
// and then winds it up.
func (s *subscription) run(ctx context.Context) error {
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	var own sync.WaitGroup
	defer func() {
		end()
		own.Wait()
		s.retire(s.attach(nil)) // a session that came after the one below
	}()
	own.Go(func() { s.sweepUntil(open.Done()) })
	refused := make(chan error, 1)
	own.Go(func() { refused <- s.stayConnected(open) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-refused:
	}
	left := s.stop()
	if err == nil {
		err = s.flush()
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.retire(s.attach(nil))
	return errors.Join(err, left)
}

// stop gives back what waits and lets what runs finish, or cancels it when the
// grace period is over. The error says how many handlers did not return even then.
func (s *subscription) stop() error {
	s.mu.Lock()
	s.stopping = true
	s.releaseWaiting()
	s.mu.Unlock()
	if s.await(max(s.w.cfg.Grace, 0), s.idle) {
		return nil
	}
	s.mu.Lock()
	for _, h := range s.live {
		h.cancel(ErrStopped)
	}
	s.mu.Unlock()
	if s.await(cancelGrace, s.idle) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%d handlers did not return after their cancellation", s.inFlight)
}

// releaseWaiting gives back what no handler has started; mu is held.
func (s *subscription) releaseWaiting() {
	for _, h := range slices.Clone(s.live) {
		s.release(h)
	}
	s.wake()
}

// release gives h back if no handler has started it; mu is held.
func (s *subscription) release(h *held) {
	if h.end(waiting, &ddqv1.Nack{Release: true, DelayMs: new(int64(0))}) {
		s.unlive(h)
		s.settle = append(s.settle, h)
	}
}

// flush waits until the server has answered every settlement.
func (s *subscription) flush() error {
	if s.await(flushTimeout, s.settled) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.New("the server did not confirm the last settlements")
}

// await waits for up to d until is holds, which changes only when moved says so.
func (s *subscription) await(d time.Duration, is func() bool) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	for !is() {
		select {
		case <-s.moved:
		case <-over.C:
			return is()
		}
	}
	return true
}

// idle reports whether everything received has gone through the pool.
func (s *subscription) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight == 0
}

// settled reports whether the server knows every outcome.
func (s *subscription) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.settle)+len(s.later) == 0 && s.allAnswered()
}

// receive takes deliveries of x. What was not asked for, or comes when no more
// is taken, is given back.
func (s *subscription) receive(x *session, deliveries []*ddqv1.Delivery) {
	now := time.Now()
	batch := make([]held, len(deliveries)) // one allocation; each lets go of its task when done
	for i, d := range deliveries {
		batch[i].fill(s, d, now)
	}
	s.mu.Lock()
	s.credit = max(s.credit-len(batch), 0)
	s.inFlight += len(batch)
	for i := range batch {
		s.admit(x, &batch[i])
	}
	s.mu.Unlock()
	s.w.report(Received, s.topic, len(batch), nil)
}

// admit queues h for a handler; mu is held. The queue has room for every task
// that was asked for.
func (s *subscription) admit(x *session, h *held) {
	h.index = len(s.live)
	s.live = append(s.live, h)
	if !s.stopping && !x.draining {
		select {
		case s.w.queue <- h:
			s.arm(h.extendAt)
			return
		default:
			s.w.cfg.Logger.Warn("delivery without credit given back", "topic", s.topic, "task", h.task.ID)
		}
	}
	s.inFlight--
	s.release(h)
	s.wake()
	s.stir()
}

// finish records the outcome of h's handler, unless its hold is lost.
func (s *subscription) finish(ctx context.Context, h *held, err error) {
	var nack *ddqv1.Nack
	if err != nil {
		nack = nackOf(ctx, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if h.end(running, nack) {
		s.unlive(h)
		s.settle = append(s.settle, h)
	}
	h.task.Payload, h.task.Attributes = nil, nil // h may lie in a batch with one that runs for hours
	s.wake()
	s.stir()
}

// drop counts off a task that went through the pool without a handler.
func (s *subscription) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.wake() // there is credit to grant
	s.stir()
}

// unlive takes h out of live; mu is held.
func (s *subscription) unlive(h *held) {
	last := len(s.live) - 1
	s.live[h.index] = s.live[last]
	s.live[h.index].index = h.index
	s.live[last] = nil
	s.live = s.live[:last]
}

// lose takes h from this worker; mu is held.
func (s *subscription) lose(h *held, why string) {
	if !h.lose() {
		return
	}
	s.unlive(h)
	s.w.report(Lost, s.topic, 1, nil)
	s.w.cfg.Logger.Warn("hold lost", "topic", s.topic, "task", h.task.ID, "attempt", h.task.Attempt, "err", why)
}

// wasCanceled reports whether a cancellation came before h ran.
func (s *subscription) wasCanceled(h *held) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return h.canceled
}

// canceled passes on that the cancellation of tasks was asked for.
func (s *subscription) canceledBy(cancels []*ddqv1.Cancel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cancels {
		i := slices.IndexFunc(s.live, func(h *held) bool { return string(h.ack.HoldToken) == string(c.GetHoldToken()) })
		if i < 0 {
			continue // finished meanwhile
		}
		h := s.live[i]
		h.canceled = true
		if h.stage.Load() == running {
			h.cancel(ErrCanceled)
		}
	}
}

// handOver makes x speak for the subscription. Whoever did before is listened
// to for the answers it still has, and retired.
func (s *subscription) handOver(x *session) {
	old := s.attach(nil)
	if old != nil {
		s.hearOut(old)
	}
	s.attach(x)
	s.retire(old)
}

// hearOut waits for the answers that old still has.
func (s *subscription) hearOut(old *session) {
	late := time.NewTimer(hearingTimeout)
	defer late.Stop()
	for !s.heardOut() {
		select {
		case <-s.heard:
		case <-old.done:
			return
		case <-late.C:
			return
		}
	}
}

func (s *subscription) heardOut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allAnswered()
}

// allAnswered reports whether the server has answered all outcomes that were
// sent; mu is held. Extends do not count: nothing depends on them any more.
func (s *subscription) allAnswered() bool {
	for _, f := range s.unanswered {
		if len(f.settled) > 0 {
			return false
		}
	}
	return true
}

// attach makes x speak for the subscription, nobody when x is nil, and returns
// who did before. What the server has not answered is said again: a token
// settles once, however often it is sent.
func (s *subscription) attach(x *session) (old *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.current = s.current, x
	if x == nil {
		return old
	}
	s.credit = 0
	if x.limit > 0 {
		s.limit = min(s.w.cfg.MaxInFlight, x.limit)
	}
	for _, f := range s.unanswered {
		for _, h := range f.settled {
			h.repeated = true
		}
		s.settle = append(s.settle, f.settled...)
	}
	clear(s.unanswered)
	s.extend = nil
	s.extendAll()
	s.wake()
	return old
}

// extendAll has every hold confirmed at the next opportunity; mu is held.
func (s *subscription) extendAll() {
	now := time.Now()
	for _, h := range s.live {
		h.extendAt = now
	}
	if len(s.live) > 0 {
		s.arm(now)
	}
}

// wake tells the current session that there is something to send; mu is held.
func (s *subscription) wake() {
	if s.current == nil || s.current.quiet && s.patient() {
		return
	}
	poke(s.current.wake)
}

// stir tells who waits for the end that it may have come; mu is held.
func (s *subscription) stir() {
	if s.stopping {
		poke(s.moved)
	}
}

// poke leaves a sign on c, which has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// isOver reports whether the end of a session is meant.
func (s *subscription) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// spent reports whether x drains and has nothing more to say: the server need
// not wait for it.
func (s *subscription) spent(x *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return x.draining && len(s.live)+len(s.settle)+len(s.later) == 0 && s.allAnswered()
}

// take fills r with what x is to send next. False means that there is nothing,
// not for as long as pause says, or that x no longer speaks for the subscription.
func (s *subscription) take(x *session, r *ddqv1.SubscribeRequest) (ok bool, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != x {
		return false, 0
	}
	pause = s.pause()
	if x.quiet = pause > 0; x.quiet {
		return false, pause
	}
	r.Credit, r.Sequence = nil, 0
	r.Acks, r.Nacks, r.Extends = r.Acks[:0], r.Nacks[:0], r.Extends[:0]
	f := &frame{sent: time.Now()}
	s.takeSettled(f, r)
	s.takeExtends(f, r)
	if len(f.settled)+len(f.extended) > 0 {
		s.sequence++
		r.Sequence, s.spoke = s.sequence, f.sent
		s.unanswered[s.sequence] = f
	}
	if n := s.limit - s.inFlight - s.credit; n > 0 && !s.stopping && !x.draining {
		s.credit += n
		r.Credit = new(int32(n))
	}
	return r.Sequence > 0 || r.Credit != nil, 0
}

func (s *subscription) takeSettled(f *frame, r *ddqv1.SubscribeRequest) {
	n := min(len(s.settle), frameSettles)
	if n == 0 {
		return
	}
	f.settled = s.settle[:n:n]
	s.settle = s.settle[n:]
	if len(s.settle) == 0 {
		s.settle = make([]*held, 0, n) // the frame keeps the old one
	}
	for _, h := range f.settled {
		if h.nack != nil {
			r.Nacks = append(r.Nacks, h.nack)
		} else {
			r.Acks = append(r.Acks, &h.ack)
		}
	}
}

func (s *subscription) takeExtends(f *frame, r *ddqv1.SubscribeRequest) {
	for _, h := range s.extend {
		if st := h.stage.Load(); st != waiting && st != running {
			continue // settled meanwhile
		}
		e := &ddqv1.Extend{TaskId: h.ack.TaskId, HoldToken: h.ack.HoldToken}
		if !h.ownHold {
			e.VisibilityTimeoutMs = s.w.cfg.VisibilityTimeout.Milliseconds() // 0: the topic's
		}
		r.Extends = append(r.Extends, e)
		f.extended = append(f.extended, h)
	}
	s.extend = nil
}

// answered takes the server's answer to a frame.
func (s *subscription) answered(m *ddqv1.Settled) {
	now := time.Now()
	s.mu.Lock()
	f := s.unanswered[m.GetSequence()]
	delete(s.unanswered, m.GetSequence())
	if f == nil { // said again on another stream, whose answer counts
		s.mu.Unlock()
		return
	}
	var results map[string]*ddqv1.SettleResult // by token
	if len(m.GetResults()) > 0 {
		results = make(map[string]*ddqv1.SettleResult, len(m.GetResults()))
		for _, r := range m.GetResults() {
			results[string(r.GetHoldToken())] = r
		}
	}
	var done [Released + 1]int
	for _, h := range f.settled {
		if kind := s.accepted(h, results, now); kind != 0 {
			done[kind]++
		}
	}
	extended := 0
	for _, h := range f.extended {
		if s.extended(h, results[string(h.ack.HoldToken)], f.sent, now) {
			extended++
		}
	}
	s.stir()
	switch {
	case s.current == nil:
		poke(s.heard)
	case s.current.draining, s.current.quiet:
		s.wake() // it has nothing more to say, or need not wait any longer
	}
	s.mu.Unlock()
	for kind, n := range done {
		s.w.report(EventKind(kind), s.topic, n, nil)
	}
	s.w.report(Extended, s.topic, extended, nil)
}

// accepted returns what became of h's outcome, or 0 when it was lost or is to
// be sent again; mu is held.
func (s *subscription) accepted(h *held, results map[string]*ddqv1.SettleResult, now time.Time) EventKind {
	err := results[string(h.ack.HoldToken)].GetError() // nil without results
	if h.repeated && gone(err) && now.Before(h.deadline) {
		// The hold had time left, so what ended it was this outcome, of which the
		// first answer was lost.
		err = nil
	}
	switch {
	case err == nil && h.nack == nil:
		return Acked
	case err == nil && h.nack.Release:
		return Released
	case err == nil:
		return Nacked
	case passing(err) && now.Before(h.deadline):
		at := now.Add(pause(err))
		h.repeated = true
		s.later = append(s.later, postponed{h, at})
		s.arm(at)
		return 0
	}
	s.w.report(Lost, s.topic, 1, nil)
	s.w.cfg.Logger.Warn("settlement refused", "topic", s.topic, "task", h.ack.TaskId, "err", err.GetMessage())
	return 0
}

// extended takes the answer to an extend that was sent no earlier than sent;
// mu is held.
func (s *subscription) extended(h *held, r *ddqv1.SettleResult, sent, now time.Time) bool {
	if st := h.stage.Load(); st != waiting && st != running {
		return false
	}
	err := r.GetError()
	switch {
	case err == nil && r.GetHoldMs() > 0:
		h.holdFor(sent, time.Duration(r.GetHoldMs())*time.Millisecond)
		s.arm(h.extendAt)
		return true
	case err == nil: // no word about it: ask again when it is time
		return false
	case passing(err):
		h.extendAt = now.Add(pause(err))
		s.arm(h.extendAt)
		return false
	}
	s.lose(h, err.GetMessage())
	return false
}

// gone reports whether err says that there is no such hold.
func gone(err *ddqv1.Error) bool {
	return err.GetReason() == "HOLD_LOST" || codes.Code(err.GetCode()) == codes.NotFound
}

// passing reports whether what failed with err may succeed later.
func passing(err *ddqv1.Error) bool {
	c := codes.Code(err.GetCode())
	return err.GetRetryAfterMs() > 0 || c == codes.Unavailable || c == codes.Unknown
}

// pause is how long to wait before saying it again.
func pause(err *ddqv1.Error) time.Duration {
	return max(time.Duration(err.GetRetryAfterMs())*time.Millisecond, 50*time.Millisecond)
}

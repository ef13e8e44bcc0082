package worker

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// subscription is the worker's part in one topic: the tasks it holds, what it
// has to tell the server, and the credit that follows from both. It outlives
// the sessions that it speaks on, which are its speakers' links.
//
// Invariants, under mu:
//   - live holds exactly the tasks that are waiting or running
//   - an outcome is in settle, a link's settle, later or unanswered until a
//     server accepts it
type subscription struct {
	speakers
	rpc    ddqv1.DelayQueueServiceClient // for checkpoints that no stream carries
	flows  ddqv1.WorkflowServiceClient   // for results that were left out
	queue  chan<- *held                  // to the handlers; has room for all that may be in flight
	events *events
	armed  chan struct{} // the sweeper has to look at its next wake-up
	moved  chan struct{} // something was finished or answered while stopping

	waiting atomic.Int32 // tasks that are delivered and not started

	live      []*held     // guarded by mu
	bytes     int64       // of the payloads of live; guarded by mu
	received  uint64      // tasks so far; guarded by mu
	later     []postponed // outcomes to send again after a while; guarded by mu
	nextSweep time.Time   // zero when the sweeper sleeps; guarded by mu
}

// postponed is an outcome that the server could not take just now.
type postponed struct {
	h  *held
	at time.Time
}

func newSubscription(cfg *settings, topic string, queue chan<- *held, events *events) *subscription {
	s := &subscription{
		speakers: speakers{
			cfg:        cfg,
			topic:      topic,
			window:     window{limit: cfg.MaxInFlight},
			lowered:    cfg.MaxInFlight,
			unanswered: make(map[uint64]*frame),
		},
		queue:  queue,
		events: events,
		armed:  make(chan struct{}, 1),
		moved:  make(chan struct{}, 1),
	}
	if cfg.adapts {
		s.adaptive = newAdaptiveLimit(cfg.Concurrency)
	}
	return s
}

// stop gives back what waits and lets what runs finish, or cancels it when the
// grace period is over. The error says how many handlers did not return even then.
func (s *subscription) stop() error {
	s.mu.Lock()
	s.stopping = true
	s.releaseWaiting(nil)
	s.mu.Unlock()
	if s.await(max(s.cfg.Grace, 0), s.idle) {
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

// releaseWaiting gives back what no handler has started of what came on l, of
// everything when l is nil; mu is held.
func (s *subscription) releaseWaiting(l *link) {
	for _, h := range slices.Clone(s.live) {
		if l == nil || h.via == l {
			s.release(h)
		}
	}
	s.wake()
}

// release gives h back if no handler has started it, and reports whether it did; mu is
// held.
func (s *subscription) release(h *held) bool {
	if !h.end(waiting, &ddqv1.Nack{Release: true, DelayMs: new(int64(0))}) {
		return false
	}
	h.task.Payload, h.task.Attributes = nil, nil // h stays in the queue until a handler is free
	h.journal.forget()
	s.unlive(h)
	s.say(h)
	return true
}

// adaptTo records deliveries for the limit, and gives those back whose payloads are too many
// bytes in hand; mu is held.
func (s *subscription) adaptTo(batch []held, now time.Time) {
	if s.adaptive == nil {
		return
	}
	for i := range batch {
		s.adaptive.onReceived(now, batch[i].bytes)
	}
	for i := len(batch) - 1; i >= 0 && s.adaptive.overfull(len(s.live), s.bytes); i-- {
		s.release(&batch[i])
	}
	if s.waiting.Load() > 0 {
		s.arm(now.Add(lookSpan))
	}
}

// flush waits until the server has answered every settlement. It goes on while there are answers, and
// for as long as the grace period while there is a stream that may bring them.
func (s *subscription) flush() error {
	began := time.Now()
	for left := s.unsettled(); !s.await(flushTimeout, s.settled); {
		before := left
		if left = s.unsettled(); left < before || s.spoken() && time.Since(began) < s.cfg.Grace {
			continue
		}
		return fmt.Errorf("the server did not confirm the last %d settlements", left)
	}
	return nil
}

// unsettled counts the outcomes that no server has answered.
func (s *subscription) unsettled() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = len(s.settle) + len(s.later)
	for _, l := range s.links {
		n += len(l.settle)
	}
	for _, f := range s.unanswered {
		n += len(f.settled)
	}
	return n
}

// spoken reports whether somebody speaks for the subscription.
func (s *subscription) spoken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links) > 0
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
	for _, l := range s.links {
		if len(l.settle) > 0 {
			return false
		}
	}
	return len(s.settle)+len(s.later) == 0 && s.allAnswered(nil)
}

// receive takes deliveries of l. What was not asked for, or comes when no more
// is taken, is given back.
func (s *subscription) receive(l *link, deliveries []*ddqv1.Delivery, serverTime int64) {
	now := time.Now()
	clock := clockAt(serverTime, now)
	batch := make([]held, len(deliveries)) // one allocation; each lets go of its task when done
	for i, d := range deliveries {
		batch[i].fill(s, l, d, now)
		batch[i].journal.clock = clock
	}
	s.mu.Lock()
	l.use(len(batch))
	s.inFlight += len(batch)
	for i := range batch {
		s.admit(l, &batch[i])
	}
	s.adaptTo(batch, now)
	s.mu.Unlock()
	s.events.report(Event{Kind: Received, Topic: s.topic, Tasks: len(batch)})
}

// admit queues h for a handler; mu is held. The queue has room for every task
// that was asked for.
func (s *subscription) admit(l *link, h *held) {
	h.index = len(s.live)
	s.live = append(s.live, h)
	s.bytes += int64(h.bytes)
	s.received++
	h.number = s.received
	s.waiting.Add(1)
	if !s.stopping && !l.draining {
		select {
		case s.queue <- h:
			s.arm(h.extendAt)
			return
		default:
			s.cfg.Logger.Warn("delivery without credit given back", "topic", s.topic, "task", h.task.ID)
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
	suspend := GrowthOf(err)
	var suspended ending
	ends := &h.ending // the handler has returned
	if suspend != nil {
		suspended = endingOf(suspend, ends)
		ends = &suspended
	}
	switch {
	case err != nil && suspend == nil:
		nack = nackOf(ctx, err)
	case ends.size() > mostResult: // no server takes the frame that it is in, which has those of others
		nack = nackOf(ctx, fmt.Errorf("what goes with the ack counts %d bytes, with its tasks, steps and result; at most %d are allowed", ends.size(), mostResult))
	}
	var now time.Time
	if s.cfg.adapts {
		now = time.Now()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	if s.adaptive != nil {
		s.adaptive.onFinished(now, now.Sub(h.begun), int(s.waiting.Load()))
	}
	if nack != nil {
		h.traceNack(nack)
	}
	if suspend != nil && h.stage.Load() == running {
		h.ending = suspended
	}
	if h.end(running, nack) {
		s.unlive(h)
		s.say(h)
	}
	h.task.Payload, h.task.Attributes = nil, nil // h may lie in a batch with one that runs for hours
	h.journal.forget()
	s.wake()
	s.stir()
}

// giveUp fails the attempt of a handler that goes on past its timeout. What that handler
// says later finds an outcome, and is ignored.
func (s *subscription) giveUp(h *held, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.end(running, &ddqv1.Nack{Error: shorten(why.Error())}) {
		return
	}
	h.gaveUp = true
	s.unlive(h)
	s.say(h)
	s.wake()
	s.cfg.Logger.Warn("handler does not return; its task is given up", "topic", s.topic, "task", h.ack.TaskId, "err", why)
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
	s.bytes -= int64(h.bytes)
	if h.via.draining {
		poke(h.via.wake) // that may have been all it waited for
	}
}

// lose takes h from this worker; mu is held.
func (s *subscription) lose(h *held, why string) {
	if !h.lose() {
		return
	}
	s.unlive(h)
	s.events.report(Event{Kind: Lost, Topic: s.topic, Tasks: 1})
	s.cfg.Logger.Warn("hold lost", "topic", s.topic, "task", h.task.ID, "attempt", h.task.Attempt, "err", why)
}

// canceledBy passes on that the cancellation of tasks was asked for.
func (s *subscription) canceledBy(cancels []*ddqv1.Cancel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cancels {
		i := slices.IndexFunc(s.live, func(h *held) bool { return string(h.ack.HoldToken) == string(c.GetHoldToken()) })
		if i < 0 {
			continue // finished meanwhile
		}
		s.live[i].askToStop()
	}
}

// stir tells who waits for the end that it may have come; mu is held.
func (s *subscription) stir() {
	if s.stopping {
		poke(s.moved)
	}
}

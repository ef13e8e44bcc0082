package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// stage is how far a held task has come. The pool moves it from waiting to
// running; whoever ends it first decides its outcome.
type stage = int32

const (
	waiting stage = iota // delivered, not started
	running              // in a handler
	ended                // its outcome is decided
	lost                 // its hold is gone; there is no outcome
)

// held is one delivered task that the worker has.
type held struct {
	sub    *subscription
	task   Task
	stage  atomic.Int32
	cancel context.CancelCauseFunc // of the handler's context; set before running

	ack      ddqv1.Ack
	ending   ending      // of an ack
	journal  journal     // the handler's
	nack     *ddqv1.Nack // the outcome if it is not an ack; set when ended
	ownHold  bool        // the task brings its visibility timeout
	canceled atomic.Bool // someone asked for the task to be cancelled
	later    bool        // its outcome is to be sent again after a while; guarded by sub.mu
	repeated bool        // the outcome was sent before, and may have been accepted; guarded by sub.mu

	suspect bool // the outcome may be what broke a stream: see reclaim; guarded by sub.mu
	gaveUp  bool // its handler goes on past its timeout; guarded by sub.mu

	heard atomic.Pointer[hearing] // who hears what became of the outcome; nil: nobody yet

	via      *link         // that its outcome goes to: the one it came on while that lives; guarded by sub.mu
	asked    bool          // an extend was not answered yet; guarded by sub.mu
	index    int           // in sub.live; guarded by sub.mu
	number   uint64        // in the order of arrival; guarded by sub.mu
	bytes    int           // of its payload and its journal
	begun    time.Time     // when its handler was called, where the worker adapts; the pool's
	hold     time.Duration // how long the hold was last said to last; guarded by sub.mu
	deadline time.Time     // when the hold ends; guarded by sub.mu
	extendAt time.Time     // when to ask for more; guarded by sub.mu
}

// fill makes h the task of a delivery to sub on l, received at now.
func (h *held) fill(sub *subscription, l *link, d *ddqv1.Delivery, now time.Time) {
	h.sub, h.via = sub, l
	h.task.fill(d)
	h.ack.TaskId, h.ack.HoldToken = h.task.ID, h.task.HoldToken
	h.task.ending, h.task.journal = &h.ending, &h.journal
	h.ending.of = h
	h.bytes = len(h.task.Payload) + h.journal.fill(h, d.GetJournal())
	h.ownHold = d.GetTask().GetVisibilityTimeoutMs() > 0
	h.holdFor(now, time.Duration(d.GetHoldMs())*time.Millisecond)
}

// holdFor says that the hold lasts for d from now. It is extended at a third,
// so that one lost answer leaves time for another try.
func (h *held) holdFor(now time.Time, d time.Duration) {
	h.hold = d
	h.deadline = now.Add(d)
	h.extendAt = now.Add(d / 3)
}

// run moves h to its handler; false means that it is none's any more.
func (h *held) run(cancel context.CancelCauseFunc) bool {
	h.cancel = cancel
	if h.sub.cfg.adapts {
		h.begun = time.Now()
	}
	return h.leave(waiting, running)
}

// leave moves h from one stage to another; false means that it is in neither of them.
func (h *held) leave(from, to stage) bool {
	if !h.stage.CompareAndSwap(from, to) {
		return false
	}
	if from == waiting {
		h.sub.waiting.Add(-1)
	}
	return true
}

// end decides h's outcome, nil for an ack; false means that it has one or is lost.
func (h *held) end(from stage, nack *ddqv1.Nack) bool {
	if !h.leave(from, ended) {
		return false
	}
	if nack == nil {
		h.ack.Result, h.ack.Enqueue, h.ack.Grow = h.ending.result, h.ending.next, h.ending.grow
		h.trace()
	} else {
		nack.TaskId, nack.HoldToken = h.ack.TaskId, h.ack.HoldToken
		h.nack = nack
	}
	return true
}

// size is how many bytes go with h's outcome.
func (h *held) size() int {
	if h.nack != nil {
		return len(h.nack.Error)
	}
	return h.ending.size()
}

// trace has the ack say in which trace the attempt was, if it is recorded; that of a step also says in
// which span.
func (h *held) trace() {
	h.ack.TraceId = h.ending.trace.recorded()
	if h.ack.TraceId == nil || h.task.Step == nil {
		return
	}
	if h.ack.Grow == nil {
		h.ack.Grow = new(ddqv1.Growth)
	}
	h.ack.Grow.Traceparent = h.ending.trace.Parent
}

// traceNack has a nack say what trace has an ack say.
func (h *held) traceNack(nack *ddqv1.Nack) {
	nack.TraceId = h.ending.trace.recorded()
	if nack.TraceId != nil && h.task.Step != nil {
		nack.Traceparent = h.ending.trace.Parent
	}
}

// lasting reports whether h's hold is to last: a handler has the task, or it waits for one, or the
// server could not take its outcome yet; sub.mu is held.
func (h *held) lasting() bool {
	st := h.stage.Load()
	return st == waiting || st == running || h.later
}

// askToStop tells the handler, also one that has not started, that the cancellation of
// the task was asked for.
func (h *held) askToStop() {
	h.canceled.Store(true) // before the look at its stage: run and this must not miss each other
	if h.stage.Load() == running {
		h.cancel(ErrCanceled)
	}
}

// lose takes h from its handler, which hears of it.
func (h *held) lose() bool {
	if h.leave(waiting, lost) {
		return true
	}
	if h.leave(running, lost) {
		h.cancel(ErrHoldLost)
		return true
	}
	return false
}

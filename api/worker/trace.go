package worker

import "sync"

import "encoding/hex"

// Trace is the trace context of whoever enqueued a task, as W3C Trace Context has it; empty when it
// was enqueued without one.
type Trace struct {
	Parent, State string

	// Delivery is the traceparent of the span that the server made of the delivery; empty when it
	// made none.
	Delivery string
}

// OnSettled has f called once the server has answered to the outcome of the handler: with Acked, Nacked,
// Released, or Lost when it did not count. The outcome of one that goes on past its timeout is that failure;
// f may be called before OnSettled returns then. It is not called when no answer comes. f is called from a
// goroutine of the worker, and must be quick. It is for middleware, which calls it before it returns;
// package api/tracing does.
func (t Task) OnSettled(f func(EventKind)) {
	if t.ending == nil || t.ending.of == nil {
		return
	}
	heard := &t.ending.of.heard
	heard.CompareAndSwap(nil, new(hearing))
	heard.Load().await(f)
}

// hearing is who is to hear what became of an outcome. A handler that was given up may ask after it is known.
type hearing struct {
	mu   sync.Mutex
	f    func(EventKind) // nil: nobody; guarded by mu
	kind EventKind       // 0: not known; guarded by mu
}

func (s *hearing) await(f func(EventKind)) {
	s.mu.Lock()
	kind := s.kind
	if kind == 0 {
		s.f = f
	}
	s.mu.Unlock()
	if kind != 0 {
		f(kind)
	}
}

// known says what became of h's outcome, and returns who is to hear it; nil: nobody.
func (h *held) known(kind EventKind) (f func(EventKind)) {
	if h.heard.Load() == nil {
		if !h.gaveUp {
			return nil // the handler has returned, and did not ask
		}
		h.heard.CompareAndSwap(nil, new(hearing))
	}
	s := h.heard.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	f, s.f, s.kind = s.f, nil, kind
	return f
}

// recorded is the id of the trace, nil when there is none, or nobody records it. A traceparent is the
// version, the id of the trace, that of the span, and flags, in hex with hyphens between them.
func (c *Trace) recorded() []byte {
	const flagsAt, end = 53, 55
	if len(c.Parent) < end || c.Parent[2] != '-' || c.Parent[35] != '-' || c.Parent[52] != '-' {
		return nil
	}
	var flags [1]byte
	if _, err := hex.Decode(flags[:], []byte(c.Parent[flagsAt:end])); err != nil || flags[0]&1 == 0 {
		return nil
	}
	id, err := hex.DecodeString(c.Parent[3:35])
	if err != nil {
		return nil
	}
	return id
}

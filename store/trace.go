package store

// MaxTraceState is the most bytes of a trace's state that a task keeps.
const MaxTraceState = 256

// Trace is the trace context of whoever enqueued a task, as W3C Trace Context has it. What a
// task points to is never changed.
type Trace struct {
	ID    [16]byte // of the trace; not zero
	Span  [8]byte  // of the span that enqueued the task; not zero
	Flags byte
	State string // the members of tracestate, of at most MaxTraceState bytes; may be empty
}

// Sampled reports whether the trace is recorded.
func (t *Trace) Sampled() bool { return t != nil && t.Flags&1 != 0 }

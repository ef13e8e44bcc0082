package store

// MaxTraceState is the most bytes of a trace's state that a task keeps.
const MaxTraceState = 256

// TraceID is the id of a trace; zero for none.
type TraceID [16]byte

// Bytes is the id itself; nil for none.
func (id *TraceID) Bytes() []byte {
	if *id == (TraceID{}) {
		return nil
	}
	return id[:]
}

// TraceIDOf reads what Bytes returned. What has another length is none.
func TraceIDOf(b []byte) (id TraceID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// Trace is the trace context of whoever enqueued a task, as W3C Trace Context has it. What a
// task points to is never changed.
type Trace struct {
	ID    TraceID // of the trace; not zero
	Span  [8]byte // of the span that enqueued the task; not zero
	Flags byte
	State string // the members of tracestate, of at most MaxTraceState bytes; may be empty
}

// Sampled reports whether the trace is recorded.
func (t *Trace) Sampled() bool { return t != nil && t.Flags&1 != 0 }

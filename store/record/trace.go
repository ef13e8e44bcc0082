package record

import "github.com/ddq-io/ddq/store"

// traceBytes is how long a trace context is without its state.
const traceBytes = 16 + 8 + 1

// EncodeTrace encodes a trace context; nil for none.
func EncodeTrace(t *store.Trace) []byte {
	if t == nil {
		return nil
	}
	b := make([]byte, 0, traceBytes+len(t.State))
	b = append(b, t.ID[:]...)
	b = append(b, t.Span[:]...)
	b = append(b, t.Flags)
	return append(b, t.State...)
}

// DecodeTrace reads what EncodeTrace wrote. What is too short is none: a task does not fail for it.
func DecodeTrace(b []byte) *store.Trace {
	if len(b) < traceBytes {
		return nil
	}
	t := &store.Trace{Flags: b[traceBytes-1], State: string(b[traceBytes:])}
	copy(t.ID[:], b)
	copy(t.Span[:], b[len(t.ID):])
	return t
}

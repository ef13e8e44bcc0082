package record

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// AppendHistory appends the encoded history of a task to b.
func AppendHistory(b []byte, h store.History) ([]byte, error) {
	past := History{Result: h.Result, Attempts: make([]*Attempt, len(h.Attempts))}
	for i := range h.Attempts {
		a := &h.Attempts[i]
		past.Attempts[i] = &Attempt{
			Number:    int32(a.Number),
			Worker:    a.Worker,
			Node:      a.Node,
			StartedMs: int64(a.Started),
			EndedMs:   int64(a.Ended),
			Outcome:   int32(a.Outcome),
			Error:     []byte(a.Error),
			DueMs:     int64(a.Due),
			Trace:     a.Trace.Bytes(),
		}
	}
	start, size := len(b), past.SizeVT()
	b = append(b, make([]byte, size)...)
	if _, err := past.MarshalToSizedBufferVT(b[start:]); err != nil {
		return b[:start], fmt.Errorf("encode history: %w", err)
	}
	return b, nil
}

// DecodeHistory reads what AppendHistory wrote. It copies what it keeps.
func DecodeHistory(b []byte) (store.History, error) {
	var past History
	if err := past.UnmarshalVT(b); err != nil {
		return store.History{}, fmt.Errorf("decode history: %w", err)
	}
	h := store.History{Result: past.Result, Attempts: make([]store.Attempt, len(past.Attempts))}
	for i, a := range past.Attempts {
		h.Attempts[i] = store.Attempt{
			Number:  int(a.Number),
			Worker:  a.Worker,
			Node:    a.Node,
			Started: store.Millis(a.StartedMs),
			Ended:   store.Millis(a.EndedMs),
			Outcome: store.Outcome(a.Outcome),
			Error:   string(a.Error),
			Due:     store.Millis(a.DueMs),
			Trace:   store.TraceIDOf(a.Trace),
		}
	}
	return h, nil
}

package cell

import (
	"errors"
	"fmt"
	"time"
)

// ErrCorrupt says that cells are none of a workflow.
var ErrCorrupt = errors.New("the record of a workflow cannot be read")

// Decoder checks messages that are read. Its error, the first one, wraps ErrCorrupt.
type Decoder struct{ Err error }

// Check notes an error unless what it says holds.
func (d *Decoder) Check(ok bool, format string, args ...any) {
	if !ok && d.Err == nil {
		d.Err = fmt.Errorf("%w: %w", ErrCorrupt, fmt.Errorf(format, args...))
	}
}

// maxSpan bounds times in messages: beyond it a time.Duration ends.
const maxSpan = int64(1<<62) / int64(time.Millisecond)

// Span reads a duration in milliseconds.
func (d *Decoder) Span(ms int64) time.Duration {
	d.Check(ms >= 0 && ms <= maxSpan, "a time of %d ms", ms)
	return time.Duration(min(max(ms, 0), maxSpan)) * time.Millisecond
}

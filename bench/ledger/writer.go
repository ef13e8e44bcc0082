package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Writer appends the events of one client to a file of its own. Every Append is one
// write to the file, so that a client that is killed has lost nothing that it had
// written down. It is safe for concurrent use.
type Writer struct {
	calls atomic.Uint64

	mu   sync.Mutex // guards the rest
	file *os.File
	buf  bytes.Buffer
	enc  *json.Encoder
	err  error // the first failure
}

// Create starts the file of a client in dir. There must not be one yet.
func Create(dir, client string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(dir, client+Extension), os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	w := &Writer{file: f}
	w.enc = json.NewEncoder(&w.buf)
	w.enc.SetEscapeHTML(false)
	w.Append(Event{Kind: Opened, Client: client})
	return w, nil
}

// NextCall numbers a call.
func (w *Writer) NextCall() uint64 { return w.calls.Add(1) }

// Append writes events that happened now, in order. A failure is kept for Close:
// whoever writes down what happens cannot undo it.
func (w *Writer) Append(events ...Event) {
	mono, wall := monotonic(), time.Now().UnixNano()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Reset()
	for _, e := range events {
		e.Mono, e.Wall = mono, wall
		if err := w.enc.Encode(e); err != nil && w.err == nil {
			w.err = err
		}
	}
	if _, err := w.file.Write(w.buf.Bytes()); err != nil && w.err == nil {
		w.err = err
	}
}

// ReadClock writes down what a store's clock says.
func (w *Writer) ReadClock(read func() (time.Time, error)) error {
	from := monotonic()
	now, err := read()
	if err != nil {
		return err
	}
	w.Append(Event{Kind: Clock, StoreNow: now.UnixMilli(), Took: monotonic() - from})
	return nil
}

// Close closes the file and returns the first error of all writes.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.file.Close(); err != nil && w.err == nil {
		w.err = err
	}
	if w.err != nil {
		return fmt.Errorf("ledger: %w", w.err)
	}
	return nil
}

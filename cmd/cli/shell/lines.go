package shell

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ddq-io/ddq/api/worker"
)

// lineWriter passes whole lines on and remembers the last one that is not
// empty. It is written to by one goroutine.
type lineWriter struct {
	to   io.Writer
	part []byte
	last string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	end := bytes.LastIndexByte(w.part, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	lines := w.part[:end]
	for line := range strings.Lines(string(lines)) {
		w.last = cmp.Or(strings.TrimSpace(line), w.last)
	}
	_, err := w.to.Write(lines)
	w.part = append(w.part[:0], w.part[end:]...)
	return len(p), err
}

// flush passes on a last line that has no end.
func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		_, _ = w.Write([]byte{'\n'}) // to memory or a terminal: nobody to tell
	}
}

// maxNextLine is how long a line of file descriptor 3 may be: base64 of all that an ack may enqueue.
const maxNextLine = 2 * worker.MaxEnqueueBytes

// nextLines takes what a command writes to file descriptor 3, line by line. What comes behind a line that
// is refused is not wanted.
type nextLines struct {
	take    func(line []byte) error
	part    []byte // of a line
	number  int    // of lines
	refused error
}

func (n *nextLines) Write(p []byte) (int, error) {
	if n.refused != nil {
		return len(p), nil
	}
	n.part = append(n.part, p...)
	for n.refused == nil {
		line, rest, whole := bytes.Cut(n.part, []byte{'\n'})
		if !whole {
			break
		}
		n.line(line)
		n.part = rest
	}
	if n.refused == nil && len(n.part) > maxNextLine {
		n.refused = fmt.Errorf("file descriptor 3: %w", bufio.ErrTooLong)
	}
	return len(p), nil
}

func (n *nextLines) line(line []byte) {
	n.number++
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	if err := n.take(line); err != nil {
		n.refused = fmt.Errorf("line %d of file descriptor 3: %w", n.number, err)
	}
}

// end takes a last line that has no end, and says which was refused.
func (n *nextLines) end() error {
	if n.refused == nil && len(n.part) > 0 {
		n.line(n.part)
	}
	return n.refused
}

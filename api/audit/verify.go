package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Head is the end of a chain.
type Head struct {
	Records int64
	Hash    string // of the last record; empty without one
}

// ErrBroken is of a chain that is not as it was written.
var ErrBroken = errors.New("the audit log is not as it was written")

// Verify reads a log from its first record, and returns its head. An error that is ErrBroken names
// the line that was changed, moved or taken out. That the end was cut off shows by the head
// alone: hold it against what a server wrote into its own log.
func Verify(log io.Reader) (Head, error) {
	head, whole, err := walk(log)
	if err == nil && !whole {
		err = fmt.Errorf("%w: line %d is not whole", ErrBroken, head.Records+1)
	}
	return head, err
}

// walk follows the chain up to a last line that may be torn.
func walk(log io.Reader) (head Head, whole bool, err error) {
	lines := bufio.NewReaderSize(log, longestLine)
	for {
		line, err := lines.ReadSlice('\n') // decode keeps nothing of it
		switch {
		case errors.Is(err, io.EOF):
			return head, len(line) == 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return head, false, fmt.Errorf("%w: line %d: it is longer than a record can be", ErrBroken, head.Records+1)
		case err != nil:
			return head, false, err
		}
		if err := head.follow(line); err != nil {
			return head, false, err
		}
	}
}

// follow goes on to the next record.
func (h *Head) follow(line []byte) error {
	r, sum, err := decode(line)
	switch {
	case err != nil:
	case r.Seq != h.Records+1:
		err = fmt.Errorf("it is record %d: some are missing, or were moved", r.Seq)
	case r.Prev != h.Hash:
		err = errors.New("it does not follow on the one before")
	}
	if err != nil {
		return fmt.Errorf("%w: line %d: %w", ErrBroken, h.Records+1, err)
	}
	h.Records, h.Hash = r.Seq, string(sum)
	return nil
}

// tornAt is where the last line begins when it is not whole, of a log with so many bytes.
func tornAt(tail []byte, size int64) int64 {
	return size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')) + 1
}

package record

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// An entry of a log is what one batch of a store, or one script, has changed:
//
//	8  when, in microseconds
//	4  number of changes, and for each
//	1    kind
//	1    reason
//	1    outcome
//	4    attempt
//	4    version
//	8    due ms
//	2    length of the id
//	2    length of the worker's name
//	     id
//	     worker's name
//	2    length of the indexed attributes
//	     indexed attributes, see AppendIndexed
//
// Integers are big-endian. A script of redisstore writes it as well, see lua/log.lua.
// Where an entry is kept tells the position of its last change.
const (
	logEntrySize  = 12
	logChangeSize = 23
)

var errLog = errors.New("decode changes: malformed")

// AppendLogEntry appends the beginning of an entry of n changes.
func AppendLogEntry(b []byte, at time.Time, n int) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.UnixMicro()))
	return binary.BigEndian.AppendUint32(b, uint32(n))
}

// AppendChange appends c, but for its position and time.
func AppendChange(b []byte, c *store.Change) []byte {
	b = append(b, byte(c.Kind), byte(c.Reason), byte(c.Outcome))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Attempt))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Version))
	b = binary.BigEndian.AppendUint64(b, uint64(c.Due))
	id, worker := c.ID[:min(len(c.ID), math.MaxUint16)], c.Worker[:min(len(c.Worker), math.MaxUint16)]
	b = binary.BigEndian.AppendUint16(b, uint16(len(id)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(worker)))
	b = append(append(b, id...), worker...)
	start := len(b)
	b = AppendIndexed(append(b, 0, 0), c.Attributes)
	if size := len(b) - start - 2; size <= math.MaxUint16 {
		binary.BigEndian.PutUint16(b[start:], uint16(size))
		return b
	}
	return append(b[:start], 0, 0)
}

// LogEntryCount is how many changes the entry has that b begins with.
func LogEntryCount(b []byte) (int, error) {
	if len(b) < logEntrySize {
		return 0, errLog
	}
	return int(binary.BigEndian.Uint32(b[8:])), nil
}

// LogEntryTime is when an entry was written, that LogEntryCount could read.
func LogEntryTime(b []byte) time.Time {
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b))).UTC()
}

// DecodeLogEntry appends the changes of an entry to all; last is the position of the
// last of them, and id turns a stored id into that of the task.
func DecodeLogEntry(all []store.Change, b []byte, last int64, id func([]byte) string) ([]store.Change, error) {
	n, err := LogEntryCount(b)
	if err != nil {
		return all, err
	}
	at := LogEntryTime(b)
	b = b[logEntrySize:]
	for i := range n {
		if len(b) < logChangeSize {
			return all, errLog
		}
		c := store.Change{
			Position: last - int64(n-1-i),
			At:       at,
			Kind:     store.ChangeKind(b[0]),
			Reason:   store.Reason(b[1]),
			Outcome:  store.Outcome(b[2]),
			Attempt:  int(binary.BigEndian.Uint32(b[3:])),
			Version:  int64(binary.BigEndian.Uint32(b[7:])),
			Due:      store.Millis(binary.BigEndian.Uint64(b[11:])),
		}
		idEnd := logChangeSize + int(binary.BigEndian.Uint16(b[19:]))
		end := idEnd + int(binary.BigEndian.Uint16(b[21:]))
		if len(b) < end+2 {
			return all, errLog
		}
		c.ID, c.Worker = id(b[logChangeSize:idEnd]), string(b[idEnd:end])
		b = b[end:]
		end = 2 + int(binary.BigEndian.Uint16(b))
		if len(b) < end {
			return all, errLog
		}
		if c.Attributes, err = DecodeIndexed(b[2:end]); err != nil {
			return all, err
		}
		all = append(all, c)
		b = b[end:]
	}
	return all, nil
}

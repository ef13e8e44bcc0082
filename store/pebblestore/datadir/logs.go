package datadir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkLogs refuses a directory with a log that cannot be read as far as it was synced. Pebble
// reads a log up to the first record that is not whole, as it must after a crash: one flipped bit would
// take all that is behind it. The logs before oldest are in tables. It changes nothing.
//
// It returns where the last log ends, which Pebble may take for damage still.
func checkLogs(dir string, oldest uint64, synced map[uint64]int64, files vfs.FS, log *slog.Logger) (last logEnd, err error) {
	names, err := files.List(dir)
	if err != nil {
		return last, err
	}
	numbers := make(map[uint64]bool)
	for _, name := range names {
		if n, ok := logNumber(name); ok && n >= oldest {
			numbers[n] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(synced)) {
		if length := synced[n]; length > 0 && !numbers[n] {
			return last, fmt.Errorf("%s is gone, of which %d bytes were synced: %s", logName(n), length, asItWas)
		}
	}
	sorted := slices.Sorted(maps.Keys(numbers))
	for i, n := range sorted {
		end, err := readLog(files.PathJoin(dir, logName(n)), n, files)
		if err != nil {
			return last, err
		}
		if want := synced[n]; end.at < want {
			return last, end.damage(fmt.Sprintf("%d bytes of it were synced", want))
		}
		if i < len(sorted)-1 && !end.closed {
			return last, end.damage("it was closed, and another log is behind it")
		}
		_, known := synced[n]
		end.tell(log, known)
		last = end
	}
	return last, nil
}

// asItWas is what to do about a file that is damaged.
const asItWas = "nothing was changed; bring the directory back from a copy, or see \"Damage\" in docs/operating.md"

// logEnd is how far a log can be read.
type logEnd struct {
	name   string
	size   int64 // of the file, which may be longer than the log
	at     int64 // where the first chunk begins that is not whole
	closed bool  // the log ends there by itself
	unread int64 // bytes behind it that are of this log
}

func (e logEnd) damage(why string) error {
	what := "is damaged"
	if e.at == e.size {
		what = "is cut off"
	}
	return fmt.Errorf("%s %s at byte %d, and %s: %s", e.name, what, e.at, why, asItWas)
}

// tell says how much of the log is not read. Where it is known how far the log was synced, nobody was told
// of the rest, but for the last second before a power cut: SYNCED may be that old then.
func (e logEnd) tell(log *slog.Logger, known bool) {
	if known || e.unread == 0 {
		log.Info("log read", "file", e.name, "bytes", e.at, "bytes_not_read", e.unread)
		return
	}
	log.Warn("end of a log cannot be read: a crash during a write does that, and so does damage",
		"file", e.name, "bytes", e.at, "bytes_not_read", e.unread)
}

// The format of a log is that of a manifest but for the header of a chunk, which has the
// number of the log, too, and since some version how far the log was known to be synced. A chunk
// of another number is left from a log that had the file before.
const (
	chunkLengthAt = 4
	chunkKindAt   = 6
	chunkLogAt    = 7

	shortLogHeader = chunkHeader + 4
	logHeader      = shortLogHeader + 8
	shortLogKinds  = 5 // the first of four
	logKinds       = 9
)

// readLog reads a log, changing nothing.
func readLog(name string, number uint64, files vfs.FS) (end logEnd, err error) {
	f, err := files.Open(name)
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end = logEnd{name: files.PathBase(name)}
	for block, whole := make([]byte, manifestBlock), true; ; {
		n, err := io.ReadFull(f, block)
		if n == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return end, err
		}
		start := 0
		if whole {
			start, whole, end.closed = readBlock(block[:n], uint32(number)) //nolint:gosec // as Pebble does
			end.at = end.size + int64(start)
		}
		if !whole && !end.closed {
			if last := lastOf(block[start:n], uint32(number)); last > 0 { //nolint:gosec // as above
				end.unread = end.size + int64(start+last) - end.at
			}
		}
		end.size += int64(n)
	}
	if end.at == end.size {
		end.closed = true // as far as can be told
	}
	return end, nil
}

// readBlock returns where the first chunk of a block is that is not whole, whether the block ends before
// there is one, and whether the log does.
func readBlock(block []byte, log uint32) (at int, whole, closed bool) {
	for at < len(block) {
		rest := block[at:]
		if len(rest) < logHeader && zeros(rest) { // padding
			return len(block), true, false
		}
		n, whole := chunkOf(rest, log)
		switch {
		case trailer(rest, log):
			return at + shortLogHeader, false, true
		case !whole:
			return at, false, false
		}
		at += n
	}
	return at, true, false
}

// chunkOf returns the length of the chunk of a log that b begins with, as far as it is there, and whether it is
// whole. The length is 0 when no chunk of this log begins there.
func chunkOf(b []byte, log uint32) (n int, whole bool) {
	if len(b) < shortLogHeader || binary.LittleEndian.Uint32(b[chunkLogAt:]) != log {
		return 0, false
	}
	header := shortLogHeader
	switch kind := b[chunkKindAt]; {
	case kind >= logKinds && kind < logKinds+chunkTypes:
		header = logHeader
	case kind < shortLogKinds || kind >= shortLogKinds+chunkTypes:
		return 0, false
	}
	n = header + int(binary.LittleEndian.Uint16(b[chunkLengthAt:]))
	if n > len(b) {
		return len(b), false
	}
	return n, binary.LittleEndian.Uint32(b) == masked(crc32.Checksum(b[chunkKindAt:n], castagnoli))
}

// trailer reports whether b begins with what ends a log that was closed.
func trailer(b []byte, log uint32) bool {
	return len(b) >= shortLogHeader && zeros(b[:chunkKindAt]) &&
		b[chunkKindAt] == shortLogKinds && binary.LittleEndian.Uint32(b[chunkLogAt:]) == log+1
}

// lastOf returns where the last of what is left of a log ends in b, 0 when there is nothing: a chunk that is
// whole, or the one that b begins with. A chunk may begin anywhere, as the lengths of those before it
// are not known.
func lastOf(b []byte, log uint32) (end int) {
	end, _ = chunkOf(b, log)
	for at := 0; at+shortLogHeader <= len(b); at++ {
		if n, whole := chunkOf(b[at:], log); whole {
			end = max(end, at+n)
			at += n - 1
		}
	}
	return end
}

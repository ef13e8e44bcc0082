package datadir

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkManifest refuses a directory whose manifest, the file that names the tables and
// logs in use, is damaged or not there. Pebble reads a manifest up to the first record
// that is not whole, as it must after a crash, and deletes what it has not heard of: one
// flipped bit would take tables with all their tasks. It changes nothing.
//
// It returns the first log that is in use: what those before it had is in tables.
func checkManifest(dir string, fs vfs.FS) (oldest uint64, err error) {
	found, err := pebble.Peek(dir, fs)
	if err != nil {
		return 0, err
	}
	if !found.Exists {
		return 0, checkEmpty(dir, fs)
	}
	manifest, err := readFile(found.ManifestFilename, fs)
	if err != nil {
		return 0, err
	}
	if at, damaged := damagedAt(manifest); damaged {
		return 0, fmt.Errorf("%s is damaged at byte %d of %d, so that tables are not known: nothing was changed; bring the directory back from a copy",
			filepath.Base(found.ManifestFilename), at, len(manifest))
	}
	return oldestLog(manifest), nil
}

// What a record of a manifest begins with, where it has it: the name of the order of keys, and the first log in
// use. Each is behind its tag.
const (
	tagOrder     = 1
	tagOldestLog = 2
	recordBegin  = 256 // more than both take
)

// oldestLog returns the first log in use by a manifest. It is in the last record that names one.
func oldestLog(manifest []byte) (oldest uint64) {
	for records := record.NewReader(bytes.NewReader(manifest), 0); ; {
		r, err := records.Next()
		if err != nil {
			return oldest
		}
		begin, err := io.ReadAll(io.LimitReader(r, recordBegin))
		if err != nil {
			return oldest
		}
		if log, ok := logOf(begin); ok {
			oldest = log
		}
	}
}

// logOf returns the log that a record of a manifest names.
func logOf(begin []byte) (log uint64, ok bool) {
	field := func() (v uint64) {
		v, n := binary.Uvarint(begin)
		begin = begin[max(n, 0):]
		return v
	}
	tag := field()
	if tag == tagOrder {
		begin = begin[min(field(), uint64(len(begin))):]
		tag = field()
	}
	return field(), tag == tagOldestLog
}

// checkEmpty refuses a directory that has tables, though it is taken for a new one.
func checkEmpty(dir string, fs vfs.FS) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(names, isTable); i >= 0 {
		return fmt.Errorf("there is %s, but no marker of a manifest that names it: nothing was changed; bring the directory back from a copy", names[i])
	}
	return nil
}

func readFile(name string, fs vfs.FS) (b []byte, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}

// The format of a manifest is LevelDB's: blocks of chunks, and a chunk is its checksum,
// the length of its body, its type and its body. The checksum covers type and body.
const (
	manifestBlock = 32 << 10
	chunkHeader   = 7
	chunkTypes    = 4
	sector        = 512 // what a disk writes as a whole
	fewBytes      = 8   // so few may be zero by themselves
)

// damagedAt returns where the first chunk is that was written as a whole and is not any
// more. A chunk that a crash cut off is not damage: the file ends early or in zeros, or
// sectors of it are zero, and what it said was never relied on.
func damagedAt(manifest []byte) (at int, damaged bool) {
	for at < len(manifest) {
		room := manifestBlock - at%manifestBlock
		if room < chunkHeader { // padding
			at += room
			continue
		}
		rest := manifest[at:]
		if zeros(rest) || len(rest) < chunkHeader {
			return 0, false
		}
		length := int(binary.LittleEndian.Uint16(rest[4:]))
		switch end := chunkHeader + length; {
		case end > room:
			return at, true
		case end > len(rest):
			return at, endsWithin(rest)
		case !whole(rest[:end]):
			return at, !torn(rest, end, at)
		default:
			at += end
		}
	}
	return 0, false
}

func whole(chunk []byte) bool {
	if kind := chunk[6]; kind < 1 || kind > chunkTypes {
		return false
	}
	return binary.LittleEndian.Uint32(chunk) == masked(crc32.Checksum(chunk[6:], castagnoli))
}

// endsWithin reports whether a chunk that is longer than what is left of the file is
// whole when its length is taken for wrong.
func endsWithin(rest []byte) bool {
	want, sum := binary.LittleEndian.Uint32(rest), uint32(0)
	for i := range rest[6:] {
		sum = crc32.Update(sum, castagnoli, rest[6+i:7+i])
		if masked(sum) == want {
			return true
		}
	}
	return false
}

// torn reports whether a part of the chunk that rest begins with was not written. The
// chunk begins at a place in the file.
func torn(rest []byte, end, at int) bool {
	if written := len(bytes.TrimRight(rest, "\x00")); written < end && len(rest)-written >= fewBytes {
		return true
	}
	for chunk := rest[:end]; len(chunk) > 0; {
		n := min(len(chunk), sector-at%sector)
		if zeros(chunk[:n]) || n < fewBytes {
			return true
		}
		chunk, at = chunk[n:], at+n
	}
	return false
}

func zeros(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is a checksum as LevelDB stores it.
func masked(sum uint32) uint32 { return (sum>>15 | sum<<17) + 0xa282ead8 }

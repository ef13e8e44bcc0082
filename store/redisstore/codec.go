package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// errCorrupt is what decoding a stored record gives when it cannot be read.
var errCorrupt = errors.New("corrupt record")

// maxScore is the highest time that a sorted set keeps exactly, in milliseconds.
const maxScore = 1 << 53

// Header flags; the version is in the upper half of the same byte.
const (
	recordVersion  = 1 << 4
	flagExpires    = 1
	flagVisibility = 2
	flagEdits      = 4
	flagMask       = 15
	headerSize     = 9 // version and flags, fingerprint
)

// appendRecord appends what the data hash keeps of t:
//
//	1  version (upper half), flags (lower half)
//	8  fingerprint
//	8  expiry ms, when flagged
//	8  visibility timeout ms, when flagged
//	8  number of edits, when flagged
//	   body, see store/record
//
// Integers are big-endian. Scripts read the header, so they know this layout too.
func appendRecord(b []byte, t *store.Task) ([]byte, error) {
	version := byte(recordVersion)
	if t.Expires != 0 {
		version |= flagExpires
	}
	if t.Visibility > 0 {
		version |= flagVisibility
	}
	if t.Edits > 0 {
		version |= flagEdits
	}
	b = append(b, version)
	b = binary.BigEndian.AppendUint64(b, t.Fingerprint)
	if t.Expires != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(t.Expires))
	}
	if t.Visibility > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(store.CeilMillis(t.Visibility)))
	}
	if t.Edits > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(t.Edits))
	}
	return record.AppendBody(b, t)
}

// decodeRecord reads a record into t. What it cannot read stays zero.
func decodeRecord(s string, t *store.Task) error {
	if len(s) < headerSize || s[0]&^flagMask != recordVersion || s[0]&flagMask > flagExpires|flagVisibility|flagEdits {
		return errCorrupt
	}
	b := []byte(s)
	t.Fingerprint = binary.BigEndian.Uint64(b[1:])
	flags := b[0] & flagMask
	b = b[headerSize:]
	if len(b) < 8*bits.OnesCount8(flags) {
		return errCorrupt
	}
	if flags&flagExpires != 0 {
		t.Expires, b = store.Millis(binary.BigEndian.Uint64(b)), b[8:]
	}
	if flags&flagVisibility != 0 {
		ms := binary.BigEndian.Uint64(b)
		if ms > uint64(math.MaxInt64/time.Millisecond) {
			return errCorrupt
		}
		t.Visibility, b = time.Duration(ms)*time.Millisecond, b[8:]
	}
	if flags&flagEdits != 0 {
		t.Edits, b = int64(binary.BigEndian.Uint64(b)), b[8:]
	}
	if err := record.DecodeBody(b, t); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return nil
}

// hold is what the running hash keeps of a task:
//
//	16  token
//	 8  deadline ms
//	 4  attempt
//	 2  length of who has it, and
//	      worker's name
//	      node's name, and 1 byte: its length
//	  8   started ms
//	  1   254, or 255: cancellation was asked for
//	    due ms, in decimal, behind a + when the task has an ordering key
//
// Of holds that began before there was more than the worker's name, that is all.
//
// Scripts write it and know this layout too.
type hold struct {
	store.Running
	due store.Millis
}

const holdSize = 30 // without the worker and the due time

func decodeHold(s string) (h hold, err error) {
	if len(s) < holdSize {
		return h, errCorrupt
	}
	copy(h.Token[:], s)
	b := []byte(s[16:holdSize])
	h.Deadline = store.Millis(binary.BigEndian.Uint64(b))
	h.Attempt = int(binary.BigEndian.Uint32(b[8:]))
	rest := s[holdSize:]
	worker := int(binary.BigEndian.Uint16(b[12:]))
	if len(rest) < worker {
		return h, errCorrupt
	}
	h.who(rest[:worker])
	if h.due, err = parseMillis(rest[worker:]); err != nil {
		return h, errCorrupt
	}
	return h, nil
}

// Marks at the end of who has a task.
const (
	markHeld      = 254
	markCancelled = 255
)

// maxWorker is the most of a worker's name that is kept, so that the length of who has a task leaves
// room for the marks of its history.
const maxWorker = 8 << 10

// appendWho appends the part of who has a task that a call says.
func appendWho(b []byte, worker, node string) []byte {
	worker, node = worker[:min(len(worker), maxWorker)], node[:min(len(node), math.MaxUint8)]
	b = append(b, worker...)
	b = append(b, node...)
	return append(b, byte(len(node)))
}

// who reads who has a task.
func (h *hold) who(s string) {
	h.Worker = s
	end := len(s) - 1
	if end < 9 || s[end] != markHeld && s[end] != markCancelled {
		return
	}
	node := end - 9 - int(s[end-9])
	if node < 0 {
		return
	}
	h.Cancelled = s[end] == markCancelled
	h.Started = store.Millis(binary.BigEndian.Uint64([]byte(s[end-8 : end])))
	h.Worker, h.Node = s[:node], s[node:end-9]
}

// note is what the notes hash keeps of a task:
//
//	 1  version
//	 1  reason, of a dead task
//	 4  attempts so far
//	 8  due ms, of a dead or done task
//	16  token, of a done task
//	    last error
//
// Scripts write it and know this layout too.
type note struct {
	reason    store.Reason
	attempt   int
	due       store.Millis
	token     store.Token
	lastError string
}

const noteSize = 30 // without the error

// decodeNote reads a note; one that cannot be read is taken for none, as in the scripts.
func decodeNote(s string) (n note) {
	if len(s) < noteSize {
		return n
	}
	b := []byte(s[:noteSize])
	n.reason = store.Reason(b[1])
	n.attempt = int(binary.BigEndian.Uint32(b[2:]))
	n.due = store.Millis(binary.BigEndian.Uint64(b[6:]))
	copy(n.token[:], b[14:])
	n.lastError = s[noteSize:]
	return n
}

// parseMillis reads a score. Those that nobody here wrote may have a fraction.
func parseMillis(s string) (store.Millis, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return store.Millis(ms), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("%w: time %q", errCorrupt, s)
	}
	return store.Millis(math.Ceil(max(-maxScore, min(maxScore, f)))), nil
}

// lifeText is whose a shard is as the owner record has it, see lua/admit.lua.
func lifeText(l store.ShardLife) string {
	switch {
	case l.Topic == 0:
		return ""
	case l.Ended:
		return strconv.FormatUint(l.Topic, 10) + "-"
	}
	return strconv.FormatUint(l.Topic, 10)
}

func parseShardLife(text string) store.ShardLife {
	number, ended := strings.CutSuffix(text, "-")
	topic, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return store.ShardLife{}
	}
	return store.ShardLife{Topic: topic, Ended: ended}
}

// parseIndexState reads the field indexed of an owner record: see lua/index_state.lua.
func parseIndexState(field string) (s store.IndexState) {
	end := 0
	for end < len(field) && field[end] > 0 {
		end = min(len(field), end+1+int(field[end]))
	}
	s.Ready = store.IndexSet(field[:end])
	if walk := field[end:]; len(walk) > len(s.Walk) {
		copy(s.Walk[:], walk[1:])
		s.Building = store.IndexSet(walk[1+len(s.Walk):])
	}
	return s
}

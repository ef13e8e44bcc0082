package pebblestore

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// entry is a task as it is stored: a header that the store reads, and a body that
// it does not. Whether the task is held stands with the holds, not in the entry.
type entry struct {
	state       stage
	due         store.Millis
	fingerprint uint64
	stamp       uint64 // number of the batch that wrote the entry: see hold.stamp
	expires     store.Millis
	visibility  time.Duration
	attempt     int
	lastError   string
	edits       int64
	indexed     store.IndexSet // attributes of the task by which it is in the index
	tells       store.CellID   // see store.Task

	// Of finished tasks.
	finished store.Millis
	trim     store.Millis // done: the end of its retention
	reason   store.Reason
	token    store.Token // done: of the hold that ended it

	// rewritten says that the key was set more than once since it was last deleted.
	// Pebble's SingleDelete, the cheap way to delete, is wrong for such a key.
	rewritten bool
	// first says that a pending task was held: it is the head of its ordering key.
	first bool
	// history says that there is a history of the task, under a key of its own.
	history bool
	// journal says that there is a journal of the task, under keys of its own.
	journal bool
	// unreadable says that body is what was found in place of a whole entry.
	unreadable bool
	body       []byte
}

// stage is the state of an entry. A running task is pending here.
type stage byte

const (
	pending stage = iota
	done
	dead
	expired
)

const entryVersion = 1

const (
	hasRewritten = 1 << iota
	hasExpires
	hasVisibility
	hasAttempt
	hasLastError
	hasFinished
	hasUnreadable
	hasMore // a second byte of flags follows
)

// Of the second byte.
const (
	hasEdits   = 1
	hasHistory = 4
	hasFirst   = 8
	hasIndexed = 16
	hasTells   = 32
	hasJournal = 64
)

// moreFlags is the second byte, 0 for none.
func (e *entry) moreFlags() (f byte) {
	if e.edits != 0 {
		f |= hasEdits
	}
	if e.history {
		f |= hasHistory
	}
	if e.indexed != "" {
		f |= hasIndexed
	}
	if e.first {
		f |= hasFirst
	}
	if e.tells != "" {
		f |= hasTells
	}
	if e.journal {
		f |= hasJournal
	}
	return f
}

func (e *entry) flags() (f byte) {
	set := func(bit byte, when bool) {
		if when {
			f |= bit
		}
	}
	set(hasRewritten, e.rewritten)
	set(hasExpires, e.expires != 0)
	set(hasVisibility, e.visibility != 0)
	set(hasAttempt, e.attempt != 0)
	set(hasLastError, e.lastError != "")
	set(hasFinished, e.state != pending)
	set(hasUnreadable, e.unreadable)
	set(hasMore, e.moreFlags() != 0)
	return f
}

// appendHeader appends everything but the body.
func (e *entry) appendHeader(b []byte) []byte {
	flags := e.flags()
	b = append(b, entryVersion, byte(e.state), flags)
	more := e.moreFlags()
	if more != 0 {
		b = append(b, more)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(e.due))
	b = binary.BigEndian.AppendUint64(b, e.fingerprint)
	b = binary.AppendUvarint(b, e.stamp)
	if flags&hasExpires != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(e.expires))
	}
	if flags&hasVisibility != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(e.visibility))
	}
	if flags&hasAttempt != 0 {
		b = binary.AppendUvarint(b, uint64(e.attempt))
	}
	if flags&hasLastError != 0 {
		b = binary.AppendUvarint(b, uint64(len(e.lastError)))
		b = append(b, e.lastError...)
	}
	if flags&hasFinished != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(e.finished))
		b = binary.BigEndian.AppendUint64(b, uint64(e.trim))
		b = append(b, byte(e.reason))
		b = append(b, e.token[:]...)
	}
	if more&hasEdits != 0 {
		b = binary.AppendUvarint(b, uint64(e.edits))
	}
	if more&hasIndexed != 0 {
		b = binary.AppendUvarint(b, uint64(len(e.indexed)))
		b = append(b, e.indexed...)
	}
	if more&hasTells != 0 {
		b = appendText(b, string(e.tells))
	}
	return b
}

// decodeEntry reads an entry. Its body is a part of b.
func decodeEntry(b []byte) (e entry, err error) {
	in := input{b: b}
	if version := in.byte(); version != entryVersion {
		return e, fmt.Errorf("decode task: unknown version %d", version)
	}
	e.state = stage(in.byte())
	flags, more := in.byte(), byte(0)
	if flags&hasMore != 0 {
		more = in.byte()
	}
	e.history = more&hasHistory != 0
	e.first = more&hasFirst != 0
	e.journal = more&hasJournal != 0
	e.due = store.Millis(in.uint64())
	e.fingerprint = in.uint64()
	e.stamp = in.uvarint()
	e.rewritten = flags&hasRewritten != 0
	e.unreadable = flags&hasUnreadable != 0
	if flags&hasExpires != 0 {
		e.expires = store.Millis(in.uint64())
	}
	if flags&hasVisibility != 0 {
		e.visibility = time.Duration(in.uint64())
	}
	if flags&hasAttempt != 0 {
		e.attempt = int(in.uvarint())
	}
	if flags&hasLastError != 0 {
		e.lastError = string(in.bytes(in.uvarint()))
	}
	if flags&hasFinished != 0 {
		e.finished = store.Millis(in.uint64())
		e.trim = store.Millis(in.uint64())
		e.reason = store.Reason(in.byte())
		copy(e.token[:], in.bytes(uint64(len(e.token))))
	}
	if more&hasEdits != 0 {
		e.edits = int64(in.uvarint())
	}
	if more&hasIndexed != 0 {
		e.indexed = store.IndexSet(in.bytes(in.uvarint()))
	}
	if more&hasTells != 0 {
		e.tells = store.CellID(in.text())
	}
	e.body = in.b
	if in.short || e.state > expired || (e.state != pending) != (flags&hasFinished != 0) {
		return entry{}, fmt.Errorf("decode task: malformed header")
	}
	return e, nil
}

// read writes the task of an entry to t. Nothing of it is a part of the entry.
func (e *entry) read(t *store.Task, id string) error {
	t.ID = id
	e.fill(t)
	if e.unreadable {
		return fmt.Errorf("task %q was not readable", id)
	}
	return record.DecodeBody(e.body, t)
}

// traits are the encoded traits of the task, a part of the entry. Of one that is not
// readable they are not known: what is left in an index is found by Sweep.
func (e *entry) traits() []byte {
	if e.unreadable {
		return nil
	}
	return record.BodyTraits(e.body)
}

// check reports whether the task of an entry can be read.
func (e *entry) check(id string) error { return e.read(new(store.Task), id) }

func (e *entry) fill(t *store.Task) {
	t.Due = e.due
	t.Expires = e.expires
	t.Visibility = e.visibility
	t.Fingerprint = e.fingerprint
	t.Attempt = e.attempt
	t.LastError = e.lastError
	t.Edits = e.edits
	t.Tells = e.tells
}

// stateAt is the task's state when nobody holds it.
func (e *entry) stateAt(now store.Millis) store.State {
	switch e.state {
	case done:
		return store.StateDone
	case dead:
		return store.StateDead
	case expired:
		return store.StateExpired
	}
	return store.PendingState(e.due, now, e.attempt)
}

// found says what lies under an id.
type found byte

const (
	absent found = iota
	readable
	broken // something that is not an entry
)

// phase is the task's when nobody holds it.
func (e *entry) phase(f found) life.Phase {
	switch {
	case f == absent:
		return life.Absent
	case f == broken:
		return life.Unreadable
	case e.state == pending:
		return life.Pending
	case e.state == done:
		return life.Done
	}
	return life.Dead
}

// life is what the rules need to know of a task that nobody holds.
func (e *entry) life(f found) life.Task {
	return life.Task{Phase: e.phase(f), Token: e.token, Due: e.due, Expires: e.expires}
}

// attributes are those by which the task of an entry is in the index.
func (e *entry) attributes() []store.Attribute {
	if e.indexed == "" || e.unreadable {
		return nil
	}
	return record.BodyAttributes(e.body, e.indexed)
}

// says reports whether the header says something that whoever ends the task must know.
func (e *entry) says() bool { return e.indexed != "" || e.tells != "" }

// told is what the end of the task tells a cell, nil if there is none or the entry says more: an error
// may be written anew while the task is held, see rewriting.
func (e *entry) told() *told {
	if e.tells == "" || e.indexed != "" || e.lastError != "" {
		return nil
	}
	return &told{cell: e.tells, due: e.due}
}

// wasHeld stands in the place of the due time of a task that was held: before any other.
const wasHeld store.Millis = math.MinInt64

// place is where a task stands: in the line of a key, at a due time or wasHeld.
type place struct {
	key string
	at  store.Millis
}

// place is where a pending task stands, nil when it has no ordering key.
func (e *entry) place() *place {
	key := record.Ordering(e.traits())
	if key == "" {
		return nil
	}
	return &place{key: key, at: e.standsAt()}
}

// standsAt is where an entry stands among the tasks of its key.
func (e *entry) standsAt() store.Millis {
	if e.first {
		return wasHeld
	}
	return e.due
}

// indexes are those that an entry which is not held is in.
func (e *entry) indexes() []table {
	switch e.state {
	case pending:
		return []table{tablePending}
	case done:
		return []table{tableDone, tableTrim}
	}
	return []table{tableDead}
}

func (e *entry) isIn(index table) bool { return slices.Contains(e.indexes(), index) }

// timeIn is the time under which an entry is in an index.
func (e *entry) timeIn(index table) store.Millis {
	switch index {
	case tablePending:
		return e.due
	case tableTrim:
		return e.trim
	}
	return e.finished
}

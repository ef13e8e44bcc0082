package pebblestore

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// hold is one hold in memory. It does not change but by being replaced, so readers
// under the shard's lock may keep it.
type hold struct {
	id       string
	token    store.Token
	deadline store.Millis
	attempt  int
	by       string       // worker and node, see whoOf
	started  store.Millis // 0: not known

	cancelled bool // its cancellation was asked for

	// stamp is the one of the task's entry when it was held. Whatever ends the hold
	// deletes the entry or gives it another stamp: so a stored hold is over when its
	// task has another stamp or is gone, and acking need not delete it.
	stamp         uint64
	taskRewritten bool // the entry's rewritten, so that an ack need not read it
	taskHistory   bool // the entry's history, for the same reason
	taskSays      bool // the entry's says, for the same reason
	taskJournal   bool // the task has a journal, perhaps since it is held: its entry says so later

	told  *told  // what the entry says, if that is no more than what its end tells a cell; not stored: nil after a restart
	place *place // of the task in the line of its ordering key; nil: it has none

	group  *group
	serial uint64 // rises with every hold of the shard; not stored
	ended  bool
}

// told is what the end of a task tells a cell of its entry, which does not change while it is held.
type told struct {
	cell store.CellID
	due  store.Millis
}

// group are the holds that one batch began or extended. They are stored under one
// key, which is deleted when the last of them is over or has moved on to the group
// of an extension. One key for many holds is what makes holding cheap.
type group struct {
	number uint64 // of the batch; part of the key
	live   int
}

func (g *group) appendKey(b []byte, shard uint32) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(b, shard, tableHolds), g.number)
}

const (
	groupVersion = 2
	groupOld     = 1 // without when holds began
)

const (
	holdTaskRewritten = 1 << iota
	holdSameWorker    // as the one before
	holdStarted       // when is told
	holdSameStart     // as the one before
	holdCancelled
	holdTaskHistory
	holdTaskJournal
	holdTaskSays
)

// whoOf is who has a task: the worker's name, a byte that is in no name, and the node's.
func whoOf(worker, node string) string {
	if node == "" {
		return worker
	}
	return worker + whoMark + node
}

const whoMark = "\xff"

// who returns the names of the worker and the node.
func (h *hold) who() (worker, node string) {
	worker, node, _ = strings.Cut(h.by, whoMark)
	return worker, node
}

// appendGroup appends the stored form of a group.
func appendGroup(b []byte, begun, extended []*hold) []byte {
	b = append(b, groupVersion)
	last := new(hold)
	for _, part := range [...][]*hold{begun, extended} {
		for _, h := range part {
			b = h.append(b, last)
			last = h
		}
	}
	return b
}

// flags are those of a hold that is stored behind another one.
func (h *hold) flags(last *hold) (f byte) {
	set := func(bit byte, when bool) {
		if when {
			f |= bit
		}
	}
	set(holdTaskRewritten, h.taskRewritten)
	set(holdSameWorker, h.by == last.by)
	set(holdStarted, h.started != 0)
	set(holdSameStart, h.started == last.started)
	set(holdCancelled, h.cancelled)
	set(holdTaskHistory, h.taskHistory)
	set(holdTaskSays, h.taskSays)
	set(holdTaskJournal, h.taskJournal)
	return f
}

func (h *hold) append(b []byte, last *hold) []byte {
	flags := h.flags(last)
	b = append(b, flags)
	b = append(b, h.token[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.deadline))
	b = binary.AppendUvarint(b, uint64(h.attempt))
	b = binary.AppendUvarint(b, h.stamp)
	b = binary.AppendUvarint(b, uint64(len(h.id)))
	b = append(b, h.id...)
	if flags&holdSameWorker == 0 {
		b = binary.AppendUvarint(b, uint64(len(h.by)))
		b = append(b, h.by...)
	}
	if flags&holdStarted != 0 && flags&holdSameStart == 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(h.started))
	}
	return b
}

// decodeGroup reads the holds of a group.
func decodeGroup(b []byte) (hs []*hold, err error) {
	in := input{b: b}
	if v := in.byte(); v != groupVersion && v != groupOld {
		return nil, errors.New("decode holds: unknown version")
	}
	last := new(hold)
	for len(in.b) > 0 {
		h := &hold{}
		flags := in.byte()
		h.taskRewritten = flags&holdTaskRewritten != 0
		h.taskHistory = flags&holdTaskHistory != 0
		h.taskSays = flags&holdTaskSays != 0
		h.taskJournal = flags&holdTaskJournal != 0
		h.cancelled = flags&holdCancelled != 0
		copy(h.token[:], in.bytes(uint64(len(h.token))))
		h.deadline = store.Millis(in.uint64())
		h.attempt = int(in.uvarint())
		h.stamp = in.uvarint()
		h.id = string(in.bytes(in.uvarint()))
		if h.by = last.by; flags&holdSameWorker == 0 {
			h.by = string(in.bytes(in.uvarint()))
		}
		switch {
		case flags&holdStarted == 0:
		case flags&holdSameStart != 0:
			h.started = last.started
		default:
			h.started = store.Millis(in.uint64())
		}
		last = h
		hs = append(hs, h)
	}
	if in.short {
		return nil, errors.New("decode holds: malformed")
	}
	return hs, nil
}

// life is what the rules need to know of a task that is held.
func (h *hold) life() life.Task {
	return life.Task{Phase: life.Running, Token: h.token, Deadline: h.deadline}
}

func (h *hold) running() store.Running {
	worker, node := h.who()
	return store.Running{
		ID: h.id, Token: h.token, Deadline: h.deadline, Attempt: h.attempt, Worker: worker,
		Node: node, Started: h.started, Cancelled: h.cancelled,
	}
}

// holds are the holds of one shard. They are found by id, and walked in the order
// in which they began.
type holds struct {
	byID  map[string]*hold
	heads map[string]*hold // by ordering key: of a key one task is held at a time
	order []*hold          // by serial; those that ended stay until tidied
	next  uint64
}

func newHolds() holds { return holds{byID: make(map[string]*hold), heads: make(map[string]*hold)} }

func (hs *holds) get(id string) *hold { return hs.byID[id] }

func (hs *holds) len() int { return len(hs.byID) }

func (hs *holds) add(h *hold) {
	hs.next++
	h.serial = hs.next
	hs.put(h)
	hs.order = append(hs.order, h)
}

func (hs *holds) put(h *hold) {
	hs.byID[h.id] = h
	if h.place != nil {
		hs.heads[h.place.key] = h
	}
}

// replace puts h in the place of the hold of the same id.
func (hs *holds) replace(h *hold) {
	old := hs.byID[h.id]
	h.serial = old.serial
	hs.put(h)
	if i, found := hs.find(h.serial); found {
		hs.order[i] = h
	}
}

func (hs *holds) remove(h *hold) {
	h.ended = true
	delete(hs.byID, h.id)
	if h.place != nil {
		delete(hs.heads, h.place.key)
	}
	if len(hs.order) > 1024 && len(hs.order) > 4*len(hs.byID) {
		hs.order = slices.DeleteFunc(hs.order, func(h *hold) bool { return h.ended })
	}
}

// drop forgets all holds, but not the serials.
func (hs *holds) drop() {
	for _, h := range hs.byID {
		h.ended = true
	}
	hs.byID, hs.heads, hs.order = make(map[string]*hold), make(map[string]*hold), nil
}

func (hs *holds) find(serial uint64) (int, bool) {
	return slices.BinarySearchFunc(hs.order, serial, func(h *hold, serial uint64) int {
		switch {
		case h.serial < serial:
			return -1
		case h.serial > serial:
			return 1
		}
		return 0
	})
}

// after returns at most limit holds that began after the one of the serial, and
// whether there may be more.
func (hs *holds) after(serial uint64, limit int) (page []*hold, more bool) {
	i, _ := hs.find(serial + 1)
	for ; i < len(hs.order); i++ {
		if hs.order[i].ended {
			continue
		}
		if len(page) == limit {
			return page, true
		}
		page = append(page, hs.order[i])
	}
	return page, false
}

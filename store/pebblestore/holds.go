package pebblestore

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// hold is one hold, in memory and stored. A stored hold does not change but by
// extend, so readers under the shard's lock may keep it.
type hold struct {
	id       string
	token    store.Token
	deadline store.Millis
	attempt  int
	worker   string

	rewritten     bool // as entry.rewritten, of the hold's own key
	taskRewritten bool // the task's entry.rewritten, so that an ack need not read it

	serial uint64 // rises with every hold of the shard; not stored
	ended  bool
}

const holdVersion = 1

func (h *hold) append(b []byte) []byte {
	var flags byte
	if h.rewritten {
		flags |= 1
	}
	if h.taskRewritten {
		flags |= 2
	}
	b = append(b, holdVersion, flags)
	b = append(b, h.token[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(h.deadline))
	b = binary.AppendUvarint(b, uint64(h.attempt))
	return append(b, h.worker...)
}

func decodeHold(id string, b []byte) (*hold, error) {
	in := input{b: b}
	if version := in.byte(); version != holdVersion {
		return nil, fmt.Errorf("decode hold: unknown version %d", version)
	}
	h := &hold{id: id}
	flags := in.byte()
	h.rewritten, h.taskRewritten = flags&1 != 0, flags&2 != 0
	copy(h.token[:], in.bytes(uint64(len(h.token))))
	h.deadline = store.Millis(in.uint64())
	h.attempt = int(in.uvarint())
	h.worker = string(in.b)
	if in.short {
		return nil, fmt.Errorf("decode hold: malformed")
	}
	return h, nil
}

func (h *hold) running() store.Running {
	return store.Running{ID: h.id, Token: h.token, Deadline: h.deadline, Attempt: h.attempt, Worker: h.worker}
}

// holds are the holds of one shard. They are found by id, and walked in the order
// in which they began.
type holds struct {
	byID  map[string]*hold
	order []*hold // by serial; those that ended stay until tidied
	next  uint64
}

func newHolds() holds { return holds{byID: make(map[string]*hold)} }

func (hs *holds) get(id string) *hold { return hs.byID[id] }

func (hs *holds) len() int { return len(hs.byID) }

func (hs *holds) add(h *hold) {
	hs.next++
	h.serial = hs.next
	hs.byID[h.id] = h
	hs.order = append(hs.order, h)
}

// replace puts a changed copy in the place of a hold, which a reader may still use.
func (hs *holds) replace(h *hold) {
	old := hs.byID[h.id]
	h.serial = old.serial
	hs.byID[h.id] = h
	if i, found := hs.find(h.serial); found {
		hs.order[i] = h
	}
}

func (hs *holds) remove(h *hold) {
	h.ended = true
	delete(hs.byID, h.id)
	if len(hs.order) > 1024 && len(hs.order) > 4*len(hs.byID) {
		hs.order = slices.DeleteFunc(hs.order, func(h *hold) bool { return h.ended })
	}
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

package timer

import (
	"slices"
	"sync/atomic"
)

// Entry is a task that a queue knows of.
type Entry struct {
	ID  string
	Due int64 // Unix ms on the clock of the wheel
}

// Queue holds ids by due time, and is told by its wheel when a millisecond of
// them has come. It belongs to one goroutine: none of its methods may run
// concurrently with another. Cost a task: 24 bytes of entry, 11 to 21 of index
// and 4 to 8 of slot for an id that is a canonical UUID, and an id's own bytes on
// top for any other. An empty queue costs next to nothing.
//
// Invariants:
//   - every entry is in the index once, and in the slot of its due time
//   - no slot is empty, and the wheel knows of each, or has begun to notify
type Queue struct {
	wheel  *Wheel
	notify func(ms int64)
	shift  atomic.Int64 // see Shift; only the owner changes it

	seed   seed
	index  *index // nil until the first entry
	slab   slab
	slots  slotTable
	len    int
	closed bool
}

// NewQueue returns an empty queue. Once a slot of it is due by the wheel's
// clock, notify is called with the slot's millisecond, from a goroutine of the
// wheel; it must not block, and the queue's owner should then call Take. It may
// be called for a slot that has been emptied or taken meanwhile.
func (w *Wheel) NewQueue(notify func(ms int64)) *Queue {
	return &Queue{wheel: w, notify: notify, seed: newSeed()}
}

// Shift says how many ms the clock of the queue's due times is ahead of the wheel's.
// It is 0 at first. Every slot is armed anew, so it should not change often.
func (q *Queue) Shift(ms int64) {
	if q.closed || q.shift.Load() == ms {
		return
	}
	for due := range q.slots.byMs {
		q.wheel.leave(q, q.onWheel(due))
	}
	q.shift.Store(ms)
	for due := range q.slots.byMs {
		q.wheel.join(q, q.onWheel(due))
	}
}

// onWheel is a moment of the queue's clock on the wheel's.
func (q *Queue) onWheel(ms int64) int64 { return ms - q.shift.Load() }

// tell notifies the owner of a slot that is due by the wheel's clock. The shift may
// have changed since: then the owner looks too early, and is notified again.
func (q *Queue) tell(ms int64) { q.notify(ms + q.shift.Load()) }

// Len returns how many ids are in the queue.
func (q *Queue) Len() int { return q.len }

// At returns how many ids are due in a millisecond.
func (q *Queue) At(ms int64) int {
	if q.index == nil {
		return 0
	}
	if found := q.slots.find(ms); found != 0 {
		return q.slots.at(found).len
	}
	return 0
}

// Count adds up how many ids are due in each of the periods of so many ms that begin at
// from. It looks at each slot once.
func (q *Queue) Count(from, period int64, counts []int64) {
	for ms, found := range q.slots.byMs {
		if at := (ms - from) / period; ms >= from && at < int64(len(counts)) {
			counts[at] += int64(q.slots.at(found).len)
		}
	}
}

// Insert puts id in at its due time, in Unix ms, and tells whether it is new. A
// known id is moved, to the end of its new slot. What is past due already is
// notified at once. A closed queue takes nothing.
func (q *Queue) Insert(id string, due int64) bool {
	if q.closed {
		return false
	}
	q.ensure()
	k := keyOf(id)
	return q.insert(k, id, q.seed.hash(k, id), due)
}

// InsertAll is Insert for each entry, in order, and tells how many are new. It costs
// about half of what Insert costs one by one.
func (q *Queue) InsertAll(entries []Entry) (added int) {
	if q.closed || len(entries) == 0 {
		return 0
	}
	q.ensure()
	var keys [lookAhead]key
	var hashes [lookAhead]uint64
	for batch := range slices.Chunk(entries, lookAhead) {
		for i := range batch {
			keys[i] = keyOf(batch[i].ID)
			hashes[i] = q.seed.hash(keys[i], batch[i].ID)
		}
		q.index.touch(hashes[:len(batch)])
		q.slots.touch(batch)
		for i := range batch {
			if q.insert(keys[i], batch[i].ID, hashes[i], batch[i].Due) {
				added++
			}
		}
	}
	return added
}

// ensure makes room for the first entry.
func (q *Queue) ensure() {
	if q.index == nil {
		q.index, q.slots = new(index), newSlotTable()
	}
}

func (q *Queue) insert(k key, id string, hash uint64, due int64) bool {
	if r := q.find(k, id, hash); r != 0 {
		q.move(r, due)
		return false
	}
	r := q.slab.put(k, id)
	q.index.add(hash, r)
	q.link(r, due)
	q.len++
	return true
}

func (q *Queue) move(r ref, due int64) {
	if q.slots.at(q.slab.at(r).slot).ms == due {
		return
	}
	q.unlink(r)
	q.link(r, due)
}

// Remove takes id out and tells whether it was there.
func (q *Queue) Remove(id string) bool {
	k := keyOf(id)
	hash := q.seed.hash(k, id)
	r := q.find(k, id, hash)
	if r == 0 {
		return false
	}
	q.unlink(r)
	q.index.remove(hash, r)
	q.slab.drop(r)
	q.len--
	q.shrink()
	return true
}

// Due returns the due time of id, in Unix ms, and whether it is there.
func (q *Queue) Due(id string) (due int64, ok bool) {
	k := keyOf(id)
	r := q.find(k, id, q.seed.hash(k, id))
	if r == 0 {
		return 0, false
	}
	return q.slots.at(q.slab.at(r).slot).ms, true
}

// Take hands over a whole slot, in insertion order, and forgets it. It asks no
// clock: whoever takes a slot early has it early.
func (q *Queue) Take(ms int64) []Entry {
	found := q.slots.find(ms)
	if found == 0 {
		return nil
	}
	s := q.slots.at(found)
	h := handover{entries: make([]Entry, 0, s.len), len: s.len}
	for refs := range slices.Chunk(s.refs, len(h.hashes)) {
		q.handOver(&h, refs, ms)
	}
	q.len -= s.len
	q.forget(found)
	q.shrink()
	return h.entries
}

// handover is a Take under way.
type handover struct {
	entries []Entry
	len     int // of entries in the end
	ids     scribe
	hashes  [lookAhead]uint64
}

// lookAhead is how many entries' places in the index are looked at before any is
// used, for nothing but to have the processor fetch them all at once: waiting for
// one after the other would be most of the cost.
const lookAhead = 32

// handOver hands over some entries of a slot, at most lookAhead.
func (q *Queue) handOver(h *handover, refs []ref, ms int64) {
	for i, r := range refs {
		if r == 0 {
			continue
		}
		h.hashes[i] = q.seed.hash(q.slab.key(r))
	}
	q.index.touch(h.hashes[:len(refs)])
	for i, r := range refs {
		if r == 0 {
			continue
		}
		k, id := q.slab.key(r)
		q.index.remove(h.hashes[i], r)
		q.slab.drop(r)
		if !k.named {
			id = h.ids.id(k.hi, k.lo, h.len-len(h.entries))
		}
		h.entries = append(h.entries, Entry{ID: id, Due: ms})
	}
}

// Close forgets everything. A notify may still come and finds nothing. Twice
// is fine.
func (q *Queue) Close() {
	q.closed = true
	for ms := range q.slots.byMs {
		q.wheel.leave(q, q.onWheel(ms))
	}
	q.index, q.slab, q.slots, q.len = nil, slab{}, slotTable{}, 0
}

// find returns the entry of an id, or 0.
func (q *Queue) find(k key, id string, hash uint64) ref {
	if q.index == nil {
		return 0
	}
	s := q.index.segment(hash)
	if s.used == 0 {
		return 0
	}
	for i := s.home(uint32(hash)); s.cells[i] != 0; i = s.after(i) {
		if c := s.cells[i]; c.hash() == uint32(hash) && q.slab.holds(c.ref(), k, id) {
			return c.ref()
		}
	}
	return 0
}

// link appends an entry to the slot of its due time.
func (q *Queue) link(r ref, due int64) {
	found := q.slots.find(due)
	if found == 0 {
		found = q.slots.add(due)
		q.wheel.join(q, q.onWheel(due))
	}
	s, e := q.slots.at(found), q.slab.at(r)
	e.slot, e.at = found, uint32(len(s.refs))
	s.refs = append(s.refs, r)
	s.len++
}

// unlink takes an entry out of its slot, and the slot out when it was the last.
func (q *Queue) unlink(r ref) {
	e := q.slab.at(r)
	s := q.slots.at(e.slot)
	s.remove(e.at)
	switch {
	case s.len == 0:
		q.forget(e.slot)
	case s.gappy():
		s.close(func(r ref, at uint32) { q.slab.at(r).at = at })
	}
}

// forget takes a slot out, and tells the wheel.
func (q *Queue) forget(r slotRef) {
	q.wheel.leave(q, q.onWheel(q.slots.at(r).ms))
	q.slots.drop(r)
}

// shrink gives the memory of a large queue back once it is empty.
func (q *Queue) shrink() {
	if q.len == 0 && len(q.slab.chunks) > 1 {
		q.index, q.slab, q.slots = nil, slab{}, slotTable{}
	}
}

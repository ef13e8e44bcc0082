package timer

// Entry is a task that a queue knows of.
type Entry struct {
	ID  string
	Due int64 // Unix ms on the clock of the wheel
}

// Queue holds ids by due time, and is told by its wheel when a millisecond of
// them has come. It belongs to one goroutine: none of its methods may run
// concurrently with another. Cost a task: 32 bytes of entry and 11 to 21 of
// index for an id that is a canonical UUID, and an id's own bytes on top for
// any other.
//
// Invariants:
//   - every entry is in the index once, and in the slot of its due time
//   - a slot in slots is not empty, and the wheel knows that the queue has it,
//     or has begun to tell
type Queue struct {
	wheel  *Wheel
	notify func(ms int64)

	seed   seed
	index  *index
	slab   slab
	slots  map[int64]*slot // by due time
	recent struct {        // the slot linked to last: ids often come in the order of their due times
		ms   int64
		slot *slot // nil: none
	}
	len    int
	closed bool
}

// slot lists the entries of one millisecond in insertion order.
type slot struct {
	first, last ref
	len         uint32
}

// NewQueue returns an empty queue. Once a slot of it is due by the wheel's
// clock, notify is called with the slot's millisecond, from a goroutine of the
// wheel; it must not block, and the queue's owner should then call Take. It may
// be called for a slot that has been emptied or taken meanwhile.
func (w *Wheel) NewQueue(notify func(ms int64)) *Queue {
	return &Queue{wheel: w, notify: notify, seed: newSeed(), index: new(index), slots: map[int64]*slot{}}
}

// Len returns how many ids are in the queue.
func (q *Queue) Len() int { return q.len }

// Insert puts id in at its due time, in Unix ms, and tells whether it is new. A
// known id is moved, to the end of its new slot. What is past due already is
// notified at once. A closed queue takes nothing.
func (q *Queue) Insert(id string, due int64) bool {
	if q.closed {
		return false
	}
	k := keyOf(id)
	hash := q.seed.hash(&k)
	if r := q.find(&k, hash); r != 0 {
		q.move(r, due)
		return false
	}
	r := q.slab.put(&k, due)
	q.index.add(hash, r)
	q.link(r, due)
	q.len++
	return true
}

func (q *Queue) move(r ref, due int64) {
	e := q.slab.at(r)
	if e.due == due {
		return
	}
	q.unlink(r)
	e.due = due
	q.link(r, due)
}

// Remove takes id out and tells whether it was there.
func (q *Queue) Remove(id string) bool {
	k := keyOf(id)
	hash := q.seed.hash(&k)
	r := q.find(&k, hash)
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
	r := q.find(&k, q.seed.hash(&k))
	if r == 0 {
		return 0, false
	}
	return q.slab.at(r).due, true
}

// Take hands over a whole slot, in insertion order, and forgets it. It asks no
// clock: whoever takes a slot early has it early.
func (q *Queue) Take(ms int64) []Entry {
	s := q.slots[ms]
	if s == nil {
		return nil
	}
	q.forget(ms)
	entries := make([]Entry, 0, s.len)
	refs, hashes := q.hashed(s)
	var ids scribe
	for i, r := range refs {
		k := q.slab.key(r)
		q.index.remove(hashes[i], r)
		q.slab.drop(r)
		id := k.name
		if !k.named {
			id = ids.id(k.hi, k.lo, len(refs)-i)
		}
		entries = append(entries, Entry{ID: id, Due: ms})
	}
	q.len -= len(entries)
	q.shrink()
	return entries
}

// hashed returns the entries of a slot with their hashes. On the way it looks at
// each one's place in the index, for nothing but to have the processor fetch
// them all at once: waiting for one after the other is most of the cost of Take.
func (q *Queue) hashed(s *slot) ([]ref, []uint64) {
	refs, hashes := make([]ref, 0, s.len), make([]uint64, 0, s.len)
	for r := s.first; r != 0; r = q.slab.at(r).next {
		k := q.slab.key(r)
		refs, hashes = append(refs, r), append(hashes, q.seed.hash(&k))
	}
	for _, hash := range hashes {
		q.index.touch(hash)
	}
	return refs, hashes
}

// Close forgets everything. A notify may still come and finds nothing. Twice
// is fine.
func (q *Queue) Close() {
	q.closed = true
	for ms := range q.slots {
		q.wheel.leave(q, ms)
	}
	q.index, q.slab, q.slots, q.len = new(index), slab{}, nil, 0
	q.recent.slot = nil
}

// find returns the entry of k, or 0.
func (q *Queue) find(k *key, hash uint64) ref {
	s := q.index.segment(hash)
	if s.used == 0 {
		return 0
	}
	for i := s.home(uint32(hash)); s.cells[i] != 0; i = s.after(i) {
		if c := s.cells[i]; c.hash() == uint32(hash) && q.slab.holds(c.ref(), k) {
			return c.ref()
		}
	}
	return 0
}

// link appends an entry to the slot of its due time.
func (q *Queue) link(r ref, due int64) {
	e := q.slab.at(r)
	s := q.slot(due)
	if s == nil {
		s = &slot{first: r, last: r, len: 1}
		q.slots[due] = s
		e.prev, e.next = 0, 0
		q.wheel.join(q, due)
		return
	}
	e.prev, e.next = s.last, 0
	q.slab.at(s.last).next = r
	s.last = r
	s.len++
}

// slot returns the slot of a due time, or nil.
func (q *Queue) slot(due int64) *slot {
	if q.recent.slot != nil && q.recent.ms == due {
		return q.recent.slot
	}
	s := q.slots[due]
	q.recent.ms, q.recent.slot = due, s
	return s
}

// forget takes a slot out, and tells the wheel.
func (q *Queue) forget(ms int64) {
	delete(q.slots, ms)
	q.recent.slot = nil
	q.wheel.leave(q, ms)
}

// unlink takes an entry out of its slot, and the queue out of an emptied slot.
func (q *Queue) unlink(r ref) {
	e := q.slab.at(r)
	s := q.slots[e.due]
	if s.len--; s.len == 0 {
		q.forget(e.due)
		return
	}
	if e.prev == 0 {
		s.first = e.next
	} else {
		q.slab.at(e.prev).next = e.next
	}
	if e.next == 0 {
		s.last = e.prev
	} else {
		q.slab.at(e.next).prev = e.prev
	}
}

// shrink gives the memory of a large queue back once it is empty.
func (q *Queue) shrink() {
	if q.len == 0 && len(q.slab.chunks) > 1 {
		q.index, q.slab, q.slots = new(index), slab{}, map[int64]*slot{}
	}
}

package timer

// slotRef is the number of a slot in a slotTable, from 1. 0 is none.
type slotRef uint32

// slot lists the entries of one millisecond in insertion order.
//
// Invariants:
//   - a removed entry leaves a 0 in refs, and no more than half are such gaps
//     where there are many
//   - the last of refs is no gap
type slot struct {
	ms   int64
	refs []ref
	len  int // entries: refs without the gaps
}

// slotTable keeps the slots of a queue by their millisecond, and reuses them.
type slotTable struct {
	byMs   map[int64]slotRef
	slots  []slot // slot r is at r-1
	free   []slotRef
	recent slotRef // found last: ids often come in the order of their due times
}

func newSlotTable() slotTable { return slotTable{byMs: map[int64]slotRef{}} }

func (t *slotTable) at(r slotRef) *slot { return &t.slots[r-1] }

// find returns the slot of a millisecond, or 0.
func (t *slotTable) find(ms int64) slotRef {
	if t.recent != 0 && t.at(t.recent).ms == ms {
		return t.recent
	}
	r := t.byMs[ms]
	t.recent = r
	return r
}

// touch looks at the slots that entries go to, see index.touch.
//
//go:noinline
func (t *slotTable) touch(entries []Entry) (used int) {
	var found [lookAhead]slotRef
	for i := range entries {
		if i == 0 || entries[i].Due != entries[i-1].Due {
			found[i] = t.byMs[entries[i].Due]
		}
	}
	for _, r := range found[:len(entries)] {
		if r != 0 {
			refs := t.at(r).refs
			used += int(refs[len(refs)-1])
		}
	}
	return used
}

// add returns a new, empty slot for a millisecond that has none.
func (t *slotTable) add(ms int64) slotRef {
	var r slotRef
	if last := len(t.free) - 1; last >= 0 {
		r, t.free = t.free[last], t.free[:last]
	} else {
		t.slots = append(t.slots, slot{})
		r = slotRef(len(t.slots))
	}
	t.at(r).ms = ms
	t.byMs[ms], t.recent = r, r
	return r
}

// keepRefs is how many places of an emptied slot are kept for its next use.
const keepRefs = 256

// drop forgets a slot and what is in it.
func (t *slotTable) drop(r slotRef) {
	s := t.at(r)
	delete(t.byMs, s.ms)
	s.refs, s.len = s.refs[:0], 0
	if cap(s.refs) > keepRefs {
		s.refs = nil
	}
	t.free = append(t.free, r)
	t.recent = 0
}

// remove leaves a gap at a place.
func (s *slot) remove(at uint32) {
	s.refs[at] = 0
	s.len--
	for last := len(s.refs) - 1; last >= 0 && s.refs[last] == 0; last-- {
		s.refs = s.refs[:last]
	}
}

// gappy tells whether closing the gaps is worth its cost by now.
func (s *slot) gappy() bool { return len(s.refs) > 2*s.len+16 }

// close closes the gaps, and tells each entry its new place.
func (s *slot) close(moved func(r ref, at uint32)) {
	kept := s.refs[:0]
	for _, r := range s.refs {
		if r != 0 {
			moved(r, uint32(len(kept)))
			kept = append(kept, r)
		}
	}
	s.refs = kept
}

package timer

// index finds entries by the hash of their id. It is an open-addressing table
// of cells, split by the hash into segments that grow one by one: so growing
// an index of a million ids never stops its actor for longer than it takes to
// move one segment, and it never looks at the entries while moving.
type index struct {
	segments [segments]segment
}

// segments is a power of two; the top bits of a hash choose one.
const (
	segmentBits = 6
	segments    = 1 << segmentBits
)

// cell is the low half of a hash, and a ref. An empty cell is 0.
type cell uint64

func newCell(hash uint64, r ref) cell { return cell(hash<<32 | uint64(r)) }

func (c cell) hash() uint32 { return uint32(c >> 32) }
func (c cell) ref() ref     { return ref(c) }

// segment is a table with linear probing.
//
// Invariants:
//   - the number of cells is a power of two, or none
//   - at least a quarter of them is empty
//   - no empty cell lies between a used one and the home of its hash
type segment struct {
	cells []cell
	used  int
}

func (x *index) segment(hash uint64) *segment {
	return &x.segments[hash>>(64-segmentBits)]
}

// add puts r in; its id must not be there yet.
func (x *index) add(hash uint64, r ref) {
	s := x.segment(hash)
	if 4*(s.used+1) > 3*len(s.cells) {
		s.grow()
	}
	s.place(newCell(hash, r))
	s.used++
}

// remove takes out r, which must be there.
func (x *index) remove(hash uint64, r ref) {
	s := x.segment(hash)
	c, i := newCell(hash, r), s.home(uint32(hash))
	for s.cells[i] != c {
		i = s.after(i)
	}
	s.clear(i)
	s.used--
}

// touch looks at the homes of hashes. It tells nothing worth knowing, but must
// not be optimized away.
//
//go:noinline
func (x *index) touch(hashes []uint64) (used int) {
	for _, hash := range hashes {
		if s := x.segment(hash); len(s.cells) > 0 {
			used += int(s.cells[s.home(uint32(hash))] & 1)
		}
	}
	return used
}

func (s *segment) home(hash uint32) uint32 { return hash & s.mask() }
func (s *segment) after(i uint32) uint32   { return (i + 1) & s.mask() }
func (s *segment) mask() uint32            { return uint32(len(s.cells) - 1) }

func (s *segment) place(c cell) {
	i := s.home(c.hash())
	for s.cells[i] != 0 {
		i = s.after(i)
	}
	s.cells[i] = c
}

func (s *segment) grow() {
	old := s.cells
	s.cells = make([]cell, max(8, 2*len(old)))
	for _, c := range old {
		if c != 0 {
			s.place(c)
		}
	}
}

// clear empties cell i and moves later ones back over the gap, so that every
// cell can still be reached from its home.
func (s *segment) clear(i uint32) {
	for j := s.after(i); s.cells[j] != 0; j = s.after(j) {
		home := s.home(s.cells[j].hash())
		if (j-home)&s.mask() < (j-i)&s.mask() {
			continue // its home lies behind the gap: it must stay
		}
		s.cells[i], i = s.cells[j], j
	}
	s.cells[i] = 0
}

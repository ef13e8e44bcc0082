package timer

// ref is the number of an entry in a slab, from 1. 0 is none.
type ref uint32

// entry is one task of a queue: 24 bytes, no pointers, so that a collection of
// millions costs the garbage collector nothing.
type entry struct {
	hi, lo uint64  // the packed UUID; lo is the place in names when named
	slot   slotRef // where it is, or the next in the free list
	at     uint32  // its place in the slot
}

// chunkLen is how many entries a chunk has. Growing by chunks never copies.
const chunkLen = 256

// chunk holds entries, and which of them have a name instead of a UUID.
type chunk struct {
	entries [chunkLen]entry
	named   [chunkLen / 64]uint64
}

// slab keeps the entries of a queue in chunks, and reuses freed ones.
type slab struct {
	chunks    []*chunk
	used      ref // entries ever handed out: 1..used
	free      ref // head of the free list
	names     []string
	freeNames []uint64
}

func (s *slab) at(r ref) *entry {
	return &s.chunks[(r-1)/chunkLen].entries[(r-1)%chunkLen]
}

func (s *slab) isNamed(r ref) bool {
	i := (r - 1) % chunkLen
	return s.chunks[(r-1)/chunkLen].named[i/64]>>(i%64)&1 == 1
}

func (s *slab) setNamed(r ref, named bool) {
	i := (r - 1) % chunkLen
	word := &s.chunks[(r-1)/chunkLen].named[i/64]
	*word &^= 1 << (i % 64)
	if named {
		*word |= 1 << (i % 64)
	}
}

// put stores an id in an entry that is in no slot yet, and returns it.
func (s *slab) put(k key, id string) ref {
	r := s.take()
	e := s.at(r)
	e.hi, e.lo = k.hi, k.lo
	if k.named {
		e.lo = s.putName(id)
		s.setNamed(r, true)
	}
	return r
}

// take returns a free entry whose named mark is clear.
func (s *slab) take() ref {
	if r := s.free; r != 0 {
		s.free = ref(s.at(r).slot)
		return r
	}
	if int(s.used) == len(s.chunks)*chunkLen {
		s.chunks = append(s.chunks, new(chunk))
	}
	s.used++
	return s.used
}

func (s *slab) putName(name string) uint64 {
	if n := len(s.freeNames); n > 0 {
		at := s.freeNames[n-1]
		s.freeNames = s.freeNames[:n-1]
		s.names[at] = name
		return at
	}
	s.names = append(s.names, name)
	return uint64(len(s.names) - 1)
}

// drop frees an entry and forgets its name.
func (s *slab) drop(r ref) {
	e := s.at(r)
	if s.isNamed(r) {
		s.names[e.lo] = ""
		s.freeNames = append(s.freeNames, e.lo)
		s.setNamed(r, false)
	}
	e.slot, s.free = slotRef(s.free), r
}

// holds tells whether the entry is that of an id.
func (s *slab) holds(r ref, k key, id string) bool {
	e := s.at(r)
	if k.named {
		return s.isNamed(r) && s.names[e.lo] == id
	}
	return e.hi == k.hi && e.lo == k.lo && !s.isNamed(r)
}

// key returns what put was given; the id only when it is named.
func (s *slab) key(r ref) (k key, id string) {
	e := s.at(r)
	if s.isNamed(r) {
		return key{named: true}, s.names[e.lo]
	}
	return key{hi: e.hi, lo: e.lo}, ""
}

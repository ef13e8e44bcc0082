package timer

// stretchLen is how many slots share a timer of the library: a goroutine that
// the library has woken for one walks to the others by itself, which is exact
// and costs half of being woken again.
const (
	stretchBits = 4
	stretchLen  = 1 << stretchBits
)

// registry says which queues have entries in which millisecond, for the whole
// node. It has no clock and no lock: Wheel.mu guards it.
type registry struct {
	perPage int64 // stretches in a page
	pages   map[int64]*page
}

// page is some seconds of stretches. Those of a near page are armed, those of
// another wait until it is near.
type page struct {
	near      bool
	stretches map[int64]*stretch
}

// stretch is some milliseconds in a row. It stays as long as an arm is out,
// even when all queues have left: its timer fires once and finds nothing.
type stretch struct {
	arm   uint64 // the arm that may fire it, older ones are stale; 0: none is out
	next  int64  // the slot that this arm looks at next
	used  int    // slots that have queues
	slots [stretchLen][]*Queue
}

// dueSlot is a slot that has been taken out to be notified.
type dueSlot struct {
	ms     int64
	queues []*Queue
}

// newRegistry returns an empty registry for a turn of so many milliseconds.
func newRegistry(turn int64) registry {
	return registry{perPage: turn / pagesPerTurn / stretchLen, pages: map[int64]*page{}}
}

func stretchOf(ms int64) int64 { return ms >> stretchBits }

// pageOf returns the page of stretch n.
func (r *registry) pageOf(n int64) int64 { return n / r.perPage }

// find returns stretch n and its page, or nil.
func (r *registry) find(n int64) (*page, *stretch) {
	p := r.pages[r.pageOf(n)]
	if p == nil {
		return nil, nil
	}
	return p, p.stretches[n]
}

// forget takes stretch n out, and its page if that was the last.
func (r *registry) forget(n int64) {
	at := r.pageOf(n)
	p := r.pages[at]
	delete(p.stretches, n)
	if len(p.stretches) == 0 {
		delete(r.pages, at)
	}
}

func (s *stretch) add(ms int64, q *Queue) {
	slot := &s.slots[ms&(stretchLen-1)]
	if len(*slot) == 0 {
		s.used++
	}
	*slot = append(*slot, q)
}

func (s *stretch) drop(ms int64, q *Queue) {
	slot := &s.slots[ms&(stretchLen-1)]
	queues := *slot
	for i, other := range queues {
		if other != q {
			continue
		}
		last := len(queues) - 1
		queues[i], queues[last] = queues[last], nil
		if *slot = queues[:last]; last == 0 {
			s.used--
		}
		return
	}
}

// first returns the first slot of stretch n that has queues.
func (s *stretch) first(n int64) (ms int64, ok bool) {
	for i, queues := range s.slots {
		if len(queues) > 0 {
			return n<<stretchBits + int64(i), true
		}
	}
	return 0, false
}

// takeDue takes out every slot of stretch n that is due at now, in Unix ms.
func (s *stretch) takeDue(n, now int64) (due []dueSlot) {
	for i, queues := range s.slots {
		ms := n<<stretchBits + int64(i)
		if ms > now {
			break
		}
		if len(queues) > 0 {
			due = append(due, dueSlot{ms, queues})
			s.slots[i] = nil
			s.used--
		}
	}
	return due
}

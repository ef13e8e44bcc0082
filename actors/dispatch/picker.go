package dispatch

import (
	"cmp"
	"container/heap"

	"github.com/ddq-io/ddq/store"
)

// picker says which of the open groups has the next task. Of lanes:
//
//   - the one of the highest priority goes first;
//   - those of one priority take turns by what they had, each by its weight;
//   - one task in every is the one that has been due for longest, whatever its lane.
//
// A task that was picked and did not go gives its turn back.
type picker struct {
	every  int // see store.Topic.PriorityAgeing
	taken  int // since the longest due was
	levels [store.MaxPriority + 1]laneLevel
	oldest laneHeap
}

// lane has the open groups of one priority and fairness key.
type lane struct {
	groups groupHeap
	level  *laneLevel
	weight int
	had    float64 // what it had, by its weight
	refs   int     // groups, wherever they are
	turn   int     // place in the heap of its level, from 1
	age    int     // place in oldest, from 1
}

// laneLevel has the lanes of one priority that have open groups, the one whose turn it is on top.
type laneLevel struct {
	lanes laneHeap
	had   float64 // of the lane whose turn was last: one that comes has no more to catch up with
}

// laneHeap is a heap of lanes by turn, or by age.
type laneHeap struct {
	lanes []*lane
	byAge bool
}

func (h *laneHeap) Len() int { return len(h.lanes) }

func (h *laneHeap) Less(i, j int) bool {
	a, b := h.lanes[i], h.lanes[j]
	due := a.groups[0].first().compare(*b.groups[0].first())
	key := a.groups[0].groupKey.lane.Compare(b.groups[0].groupKey.lane)
	if h.byAge {
		return cmp.Or(due, -key) < 0
	}
	return cmp.Or(cmp.Compare(a.had, b.had), due, key) < 0
}

func (h *laneHeap) Swap(i, j int) {
	h.lanes[i], h.lanes[j] = h.lanes[j], h.lanes[i]
	*h.place(i), *h.place(j) = i+1, j+1
}

func (h *laneHeap) place(i int) *int {
	if h.byAge {
		return &h.lanes[i].age
	}
	return &h.lanes[i].turn
}

// Push is for heap only, as is Pop.
func (h *laneHeap) Push(x any) {
	h.lanes = append(h.lanes, x.(*lane))
	*h.place(len(h.lanes) - 1) = len(h.lanes)
}

// Pop takes the last one.
func (h *laneHeap) Pop() any {
	last := len(h.lanes) - 1
	l := h.lanes[last]
	*h.place(last) = 0
	h.lanes[last], h.lanes = nil, h.lanes[:last]
	return l
}

func newPicker(every int) picker { return picker{every: every, oldest: laneHeap{byAge: true}} }

// lane returns a new lane.
func (p *picker) lane(of store.Lane) *lane {
	return &lane{level: &p.levels[of.Priority], weight: 1}
}

// add opens a group that is not empty.
func (p *picker) add(g *group) {
	g.lane.groups.add(g)
	p.changed(g.lane)
}

// remove takes an open group out.
func (p *picker) remove(g *group) {
	g.lane.groups.remove(g)
	p.changed(g.lane)
}

// headChanged is called when an open group has another head.
func (p *picker) headChanged(g *group) {
	g.lane.groups.fix(g)
	p.changed(g.lane)
}

// changed puts a lane where it belongs. Its groups may be none for a moment.
func (p *picker) changed(l *lane) {
	switch {
	case len(l.groups) == 0 && l.turn > 0:
		p.out(l)
	case len(l.groups) == 0:
	case l.turn > 0:
		heap.Fix(&l.level.lanes, l.turn-1)
		heap.Fix(&p.oldest, l.age-1)
	default:
		l.had = max(l.had, l.level.had)
		heap.Push(&l.level.lanes, l)
		heap.Push(&p.oldest, l)
	}
}

func (p *picker) out(l *lane) {
	removeLane(&l.level.lanes, l.turn-1)
	removeLane(&p.oldest, l.age-1)
}

// removeLane takes out a lane that has no groups, and cannot be compared.
func removeLane(h *laneHeap, i int) {
	last := h.Len() - 1
	h.Swap(i, last)
	h.Pop()
	if i < last {
		heap.Fix(h, i)
	}
}

// next is the group whose head goes next, nil for none.
func (p *picker) next() *group {
	if p.oldest.Len() == 0 {
		return nil
	}
	if p.taken+1 >= p.every {
		return p.oldest.lanes[0].groups[0]
	}
	at := len(p.levels) - 1
	for p.levels[at].lanes.Len() == 0 {
		at--
	}
	return p.levels[at].lanes.lanes[0].groups[0]
}

// took records that a task of a lane goes.
func (p *picker) took(l *lane) {
	if p.taken++; p.taken >= p.every {
		p.taken = 0
	} else {
		l.level.had = max(l.level.had, l.had)
	}
	l.had += 1 / float64(max(1, l.weight))
	p.changed(l)
}

// gaveBack records that it did not.
func (p *picker) gaveBack(l *lane) {
	p.taken = max(0, p.taken-1)
	l.had -= 1 / float64(max(1, l.weight))
	p.changed(l)
}

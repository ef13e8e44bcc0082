package dispatch

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// groupKey is what tasks of one group have in common: keys that no limit applies to are empty.
type groupKey struct {
	lane      store.Lane
	rate, cap string
}

func (k groupKey) compare(o groupKey) int {
	return cmp.Or(k.lane.Compare(o.lane), cmp.Compare(k.rate, o.rate), cmp.Compare(k.cap, o.cap))
}

// group is the ready tasks of a lane that need the same, in order: only its head is looked at. It is
// open, or parked at the one of its keys that it lacks, or empty while its tasks are asked for.
type group struct {
	queue
	groupKey
	lane   *lane
	keys   [2]*limitKey // of its rate key and its concurrency key; nil: none
	parked *limitKey    // where it is; nil: it is open, or empty
	open   bool
	place  int // in the heap that it is in, from 1; 0: in none
	asked  int // tasks that are not in it and may come back
	picked int // tasks, while wants are picked

	turnsAt store.Millis // what is due then has had turns
	turns   int
}

// shut is the first of its keys that has nothing for it.
func (g *group) shut() *limitKey {
	for _, k := range g.keys {
		if k != nil && k.closed {
			return k
		}
	}
	return nil
}

func (g *group) first() *readyTask { return &g.tasks[g.head] }

// had is how many of what is due with its head were taken. Of groups that are due together the one that had the fewest goes next.
func (g *group) had() int {
	if g.turnsAt != g.first().Due {
		return 0
	}
	return g.turns
}

// pop takes out the head.
func (g *group) pop() readyTask {
	t := *g.first()
	g.turns, g.turnsAt = g.had()+1, t.Due
	g.head++
	g.compact()
	return t
}

// unpop puts back a task that was popped, before those that are not due before it. It has not had its turn.
func (g *group) unpop(t readyTask) {
	if g.turnsAt == t.Due {
		g.turns = max(0, g.turns-1)
	}
	at, _ := slices.BinarySearchFunc(g.tasks[g.head:], t, readyTask.compare)
	if at == 0 && g.head > 0 {
		g.head--
		g.tasks[g.head] = t
		return
	}
	g.tasks = slices.Insert(g.tasks, g.head+at, t)
}

// remove takes out one task.
func (g *group) remove(id taskID) {
	g.tasks = slices.DeleteFunc(g.tasks[g.head:], func(t readyTask) bool { return t.Shard == id.shard && t.ID == id.id })
	g.head = 0
}

// groupHeap has groups that are not empty, the one that goes next on top: that of the highest priority,
// then the one that is due first, and of these the one that had the fewest. In a lane the priority is the same.
type groupHeap []*group

func (h groupHeap) Len() int { return len(h) }

func (h groupHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if first := cmp.Or(cmp.Compare(b.groupKey.lane.Priority, a.groupKey.lane.Priority), a.first().compare(*b.first())); first != 0 {
		return first < 0
	}
	return cmp.Or(cmp.Compare(a.had(), b.had()), a.compare(b.groupKey)) < 0
}

func (h groupHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

// Push is for heap only, as is Pop.
func (h *groupHeap) Push(x any) {
	*h = append(*h, x.(*group))
	x.(*group).place = len(*h)
}

// Pop takes the last one.
func (h *groupHeap) Pop() any {
	last := len(*h) - 1
	g := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	g.place = 0
	return g
}

func (h *groupHeap) add(g *group)    { heap.Push(h, g) }
func (h *groupHeap) remove(g *group) { heap.Remove(h, g.place-1) }
func (h *groupHeap) fix(g *group)    { heap.Fix(h, g.place-1) }

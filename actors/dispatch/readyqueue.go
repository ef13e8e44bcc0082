package dispatch

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/store"
)

// readyQueue is where ready tasks wait for a worker, and the one place that says which is
// next. Tasks of one lane are in order of due time; equal ones stay in order of
// arrival. Of lanes:
//
//   - the one of the highest priority goes first;
//   - those of one priority take turns, each with as many tasks as it weighs;
//   - one task in every is the one that has been due for longest, whatever its lane.
//
// So nothing starves: of any n*every tasks in a row, n are the longest due.
type readyQueue struct {
	every int // see store.Topic.PriorityAgeing

	plain   queue // the zero lane
	lanes   map[store.Lane]*queue
	levels  [store.MaxPriority + 1]level
	longest byHead // queues that are not empty, when there are lanes
	n       int    // tasks
	taken   int    // since the longest due was
	scratch []readyTask
}

// queue has the ready tasks of one lane.
type queue struct {
	lane   store.Lane
	tasks  []readyTask // in order of readyTask.compare, from head on
	head   int
	weight int // that of the task that came last
	at     int // place in longest, from 1; 0: not there
}

// level has the queues of one priority that are not empty, in turn order.
type level struct {
	queues []*queue
	turn   int // index of the one whose turn it is
	served int // tasks that it had in this turn
}

func (q *queue) len() int { return len(q.tasks) - q.head }

// Waiting is the number of ready tasks.
func (l *readyQueue) Waiting() int { return l.n }

// add adds tasks of one shard.
func (l *readyQueue) add(fresh []readyTask) {
	l.n += len(fresh)
	if l.lanes == nil && !slices.ContainsFunc(fresh, readyTask.laned) {
		slices.SortStableFunc(fresh, readyTask.compare)
		l.plain.merge(fresh)
		return
	}
	if l.lanes == nil {
		l.lanes = make(map[store.Lane]*queue)
		l.joined(&l.plain)
	}
	slices.SortStableFunc(fresh, compareInLanes)
	for len(fresh) > 0 {
		lane, n := fresh[0].Traits.Lane(), 1
		for n < len(fresh) && fresh[n].Traits.Lane() == lane {
			n++
		}
		q := l.queue(lane)
		q.merge(fresh[:n])
		if t := fresh[n-1].Traits; t != nil {
			q.weight = t.FairnessWeight
		}
		l.joined(q)
		fresh = fresh[n:]
	}
}

// compareInLanes puts tasks of one lane together, each lane in order.
func compareInLanes(a, b readyTask) int {
	if c := a.Traits.Lane().Compare(b.Traits.Lane()); c != 0 {
		return c
	}
	return a.compare(b)
}

func (a readyTask) laned() bool { return a.Traits.Lane() != store.Lane{} }

func (l *readyQueue) queue(lane store.Lane) *queue {
	if lane == (store.Lane{}) {
		return &l.plain
	}
	q := l.lanes[lane]
	if q == nil {
		q = &queue{lane: lane}
		l.lanes[lane] = q
	}
	return q
}

// joined records that a queue has got tasks.
func (l *readyQueue) joined(q *queue) {
	switch {
	case q.len() == 0:
	case q.at > 0:
		heap.Fix(&l.longest, q.at-1)
	default:
		heap.Push(&l.longest, q)
		level := &l.levels[q.lane.Priority]
		level.queues = append(level.queues, q)
	}
}

// take returns the next n tasks. They are valid until the next call.
func (l *readyQueue) take(n int) []readyTask {
	n = min(n, l.n)
	l.n -= n
	if l.lanes == nil {
		tasks := l.plain.tasks[l.plain.head : l.plain.head+n]
		l.plain.head += n
		return tasks
	}
	l.scratch = l.scratch[:0]
	for range n {
		q := l.next()
		l.scratch = append(l.scratch, q.tasks[q.head])
		q.head++
		l.left(q)
	}
	l.tidy()
	return l.scratch
}

// next picks the queue that the next task is of.
func (l *readyQueue) next() *queue {
	if l.taken++; l.taken >= l.every {
		l.taken = 0
		return l.longest[0]
	}
	at := len(l.levels) - 1
	for len(l.levels[at].queues) == 0 {
		at--
	}
	level := &l.levels[at]
	q := level.queues[level.turn]
	if level.served++; level.served >= q.weight {
		level.served = 0
		level.turn = (level.turn + 1) % len(level.queues)
	}
	return q
}

// left records that tasks of a queue are gone.
func (l *readyQueue) left(q *queue) {
	switch {
	case q.at == 0:
	case q.len() > 0:
		heap.Fix(&l.longest, q.at-1)
	default:
		l.out(q)
		delete(l.lanes, q.lane)
	}
	q.compact()
}

func (l *readyQueue) out(q *queue) {
	heap.Remove(&l.longest, q.at-1)
	l.levels[q.lane.Priority].remove(q)
}

// tidy goes back to the short way once only tasks of the zero lane are left.
func (l *readyQueue) tidy() {
	if l.lanes == nil || len(l.lanes) > 0 {
		return
	}
	if l.plain.at > 0 {
		l.out(&l.plain)
	}
	l.lanes, l.taken = nil, 0
}

func (v *level) remove(q *queue) {
	i := slices.Index(v.queues, q)
	v.queues = slices.Delete(v.queues, i, i+1)
	switch {
	case i < v.turn:
		v.turn--
	case i == v.turn:
		v.served = 0
	}
	if v.turn >= len(v.queues) {
		v.turn = 0
	}
}

// Drop forgets the tasks of a shard.
func (l *readyQueue) Drop(shard int) {
	of := func(t readyTask) bool { return t.Shard == shard }
	for _, q := range append(l.queues(), &l.plain) {
		q.tasks = slices.DeleteFunc(q.tasks[q.head:], of)
		q.head = 0
		l.left(q)
	}
	l.n = l.plain.len()
	for _, q := range l.lanes {
		l.n += q.len()
	}
	l.tidy()
}

// queues are those of lanes, in order.
func (l *readyQueue) queues() (all []*queue) {
	for _, q := range ordered.All(l.lanes, store.Lane.Compare) {
		all = append(all, q)
	}
	return all
}

// compact frees what was handed out once it is most of the slices.
func (l *readyQueue) compact() { l.plain.compact() }

// merge puts a sorted batch in its place. Due times mostly rise, so it is
// usually the end.
func (q *queue) merge(fresh []readyTask) {
	for len(fresh) > 0 {
		last := len(q.tasks) - 1
		if last < q.head || q.tasks[last].compare(fresh[0]) <= 0 {
			q.tasks = append(q.tasks, fresh...)
			return
		}
		at, _ := slices.BinarySearchFunc(q.tasks[q.head:], fresh[0], func(a, b readyTask) int {
			if a.compare(b) <= 0 {
				return -1
			}
			return 1
		})
		at += q.head
		n := 1
		for n < len(fresh) && fresh[n].compare(q.tasks[at]) < 0 {
			n++
		}
		q.tasks = slices.Insert(q.tasks, at, fresh[:n]...)
		fresh = fresh[n:]
	}
}

func (q *queue) compact() {
	switch {
	case q.head == len(q.tasks):
		q.tasks, q.head = q.tasks[:0], 0
		if cap(q.tasks) > 65536 {
			q.tasks = nil
		}
	case q.head > 4096 && q.head > len(q.tasks)/2:
		n := copy(q.tasks, q.tasks[q.head:])
		clear(q.tasks[n:])
		q.tasks, q.head = q.tasks[:n], 0
	}
}

// byHead is a heap of queues, the one whose first task is due for longest on top; of
// equal ones that of the lowest priority.
type byHead []*queue

func (h byHead) Len() int { return len(h) }

func (h byHead) Less(i, j int) bool {
	a, b := h[i], h[j]
	return cmp.Or(a.tasks[a.head].compare(b.tasks[b.head]), b.lane.Compare(a.lane)) < 0
}

func (h byHead) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i+1, j+1
}

// Push implements heap.Interface.
func (h *byHead) Push(q any) {
	*h = append(*h, q.(*queue))
	q.(*queue).at = len(*h)
}

// Pop implements heap.Interface.
func (h *byHead) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	q.at = 0
	*h = (*h)[:last]
	return q
}

package pebblestore

import (
	"math"

	"github.com/ddq-io/ddq/store"
)

// effects are what writing a batch does to what is in memory of its shard.
type effects struct {
	begun, extended, ended []*hold

	pending, done, dead int64 // differences
	becamePending       bool

	owner    *owner            // the next one
	life     *store.ShardLife  // the next one
	indexed  *store.IndexState // the next one
	watching *store.Watching   // the next one
	trimmed  int64             // the log is forgotten up to here

	due     []dueChange
	recents []recent

	cells, wakes   int64   // differences
	in, out, taken int64   // how many parcels come to the boxes, and are taken from the in-box
	left           []int64 // parcels that leave the out-box
	newer          bool    // something is stored that programs of before do not know

	queues queueEffects

	opened  bool // it is not sealed any more
	sealed  bool // no new task from here on
	dropped bool // nothing but the owner is left
}

// queueEffects are those of outbox queues and receipts.
type queueEffects struct {
	sent     int64           // number of the last message that is sent; 0: none
	queued   int64           // difference of messages
	finished map[string]bool // keys of messages that are forgotten
	stored   bool            // there is a receipt, or a message
}

func (x *effects) begin(h *hold) { x.begun = append(x.begun, h) }

func (x *effects) extend(h *hold) { x.extended = append(x.extended, h) }

func (x *effects) end(h *hold) { x.ended = append(x.ended, h) }

// holds reports whether a hold begins, changes or ends.
func (x *effects) holds() bool { return len(x.begun)+len(x.extended)+len(x.ended) > 0 }

// layout is the version of the layout that what is stored needs.
func (x *effects) layout() byte {
	switch {
	case x.queues.stored:
		return layoutQueues
	case x.newer:
		return layoutCells
	}
	return layoutFirst
}

// count changes the numbers of a shard.
func (x *effects) count(m *meta) {
	m.batches++
	m.pending += x.pending
	m.done += x.done
	m.dead += x.dead
	m.sealed = (m.sealed || x.sealed) && !x.dropped && !x.opened
	m.indexed = m.indexed || x.indexed != nil
	x.countBoxes(&m.boxes)
	x.countQueues(&m.queues)
}

func (x *effects) countQueues(m *queueMeta) {
	m.last = max(m.last, x.queues.sent)
	if m.waiting += x.queues.queued; x.dropped { // but the numbers go on
		m.waiting = 0
	}
}

func (x *effects) countBoxes(m *boxMeta) {
	m.cells += x.cells
	m.wakes += x.wakes
	m.in += x.in
	m.out += x.out
	m.taken += x.taken
	m.leaving += x.out - int64(len(x.left))
	if x.dropped { // but the numbers go on: a cell elsewhere may know the last one
		m.cells, m.wakes, m.taken, m.leaving = 0, 0, m.in, 0
	}
}

// apply makes the shard's memory agree with a batch that was written. Its numbers are not
// among that: see count.
func (x *effects) apply(sh *shard) {
	if x.owner != nil {
		sh.owner = *x.owner
	}
	if x.life != nil {
		sh.life = *x.life
	}
	if x.indexed != nil {
		sh.index = *x.indexed
	}
	if x.dropped {
		sh.holds.drop()
		sh.due, sh.recents = nil, recents{}
		sh.firstDue, sh.firstTrim, sh.firstWake = math.MaxInt64, math.MaxInt64, math.MaxInt64
	}
	sh.recents.apply(x.recents)
	if sh.due != nil {
		for _, c := range x.due {
			sh.due.add(c)
		}
	}
	for _, h := range x.ended {
		sh.holds.remove(h)
	}
	for _, h := range x.begun {
		sh.holds.add(h)
	}
	for _, h := range x.extended {
		sh.holds.replace(h)
	}
}

// reset forgets the effects, and keeps the memory that they took.
func (x *effects) reset() {
	clear(x.begun)
	clear(x.extended)
	clear(x.ended)
	clear(x.recents)
	*x = effects{begun: x.begun[:0], extended: x.extended[:0], ended: x.ended[:0], due: x.due[:0], recents: x.recents[:0]}
}

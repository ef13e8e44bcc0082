package memstore

import (
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// record is one task and where it is in its life.
type record struct {
	task store.Task
	kind store.Kind

	token    store.Token  // running, done
	deadline store.Millis // running
	worker   string       // running
	node     string       // running
	started  store.Millis // running

	cancelled bool // running: that was asked for

	first bool // pending, running: it was held, so it is the head of its ordering key

	past *store.History // nil: nothing is kept

	journal []store.JournalEntry // of a task that is not done

	finished store.Millis // done, dead
	reason   store.Reason // dead
	until    store.Millis // done: end of the retention
}

// shard holds the tasks of one shard and who owns it. The store's mutex guards it.
//
// Invariants:
//   - a record is in the index of its kind, at its position, and in no other
//   - done records, and only those, are in trims
//   - pending records with a lane, and only those, are in lanes
//   - records are in attributes with those that their task says are indexed
//   - pending and running records with an ordering key, and only those, are in orders
type shard struct {
	tasks   map[string]*record
	indexes [store.KindDead + 1]*index // by kind
	trims   *index                     // by the end of the retention
	marks   map[string]*mark           // by idempotency key
	looks   *index                     // keys, by when to look whether they are free
	lanes   *lanes
	orders  *orders

	attributes *attributes // by which tasks are found
	index      store.IndexState

	owner string // node; empty: none
	fence store.Fence
	seq   int64
	woke  bool // this call made a task pending

	cells   *cells
	in, out box
	queues  queues

	sealed bool // takes no new task
	life   store.ShardLife

	watching store.Watching
	log      []store.Change // the last changes
	logged   int64          // how many there ever were
}

func newShard() *shard {
	sh := new(shard)
	sh.clear()
	return sh
}

// clear forgets every task, but neither the owner, nor seq, nor what the index is for, nor
// whose the shard is.
func (sh *shard) clear() {
	sh.tasks = make(map[string]*record)
	for kind := range sh.indexes {
		sh.indexes[kind] = newIndex()
	}
	sh.trims, sh.lanes, sh.orders = newIndex(), newLanes(), newOrders()
	sh.marks, sh.looks = make(map[string]*mark), newIndex()
	sh.attributes = newAttributes()
	sh.cells = newCells()
	sh.in.parcels, sh.out.parcels = nil, nil // but not the numbers: a cell elsewhere knows the last one
	sh.queues = queues{last: sh.queues.last, byName: newQueues().byName}
	sh.sealed, sh.watching, sh.log = false, store.Watching{}, nil
}

// ownedUnder reports whether f is the fence of the current claim.
func (sh *shard) ownedUnder(f store.Fence) bool {
	return sh.owner != "" && sh.fence == f
}

// adding reports whether the shard takes tasks of a topic's life.
func (sh *shard) adding(life uint64) (ours bool) {
	sh.life, ours = sh.life.Adding(life)
	return ours
}

// clock is the moment of one call.
type clock = life.Moment

// stamp ends a call: it raises seq when the call made a task pending.
func (sh *shard) stamp(now clock) store.Stamp {
	if sh.woke {
		sh.seq++
		sh.woke = false
	}
	return store.Stamp{Now: now.At, Seq: sh.seq, In: sh.in.last}
}

// position is where the record lies in the index of its kind.
func (r *record) position() store.Entry {
	switch r.kind {
	case store.KindPending:
		return store.Entry{Due: r.task.Due, ID: r.task.ID, Traits: r.task.Traits}
	case store.KindRunning:
		return store.Entry{ID: r.task.ID} // not by deadline: an extend would make a walk miss it
	}
	return store.Entry{Due: r.finished, ID: r.task.ID}
}

// state is the record's state as others see it.
func (r *record) state(now clock) store.State {
	switch {
	case r.kind == store.KindPending:
		return store.PendingState(r.task.Due, now.Millis(), r.task.Attempt)
	case r.kind == store.KindRunning:
		return store.StateRunning
	case r.kind == store.KindDone:
		return store.StateDone
	case r.reason == store.ReasonExpired:
		return store.StateExpired
	}
	return store.StateDead
}

// life is what the rules need to know of r, which is nil for a task that is not there.
func (r *record) life() life.Task {
	if r == nil {
		return life.Task{}
	}
	return life.Task{
		Phase: r.phase(), Token: r.token, Deadline: r.deadline, Due: r.task.Due, Expires: r.task.Expires,
		Ordered: r.task.Traits.Ordering() != "",
	}
}

func (r *record) phase() life.Phase {
	if r == nil {
		return life.Absent
	}
	return phases[r.kind]
}

// untouched reports whether a task that was to be due at a moment waits for its first attempt.
func (r *record) untouched(due store.Millis) bool {
	return r != nil && life.Untouched(r.phase(), r.task.Attempt, r.task.Due, due)
}

var phases = [...]life.Phase{
	store.KindPending: life.Pending, store.KindRunning: life.Running, store.KindDone: life.Done, store.KindDead: life.Dead,
}

// put makes r a record of its kind.
func (sh *shard) put(r *record) {
	sh.tasks[r.task.ID] = r
	sh.indexes[r.kind].insert(r.position())
	sh.attributes.insert(&r.task)
	sh.orders.insert(r)
	switch r.kind {
	case store.KindPending:
		sh.lanes.insert(r.position())
	case store.KindDone:
		sh.trims.insert(store.Entry{Due: r.until, ID: r.task.ID})
	}
}

// take forgets r. It must not have changed since it was put.
func (sh *shard) take(r *record) {
	delete(sh.tasks, r.task.ID)
	sh.indexes[r.kind].remove(r.position())
	sh.attributes.remove(&r.task)
	sh.orders.remove(r)
	switch r.kind {
	case store.KindPending:
		sh.lanes.remove(r.position())
	case store.KindDone:
		sh.trims.remove(store.Entry{Due: r.until, ID: r.task.ID})
	}
}

// pend makes r pending, due at the given moment.
func (sh *shard) pend(r *record, due store.Millis) {
	sh.take(r)
	*r = record{task: r.task, kind: store.KindPending, first: r.first, past: r.past, journal: r.journal}
	r.task.Due = due
	sh.put(r)
	sh.woke = true
}

// bury makes r a dead letter.
func (sh *shard) bury(r *record, reason store.Reason, now clock) {
	sh.take(r)
	*r = record{task: r.task, kind: store.KindDead, reason: reason, finished: now.Millis(), past: r.past, journal: r.journal}
	sh.put(r)
}

// snapshot copies what is stored under an id.
func (sh *shard) snapshot(id string, now clock) store.Snapshot {
	r := sh.tasks[id]
	if r == nil {
		return store.Snapshot{Task: store.Task{ID: id}}
	}
	task := copyTask(&r.task)
	task.Indexed = ""
	return store.Snapshot{
		Task:     task,
		State:    r.state(now),
		Token:    r.token,
		Deadline: r.deadline,
		Worker:   r.worker,
		Reason:   r.reason,
		Finished: r.finished,

		Node:      r.node,
		Started:   r.started,
		Cancelled: r.cancelled,
	}
}

// copyTask returns a copy of t that shares no memory with it.
func copyTask(t *store.Task) store.Task {
	c := *t
	c.Payload, c.Journal = slices.Clone(t.Payload), nil
	c.Attributes = slices.Clone(t.Attributes)
	if t.Backoff != nil {
		backoff := *t.Backoff
		c.Backoff = &backoff
	}
	if t.Key != nil {
		c.Key = &store.Key{Text: t.Key.Text}
	}
	if t.Traits != nil {
		traits := *t.Traits
		c.Traits = &traits
	}
	return c
}

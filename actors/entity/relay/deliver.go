package relay

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// Why tasks are refused whose key or id is another one's.
const (
	keyTaken = "KEY_TAKEN: another task has the idempotency key"
	idTaken  = "ID_CONFLICT: another task has the id"
)

// deliver brings the items of a page to their shards, several at a time. What a shard does not take now waits,
// and is in the way of no other shard. The first error is returned.
func (t *turn) deliver(ctx context.Context) error {
	if t.Walk != nil {
		if err := t.askTallies(ctx); err != nil {
			return err
		}
	}
	if err := t.askFormer(ctx); err != nil {
		return err
	}
	byShard, order := make(map[store.Shard]*delivery), []*delivery(nil)
	for _, it := range t.items {
		if it.state != open {
			continue
		}
		to := it.places[0]
		if byShard[to] == nil {
			byShard[to] = &delivery{turn: t, to: to}
			order = append(order, byShard[to])
		}
		byShard[to].items = append(byShard[to].items, it)
	}
	var all sync.WaitGroup
	free := make(chan struct{}, shardsAtATime)
	if t.Walk != nil { // what one shard does not take holds up the next one
		free = make(chan struct{}, 1)
	}
	for _, d := range order {
		free <- struct{}{}
		all.Go(func() {
			d.err = d.run(ctx)
			<-free
		})
	}
	all.Wait()
	var failed error
	for _, d := range order {
		t.out.Made, t.out.Told, t.out.Closed = append(t.out.Made, d.made...), append(t.out.Told, d.told...), t.out.Closed || d.closed
		if d.err != nil && failed == nil {
			failed = d.err
		}
	}
	return failed
}

// delivery brings the items of a page to one shard, in order.
type delivery struct {
	*turn
	to     store.Shard
	items  []*item
	made   []Made
	told   []fleet.Committed
	closed bool
	err    error
}

// run makes commits until nothing is open. Each settles something, or finds what is in its way: so their
// number is bounded, unless others see to it that ids live and end.
func (d *delivery) run(ctx context.Context) error {
	if d.Walk != nil && d.Walk.blocks(d.Queue, d.to) {
		d.wait()
	}
	for range 3*len(d.items) + 2 {
		c, some, err := d.next(ctx)
		if err == nil && len(some) == 0 {
			return nil
		}
		var done committed
		if err == nil {
			done, err = d.commit(ctx, d.to.For(d.turn.to.Life), nil, c)
		}
		switch {
		case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrSealed):
			d.wait()
			return nil
		case err != nil:
			d.wait()
			return err
		}
		switch done.Status {
		case store.OK:
			if d.take(&c, some, &done); d.Walk != nil {
				d.tallies[d.to].raise(some)
			}
		case store.Received:
			d.received(done.CommitResult)
		case store.Conflict:
			err = d.meet(ctx, done.ID)
		case store.Stale:
			err = d.stale(&c, some, &done)
		case store.Closed:
			d.closed = true
			d.wait()
		default: // the window is full: what is before it goes first
			d.wait()
		}
		if err != nil {
			d.wait()
			return err
		}
	}
	d.wait()
	return nil
}

// wait leaves what is open for another turn.
func (d *delivery) wait() {
	for _, it := range d.items {
		if it.state != open {
			continue
		}
		if it.state = waits; d.Walk != nil {
			d.Walk.block(d.Queue, d.to)
		}
	}
}

// next is the commit that settles what is open, but for tasks and children of an id that it has already, and those
// that it is about: the tasks that it adds first, in order, and then the others.
func (d *delivery) next(ctx context.Context) (c store.Commit, some []*item, err error) {
	if d.Walk != nil {
		return d.nextInOrder(ctx)
	}
	r := &store.Receive{Queue: d.Queue, Head: d.page.Head}
	c = store.Commit{Receive: r, From: d.servers[d.to]}
	ids := make(map[store.CellID]bool)
	var rest []*item
	for _, it := range d.items {
		switch {
		case it.state != open:
		case it.why != "", it.there, d.Queue.Class != store.ClassWork:
			rest = append(rest, it)
		case ids[it.To]:
		case it.task == nil:
			ids[it.To] = true
			rest = append(rest, it)
		default:
			ids[it.To] = true
			c.Adds, r.Numbers, some = append(c.Adds, it.task), append(r.Numbers, it.Number), append(some, it)
		}
	}
	for _, it := range rest {
		if it.why == "" && !it.there {
			d.bring(&c, it)
		}
		if it.why != "" {
			r.Refused = append(r.Refused, it.Number)
		} else {
			r.Numbers = append(r.Numbers, it.Number)
		}
	}
	return c, append(some, rest...), nil
}

// bring adds to a commit what a message makes that is no task: a child, or a message in the inbox.
func (d *delivery) bring(c *store.Commit, it *item) {
	if d.Queue.Class != store.ClassWork {
		c.Send = append(c.Send, store.Message{To: it.To, Body: it.Body})
		return
	}
	child, err := workflow.Arrived(it.Message, d.Now())
	if err != nil {
		it.refuse(err.Error())
		return
	}
	c.Puts, c.Send = append(c.Puts, child.Puts...), append(c.Send, child.Send...)
}

// take notes a commit that was made, and what became of each task of it.
func (d *delivery) take(c *store.Commit, some []*item, done *committed) {
	var fresh []store.Entry
	for i, it := range some {
		if i >= len(c.Adds) || len(done.Adds) == 0 {
			if i < len(c.Adds) {
				fresh = append(fresh, store.Entry{ID: it.task.ID, Due: it.task.Due, Traits: it.task.Traits})
			}
			it.settle()
			continue
		}
		switch add := &done.Adds[i]; add.Status {
		case store.LeftOut: // the next commit
		case store.Closed:
			it.state, d.closed = waits, true
		case store.Taken:
			it.refuse(keyTaken)
			it.settle()
		case store.Conflict:
			it.refuse(idTaken)
			it.settle()
		case store.Duplicate:
			it.settle()
		default:
			fresh = append(fresh, store.Entry{ID: add.ID, Due: add.Due, Traits: it.task.Traits})
			it.settle()
		}
	}
	if len(fresh) > 0 {
		d.made = append(d.made, Made{d.to, done.stamp.Seq, fresh})
	}
	told := *c
	if d.Walk != nil {
		told.Puts = c.Puts[1:] // without the tally
	}
	if len(told.Puts)+len(told.Send) > 0 {
		d.told = append(d.told, fleet.Committed{Shard: d.to, Commit: told, Stamp: done.stamp})
	}
}

// received notes what was settled by another call: one whose answer was lost, or of another owner.
func (d *delivery) received(r store.CommitResult) { note(d.items, r.Made, r.Refused) }

// note notes which of some items are settled.
func note(items []*item, made, refused []int64) {
	for _, it := range items {
		switch {
		case slices.Contains(made, it.Number):
			it.why = ""
			it.settle()
		case slices.Contains(refused, it.Number):
			if it.why == "" {
				it.refuse("REFUSED: its topic did not take it when it was tried before")
			}
			it.settle()
		}
	}
}

// meet deals with a task whose id a live one has: it is that one, or it is refused.
func (d *delivery) meet(ctx context.Context, id string) error {
	_, found, err := d.Tasks.Get(ctx, d.to, []string{id})
	if err != nil || !found[0].State.Live() { // it has ended meanwhile
		return err
	}
	i := slices.IndexFunc(d.items, func(it *item) bool {
		return it.state == open && it.why == "" && !it.there && it.task != nil && it.task.ID == id
	})
	if i >= 0 {
		d.items[i].meets(&found[0])
	}
	return nil
}

func (it *item) meets(live *store.Snapshot) {
	if it.there = live.Fingerprint == it.task.Fingerprint; !it.there {
		it.refuse(idTaken)
	}
}

// stale deals with an entity that is in the way of a commit.
func (d *delivery) stale(c *store.Commit, some []*item, done *committed) error {
	if d.Walk == nil || done.Cell.ID != d.tallyID() {
		isThere(d.items, &done.Cell)
		return nil
	}
	return d.recount(c, some, done)
}

// isThere deals with a child whose id an entity has: it is that one, as what made its step was undone by a
// failover and made anew, or it is refused.
func isThere(items []*item, there *store.Cell) {
	for _, it := range items {
		if it.state != open || it.task != nil || workflow.CellID(it.To.Key()) != there.ID {
			continue
		}
		if it.there = workflow.Brought(*there, it.Message); !it.there {
			it.refuse("ID_CONFLICT: another workflow has the id")
		}
	}
}

// askFormer asks the former shards of each item, which are sealed by then, whether it was settled there, and
// whether they have a live task of its id.
func (t *turn) askFormer(ctx context.Context) error {
	if t.Queue.Class != store.ClassWork {
		return nil
	}
	byShard := make(map[store.Shard][]*item)
	var order []store.Shard
	for _, it := range t.items {
		for _, s := range it.places[min(1, len(it.places)):] {
			if byShard[s] == nil {
				order = append(order, s)
			}
			byShard[s] = append(byShard[s], it)
		}
	}
	for _, s := range order {
		if err := t.seal(ctx, s); err != nil {
			return err
		}
		if err := t.askReceipt(ctx, s, byShard[s]); err != nil {
			return err
		}
		if err := t.lookBack(ctx, s, byShard[s]); err != nil {
			return err
		}
	}
	return nil
}

// askReceipt asks a former shard which items it has settled. That of the out-box has a tally, see askTallies.
func (t *turn) askReceipt(ctx context.Context, s store.Shard, items []*item) error {
	if t.Walk != nil {
		return nil
	}
	receipts, err := t.Store.Receipts(ctx, s, []store.Queue{t.Queue})
	if err != nil {
		return err
	}
	var numbers []int64
	for _, it := range items {
		numbers = append(numbers, it.Number)
	}
	made, refused := receipts[0].Settled(numbers)
	note(items, made, refused)
	return nil
}

// seal seals a former shard, so that no call of a former owner makes in it what is made in a newer one.
func (t *turn) seal(ctx context.Context, s store.Shard) error {
	at := sealedAt{s.For(t.to.Life), t.servers[s]}
	if _, known := t.sealed.Load(at); known {
		return nil
	}
	err := t.Store.Seal(ctx, at.shard)
	if err == nil {
		t.sealed.Store(at, true)
	}
	return err
}

// lookBack looks for tasks and children in a former shard. One of an ordering key waits until the shard has no
// task of that key.
func (t *turn) lookBack(ctx context.Context, s store.Shard, items []*item) error {
	var ids, keys []string
	var children []store.CellID
	for _, it := range items {
		switch {
		case it.state != open || it.why != "" || it.there:
		case t.Walk != nil && it.goesAlone(): // when it is the next one
		case it.task == nil:
			children = append(children, workflow.CellID(it.To.Key()))
		case it.task.Key != nil:
			if err := t.askKey(ctx, s, it); err != nil {
				return err
			}
		default:
			ids = append(ids, it.task.ID)
			if key := it.task.Traits.Ordering(); key != "" {
				keys = append(keys, key)
			}
		}
	}
	if len(ids) > 0 {
		_, found, err := store.GetAll(ctx, t.Tasks, s, ids)
		if err != nil {
			return err
		}
		for i := range found {
			for _, it := range items {
				if it.state == open && it.task != nil && it.task.ID == ids[i] && found[i].State.Live() {
					it.meets(&found[i])
				}
			}
		}
	}
	if len(keys) > 0 {
		_, unfinished, err := t.Tasks.InOrder(ctx, s, keys, 1)
		if err != nil {
			return err
		}
		for i, key := range keys {
			for _, it := range items {
				if it.state == open && !it.there && len(unfinished[i]) > 0 && it.task != nil && it.task.Traits.Ordering() == key {
					it.state = waits
				}
			}
		}
	}
	return t.lookBackForChildren(ctx, s, items, children)
}

// askKey has a former shard decide about a task of whose idempotency key it may have one. It is sealed, and adds
// nothing. One that replaces a task there does so before that is in any receipt, and would do so again.
func (t *turn) askKey(ctx context.Context, s store.Shard, it *item) error {
	var stamp store.Stamp
	var found []store.AddResult
	_, err := t.Resolve(ctx, func() (err error) {
		stamp, found, err = t.Tasks.AddKeyed(ctx, s.For(t.to.Life), []*store.Task{it.task})
		return err
	})
	if err != nil {
		return err
	}
	switch at := &found[0]; at.Status {
	case store.Closed: // it has none of its keys
	case store.Taken:
		it.refuse(keyTaken)
	case store.Conflict:
		it.refuse(idTaken)
	case store.Duplicate:
		it.there = true
	default:
		it.there = true
		t.out.Made = append(t.out.Made, Made{s, stamp.Seq, []store.Entry{{ID: at.ID, Due: at.Due, Traits: it.task.Traits}}})
	}
	return nil
}

// lookBackForChildren looks for children in a former shard.
func (t *turn) lookBackForChildren(ctx context.Context, s store.Shard, items []*item, children []store.CellID) error {
	for len(children) > 0 {
		found, err := t.Store.Cells(ctx, s, children)
		if err != nil {
			return err
		}
		for i := range found {
			if found[i].Version != 0 {
				isThere(items, &found[i])
			}
		}
		children = children[len(found):]
	}
	return nil
}

package relay

import (
	"context"
	"errors"
	"slices"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Asks need no receipt: asking twice does no harm. They wait for the work that they are about, which is in the
// work queue of the same shard and topic, and take that back if it is to end.

// ask carries the asks of a page.
func (t *turn) ask(ctx context.Context) error {
	for i := range t.page.Messages {
		t.items = append(t.items, &item{Message: &t.page.Messages[i]})
	}
	if t.to == nil {
		for _, it := range t.items {
			it.refuse(t.gone)
			it.settle()
		}
		return nil
	}
	waiting, head, err := t.waiting(ctx)
	if err != nil {
		return err
	}
	for _, it := range t.items {
		work := waiting[it.To.Key()]
		switch {
		case work == nil:
		case !workflow.AsksToEnd(it.Message):
			it.state = waits
		default:
			if err := t.takeBack(ctx, work, head, it); err != nil {
				return err
			}
		}
	}
	return t.askShards(ctx)
}

// work is the queue of what the asks of a page are about.
func (t *turn) work() store.Queue {
	q := t.Queue
	q.Class = store.ClassWork
	return q
}

// waiting returns the work that the asks of the page are about and that is still in its queue, by id, and the
// head of that queue.
func (t *turn) waiting(ctx context.Context) (found map[string]*store.Message, head int64, err error) {
	if len(t.items) == 0 {
		return nil, 0, nil
	}
	asked, last := make(map[string]bool), t.items[len(t.items)-1].Number
	for _, it := range t.items {
		asked[it.To.Key()] = true
	}
	found = make(map[string]*store.Message)
	for after, n := int64(0), 1; ; n = t.sizes.RelayPage {
		page, err := t.workPage(ctx, after, n)
		if err != nil {
			return nil, 0, err
		}
		if after == 0 {
			if head = page.Head; head == 0 || head > last {
				return nil, head, nil
			}
		}
		for i := range page.Messages {
			if m := &page.Messages[i]; m.Number < last && asked[m.To.Key()] {
				found[m.To.Key()] = m
			}
		}
		if after = page.Next; after == 0 || after >= last {
			return found, head, nil
		}
	}
}

// workPage is a page of the queue of work.
func (t *turn) workPage(ctx context.Context, after int64, n int) (page store.MessagePage, err error) {
	if t.Walk == nil {
		return t.Store.Messages(ctx, t.ID, t.work(), after, n, pageBytes)
	}
	all, err := t.Store.Parcels(ctx, t.ID, store.OutBox, after, n)
	if err != nil || len(all) == 0 {
		return page, err
	}
	page.Head, page.Next = all[0].Number, all[len(all)-1].Number
	for i := range all {
		if m := &all[i]; m.Topic == t.Queue.To && message.Brings(m) {
			page.Messages = append(page.Messages, *m)
		}
	}
	return page, nil
}

// takeBack refuses work that was not made yet, in its destination and then here, and settles the ask. It is asked as
// usual if it was made after all.
func (t *turn) takeBack(ctx context.Context, work *store.Message, head int64, ask *item) error {
	of := &turn{
		Relay: t.Relay, Start: t.Start, sizes: t.sizes, to: t.to, home: t.home, servers: t.servers,
		page: store.MessagePage{Head: head, Messages: []store.Message{*work}}, tallies: make(map[store.Shard]*tally),
	}
	of.Queue = t.work()
	it := &item{Message: work, places: placesOf(t.to, work), why: "it was asked to end"}
	of.items = []*item{it}
	if err := of.refuseThere(ctx, it); err != nil {
		return err
	}
	switch {
	case it.state != settled:
		ask.state = waits
		return nil
	case it.why == "": // made, and in its queue until that is known
		return nil
	}
	c, _ := workflow.TakenBack(work, ask.Message, t.Now())
	c.Drop = nil
	of.forget(&c, []int64{work.Number})
	if err := t.commitHome(ctx, &c); err != nil {
		return err
	}
	if ask.settle(); t.Walk != nil {
		t.Walk.passed-- // the work
	}
	return nil
}

// refuseThere settles an item in its destination as refused, if it was not made. A tally cannot say that: work of the
// out-box is refused here.
func (t *turn) refuseThere(ctx context.Context, it *item) error {
	if t.Walk == nil {
		return t.deliver(ctx)
	}
	err := t.askTallies(ctx)
	it.settle()
	return err
}

// placesOf are the shards of a topic in which the work of a message may be, the one for what is new first.
func placesOf(t *store.Topic, m *store.Message) []store.Shard {
	if message.Begins(m) || message.Orders(m) {
		return workflow.Shards(t, m.To.Key())
	}
	return place.Candidates(t, m.To.Key())
}

// askShards asks tasks to end: pending ones are removed, and the workers of running ones asked. What is asked of a
// child goes to the inbox of its shard.
func (t *turn) askShards(ctx context.Context) error {
	commits, items, order := make(map[store.Shard]*store.Commit), make(map[store.Shard][]*item), []store.Shard(nil)
	at := func(s store.Shard, it *item) *store.Commit {
		if commits[s] == nil {
			commits[s], order = new(store.Commit), append(order, s)
		}
		items[s] = append(items[s], it)
		return commits[s]
	}
	for _, it := range t.items {
		if it.state != open {
			continue
		}
		if it.settle(); message.Orders(it.Message) {
			told := workflow.Delivered(it.Message)
			child := &item{Message: &store.Message{To: told.To}}
			if err := t.readCompletion(ctx, child); err != nil {
				return err
			}
			for _, s := range child.places {
				c := at(s, it)
				c.Send = append(c.Send, told)
			}
			continue
		}
		id := it.To.Key()
		for _, s := range place.Candidates(t.to, id) {
			if c := at(s, it); !slices.Contains(c.Cancels, id) {
				c.Removes, c.Cancels = append(c.Removes, store.Remove{ID: id}), append(c.Cancels, id)
			}
		}
	}
	var failed error
	for _, s := range order {
		done, err := t.commit(ctx, s.For(t.to.Life), nil, *commits[s])
		if err == nil && done.Status == store.OK {
			t.out.Told = append(t.out.Told, fleet.Committed{
				Shard: s, Commit: *commits[s], Stamp: done.stamp, Asked: fleet.RunningHolds(ctx, t.Tasks, s, commits[s].Cancels),
			})
			continue
		}
		for _, it := range items[s] {
			it.state = waits
		}
		if err != nil && !errors.Is(err, store.ErrFull) && !errors.Is(err, store.ErrSealed) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

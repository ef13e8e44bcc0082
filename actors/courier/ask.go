package courier

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// asksAtATime is how many tasks one commit asks to end.
const asksAtATime = 500

// askAll asks tasks of a topic to end: pending ones are deleted, and workers of running ones asked. What
// is asked of children lies in their shards then. One that waits in the out-box is taken back, if it is to
// end. Asking twice does no harm, so there is no tally of it. arrived are the parcels of which it is known
// that they have.
func (r *round) askAll(ctx context.Context, topic string, asks []store.Parcel, arrived []int64) (done []int64, err error) {
	t, e := r.Stored(ctx, topic)
	switch {
	case e != nil && isGone(e):
		return nil, r.askInVain(ctx, asks)
	case e != nil:
		return nil, e
	}
	waiting, err := r.waiting(ctx, asks, arrived)
	if err != nil {
		return nil, err
	}
	var there []store.Parcel
	for i := range asks {
		ask := &asks[i]
		if p := waiting[ask.To.Key()]; p != nil {
			early, err := r.askEarly(ctx, t, p, ask)
			if err != nil {
				return done, err
			}
			if early {
				continue
			}
		}
		there = append(there, *ask)
	}
	for some := range slices.Chunk(there, asksAtATime) {
		err := r.ask(ctx, t, some)
		if waitsFor(err) {
			r.out.Waits = true
			return done, nil
		}
		if err != nil {
			return done, err
		}
		for i := range some {
			done = append(done, some[i].Number)
		}
	}
	return done, nil
}

// askInVain is for a topic that is not there: so is no task and no child of it.
func (r *round) askInVain(ctx context.Context, asks []store.Parcel) error {
	for i := range asks {
		if err := r.here(ctx, workflow.Vain(&asks[i], r.Now())); err != nil {
			return err
		}
	}
	return nil
}

// waiting are those of the tasks and children that are asked something that lie in the out-box and have
// not arrived, by their ids.
func (r *round) waiting(ctx context.Context, asks []store.Parcel, arrived []int64) (map[string]*store.Parcel, error) {
	before, asked, found := asks[len(asks)-1].Number, make(map[string]bool), make(map[string]*store.Parcel)
	for i := range asks {
		asked[asks[i].To.Key()] = true
	}
	for after := int64(0); ; {
		page, err := r.Store.Parcels(ctx, r.ID, store.OutBox, after, batch)
		if err != nil || len(page) == 0 {
			return found, err
		}
		for i := range page {
			p := &page[i]
			if p.Number >= before {
				return found, nil
			}
			if sent.Brings(p) && asked[p.To.Key()] && !slices.Contains(arrived, p.Number) {
				found[p.To.Key()] = p
			}
		}
		after = page[len(page)-1].Number
	}
}

// askEarly is for a task or a child that has not been made: it is taken back if it is to end, and what
// asks for that is forgotten. Anything else waits for it. It reports false for one that was made.
func (r *round) askEarly(ctx context.Context, t *store.Topic, p, ask *store.Parcel) (bool, error) {
	d := &delivery{round: r, topic: t}
	made, err := d.taken(ctx, &item{parcel: p})
	if err != nil || made {
		return false, err
	}
	if !workflow.AsksToEnd(ask) {
		r.out.Waits = true
		return true, nil
	}
	c, isStep := workflow.TakenBack(p, ask, r.Now())
	if !isStep {
		return false, nil
	}
	return true, r.here(ctx, c)
}

// ask asks some tasks to end, in whichever shard each is, and leaves for children what is asked of them.
func (r *round) ask(ctx context.Context, t *store.Topic, asks []store.Parcel) error {
	byShard := make(map[store.Shard]*store.Commit)
	var order []store.Shard
	at := func(s store.Shard) *store.Commit {
		if byShard[s] == nil {
			byShard[s], order = new(store.Commit), append(order, s)
		}
		return byShard[s]
	}
	for i := range asks {
		ask := &asks[i]
		if sent.Orders(ask) {
			told := workflow.Delivered(ask)
			s, there, err := r.findHome(ctx, t, told.To)
			if err != nil {
				return err
			}
			if there {
				at(s).Send = append(at(s).Send, told)
			}
			continue
		}
		id := ask.To.Key()
		for _, s := range place.Candidates(t, id) {
			if c := at(s); !slices.Contains(c.Cancels, id) {
				c.Removes, c.Cancels = append(c.Removes, store.Remove{ID: id}), append(c.Cancels, id)
			}
		}
	}
	for _, s := range order {
		c := byShard[s]
		done, err := r.commit(ctx, s, t.Life, nil, *c)
		if err != nil {
			return err
		}
		if done.Status != store.OK {
			return store.ErrUnavailable
		}
		r.out.Told = append(r.out.Told, fleet.Committed{Shard: s, Commit: *c, Stamp: done.stamp, Asked: fleet.RunningHolds(ctx, r.Tasks, s, c.Cancels)})
	}
	return nil
}

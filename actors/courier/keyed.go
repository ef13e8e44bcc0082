package courier

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// verdict is what became of an item where others of its keys or its id may be.
type verdict uint8

const (
	free   verdict = iota // nothing: it can be added
	made                  // its task is made, or was there
	closed                // the shard takes none of its keys
	out                   // it is no item any more
)

// besideOthers delivers an item that must go where others of its keys or its id are, as an
// enqueue does.
func (d *delivery) besideOthers(ctx context.Context, it *item) (verdict, error) {
	places := place.Candidates(d.topic, it.parcel.To.Key())
	if it.task.Key == nil && it.task.Traits.Ordering() == "" {
		return d.lookBack(ctx, it, places[1:])
	}
	for _, at := range places[1:] {
		if what, err := d.addKeyed(ctx, it, at); what != closed || err != nil {
			return what, err
		}
	}
	if it.task.Key == nil {
		return free, nil
	}
	what, err := d.addKeyed(ctx, it, places[0])
	if what == closed && err == nil {
		err = store.ErrSealed // the topic has other shards by now
	}
	return what, err
}

// lookBack looks for a task in former shards.
func (d *delivery) lookBack(ctx context.Context, it *item, former []store.Shard) (verdict, error) {
	for _, at := range former {
		_, found, err := d.Tasks.Get(ctx, at, []string{it.task.ID})
		if err != nil {
			return free, err
		}
		if found[0].State.Live() {
			return out, d.settle(ctx, 0, &found[0])
		}
	}
	return free, nil
}

// addKeyed adds an item in one step with the look at its keys.
func (d *delivery) addKeyed(ctx context.Context, it *item, at store.Shard) (verdict, error) {
	var stamp store.Stamp
	var results []store.AddResult
	_, err := d.Resolve(ctx, func() (err error) {
		stamp, results, err = d.Tasks.AddKeyed(ctx, at.For(d.topic.Life), []*store.Task{it.task})
		return err
	})
	if err != nil {
		return free, err
	}
	switch r := &results[0]; r.Status {
	case store.Closed:
		return closed, nil
	case store.Added, store.Passed, store.Replaced:
		d.round.out.Made = append(d.round.out.Made, Made{at, stamp.Seq, []store.Entry{{ID: r.ID, Due: r.Due, Traits: it.task.Traits}}})
		return made, nil
	case store.Duplicate:
		return made, nil
	case store.Taken:
		return out, d.reject(ctx, 0, "KEY_TAKEN: another task has the idempotency key")
	}
	return out, d.reject(ctx, 0, "ID_CONFLICT: another task has the id")
}

package courier

import (
	"context"
	"errors"
	"slices"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// destination is a topic that parcels go to.
type destination struct {
	*store.Topic        // nil: there is none
	why          string // there is none
	waits        bool   // it takes no task now
	stored       bool   // it is as the store has it
}

// toTopic delivers parcels to a topic, and returns the numbers of those that are to be forgotten. What
// is for workflows does not wait for the topic, and tasks are asked to end once they are there.
func (r *round) toTopic(ctx context.Context, topic string, parcels []store.Parcel) (arrived []int64, err error) {
	var tasks, asks, ends []store.Parcel
	for _, p := range parcels {
		switch {
		case sent.Brings(&p):
			tasks = append(tasks, p)
		case sent.Asks(&p):
			asks = append(asks, p)
		default:
			ends = append(ends, p)
		}
	}
	if len(ends) > 0 {
		if arrived, err = r.bringHome(ctx, topic, ends); err != nil {
			return arrived, err
		}
	}
	if len(tasks) > 0 {
		numbers, err := r.bringTasks(ctx, topic, tasks)
		arrived = append(arrived, numbers...)
		if err != nil {
			return arrived, err
		}
	}
	if len(asks) > 0 {
		numbers, err := r.askAll(ctx, topic, asks, arrived)
		return append(arrived, numbers...), err
	}
	return arrived, nil
}

// bringTasks delivers tasks and children to a topic.
func (r *round) bringTasks(ctx context.Context, topic string, parcels []store.Parcel) (arrived []int64, err error) {
	d, err := r.destination(ctx, topic)
	if err != nil {
		return nil, err
	}
	if d.waits {
		r.out.Waits = true
		return nil, nil
	}
	if err := r.renew(ctx, d, parcels); err != nil {
		return nil, err
	}
	var groups []*delivery
	of := make(map[store.Shard]*delivery)
	for i := range parcels {
		p := &parcels[i]
		if d.Topic == nil {
			if err := r.refuse(ctx, p, d.why); err != nil {
				return nil, err
			}
			continue
		}
		t, err := d.open(p)
		if err != nil {
			if err := r.refuse(ctx, p, err.Error()); err != nil {
				return nil, err
			}
			continue
		}
		to := placesOf(d.Topic, p)[0]
		if of[to] == nil {
			of[to] = &delivery{round: r, topic: d.Topic, to: to}
			groups = append(groups, of[to])
		}
		of[to].items = append(of[to].items, item{p, t})
	}
	for _, g := range groups {
		err := g.run(ctx)
		arrived = append(arrived, g.arrived...)
		if waitsFor(err) {
			d.waits, r.out.Waits = true, true
			return arrived, nil
		}
		if err != nil {
			return arrived, err
		}
	}
	return arrived, nil
}

// renew has a topic be as the store has it if a parcel begins a child there: that is found again only
// where new ones begin, and in shards of before.
func (r *round) renew(ctx context.Context, d *destination, parcels []store.Parcel) error {
	if d.Topic == nil || d.stored || !slices.ContainsFunc(parcels, func(p store.Parcel) bool { return sent.Begins(&p) }) {
		return nil
	}
	t, e := r.Stored(ctx, d.Name)
	if e != nil {
		return e
	}
	d.Topic, d.stored = t, true
	return nil
}

// open reads the task of a parcel, as the topic takes it; nil for a child.
func (d *destination) open(p *store.Parcel) (*store.Task, error) {
	if sent.Begins(p) {
		return nil, nil
	}
	t, err := sent.Task(p, d.Indexed)
	if err == nil && len(t.Payload) > d.MaxPayload {
		err = problem.BadField("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", len(t.Payload), d.MaxPayload)
	}
	return t, err
}

// placesOf are the shards of a topic in which what a parcel brings may be, the one for what is new first.
func placesOf(t *store.Topic, p *store.Parcel) []store.Shard {
	if sent.Begins(p) {
		return workflow.Shards(t, p.To.Key())
	}
	return place.Candidates(t, p.To.Key())
}

// destination finds whether a topic takes tasks. A failure that passes is an error.
func (r *round) destination(ctx context.Context, topic string) (*destination, error) {
	if d := r.topics[topic]; d != nil {
		return d, nil
	}
	d := new(destination)
	t, e := r.TopicOf(ctx, topic, true)
	switch {
	case e == nil:
		d.Topic, d.waits = t, t.EnqueuePaused
	case isGone(e):
		d.why = e.Reason + ": " + e.Message
	default:
		return nil, e
	}
	if d.Topic != nil && t.MaxBacklog > 0 && !d.waits {
		stats, err := r.Counts(ctx, place.Shards(t))
		if err != nil {
			return nil, err
		}
		pending := int64(0)
		for i := range stats {
			pending += stats[i].Pending
		}
		d.waits = pending >= int64(t.MaxBacklog)
	}
	r.topics[topic] = d
	return d, nil
}

// waitsFor reports whether an error is one of a shard that takes nothing now.
func waitsFor(err error) bool {
	return errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrSealed)
}

// isGone reports whether there is no such topic.
func isGone(e *problem.Error) bool { return e.Kind == problem.NotFound || e.Kind == problem.Invalid }

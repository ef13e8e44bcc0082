package courier

import (
	"context"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// endsAtATime is how many ends one commit brings.
const endsAtATime = 1000

// bringHome delivers the ends of tasks to the workflows of a topic, each once: the shard of a workflow
// has a tally of them. What is for one that is gone is forgotten.
func (r *round) bringHome(ctx context.Context, topic string, parcels []store.Parcel) (arrived []int64, err error) {
	t, e := r.Stored(ctx, topic)
	if e != nil && !isGone(e) {
		return nil, e
	}
	byShard, order := make(map[store.Shard][]store.Parcel), []store.Shard(nil)
	for _, p := range parcels {
		var shard store.Shard
		there := false
		if e == nil {
			if shard, there, err = r.findHome(ctx, t, p.To); err != nil {
				return arrived, err
			}
		}
		if !there {
			arrived = append(arrived, p.Number)
			continue
		}
		if byShard[shard] == nil {
			order = append(order, shard)
		}
		byShard[shard] = append(byShard[shard], p)
	}
	for _, shard := range order {
		numbers, err := r.deliverAll(ctx, t, shard, byShard[shard])
		arrived = append(arrived, numbers...)
		if waitsFor(err) {
			r.out.Waits = true
			continue
		}
		if err != nil {
			return arrived, err
		}
	}
	return arrived, nil
}

func (r *round) deliverAll(ctx context.Context, t *store.Topic, shard store.Shard, ends []store.Parcel) (arrived []int64, err error) {
	for some := range slices.Chunk(ends, endsAtATime) {
		if err := r.deliverEnds(ctx, t, shard, some); err != nil {
			return arrived, err
		}
		for i := range some {
			arrived = append(arrived, some[i].Number)
		}
	}
	return arrived, nil
}

// findHome finds the shard of a workflow, which stays where it began.
func (r *round) findHome(ctx context.Context, t *store.Topic, id store.CellID) (shard store.Shard, there bool, err error) {
	shards := workflow.Shards(t, id.Key())
	if len(shards) == 1 {
		return shards[0], true, nil // who is not there is found by its owner
	}
	for _, s := range shards {
		cells, err := r.Store.Cells(ctx, s, []store.CellID{id})
		if err != nil {
			return shard, false, err
		}
		if cells[0].Version != 0 {
			return s, true, nil
		}
	}
	return shard, false, nil
}

// homeTries is how often another node may raise a tally meanwhile.
const homeTries = 5

// deliverEnds puts ends into the in-box of a shard.
func (r *round) deliverEnds(ctx context.Context, t *store.Topic, shard store.Shard, ends []store.Parcel) (err error) {
	for range homeTries {
		known := r.ends[shard]
		if known == nil {
			if known, err = r.readTally(ctx, shard, r.endTally()); err != nil {
				return err
			}
			r.ends[shard] = known
		}
		c := store.Commit{}
		for i := range ends {
			if p := &ends[i]; p.Number > known.last {
				c.Send = append(c.Send, store.Parcel{To: p.To, Body: p.Body})
			}
		}
		if len(c.Send) == 0 {
			return nil
		}
		last := ends[len(ends)-1].Number
		c.Puts = []store.Put{{Cell: store.Cell{ID: r.endTally(), Body: strconv.AppendInt(nil, last, 10)}, If: known.version}}
		done, err := r.commit(ctx, shard, t.Life, nil, c)
		switch {
		case err != nil:
			return err
		case done.Status == store.OK:
			*known = tally{known.version + 1, last}
			r.out.Told = append(r.out.Told, fleet.Committed{Shard: shard, Commit: c, Stamp: done.stamp})
			return nil
		case done.Status == store.Stale: // a lost answer, or a former owner of this shard
			if err := known.read(done.Cell); err != nil {
				return err
			}
			continue
		}
		return store.ErrSealed
	}
	return store.ErrUnavailable
}

func (r *round) endTally() store.CellID { return sent.EndTally(r.ID, r.Topic.Life) }

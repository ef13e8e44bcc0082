package cells

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A task in another topic goes through these, and is in the next before it leaves one: the out-box or the queue
// here, its shard, the in-box there, the out-box or the queue there, the in-box here. They are looked at in that
// order. What is in none of them is lost: its topic was deleted. A child is its cell, and not in the in-box
// there.

// lostAway are the ends of those tasks and children of a workflow in other topics that are lost. The
// in-box here is for the caller to look at.
func (l flowCheck) lostAway(ctx context.Context, id store.CellID, tasks []workflow.TaskRef, children []workflow.ChildRef) (lost []workflow.Event, err error) {
	for _, t := range tasks {
		there, err := l.isSomewhere(ctx, id, t)
		if err != nil {
			return nil, err
		}
		if !there {
			lost = append(lost, t.Lost(l.Now()))
		}
	}
	for _, c := range children {
		there, err := l.hasChild(ctx, id, c)
		if err != nil {
			return nil, err
		}
		if !there {
			lost = append(lost, c.Lost(l.Now()))
		}
	}
	return lost, nil
}

// isSomewhere reports whether a task of a workflow, or its end, is anywhere but in the in-box here.
func (l flowCheck) isSomewhere(ctx context.Context, id store.CellID, t workflow.TaskRef) (bool, error) {
	there, err := l.isLeaving(ctx, t.Topic, t.ID)
	if there || err != nil {
		return there, err
	}
	topic, err := l.TopicOf(ctx, t.Topic)
	if err != nil || topic == nil {
		return false, err
	}
	for _, s := range place.Candidates(topic, t.ID) {
		_, found, err := l.Tasks.Get(ctx, s, []string{t.ID})
		if err != nil || found[0].State != store.StateUnknown {
			return true, err
		}
		ended := func(p *store.Parcel) bool { return p.Ended != nil && p.Ended.ID == t.ID }
		if there, err := l.hasParcel(ctx, s, store.InBox, ended); there || err != nil {
			return there, err
		}
		if there, err := l.comesHome(ctx, s.For(topic.Life), id); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// hasChild is isSomewhere for a child.
func (l flowCheck) hasChild(ctx context.Context, id store.CellID, c workflow.ChildRef) (bool, error) {
	there, err := l.isLeaving(ctx, c.Topic, c.ID)
	if there || err != nil {
		return there, err
	}
	topic, err := l.TopicOf(ctx, c.Topic)
	if err != nil || topic == nil {
		return false, err
	}
	for _, s := range workflow.Shards(topic, c.ID) {
		cells, err := l.Store.Cells(ctx, s, []store.CellID{workflow.CellID(c.ID)})
		if err != nil || cells[0].Version != 0 {
			return true, err
		}
		if there, err := l.comesHome(ctx, s.For(topic.Life), id); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// isLeaving reports whether a task or a child is on its way from here to a topic.
func (l flowCheck) isLeaving(ctx context.Context, topic, id string) (bool, error) {
	is := func(p *store.Parcel) bool { return message.Brings(p) && p.To.Key() == id }
	if there, err := l.hasParcel(ctx, l.ID, store.OutBox, is); there || err != nil {
		return there, err
	}
	return l.hasMessage(ctx, store.Queue{Source: l.ID.For(l.Topic.Life), Class: store.ClassWork, To: topic}, is)
}

// comesHome reports whether something for a workflow is on its way to here from a shard.
func (l flowCheck) comesHome(ctx context.Context, s store.Shard, id store.CellID) (bool, error) {
	is := func(p *store.Parcel) bool { return p.To == id }
	if there, err := l.hasParcel(ctx, s, store.OutBox, is); there || err != nil {
		return there, err
	}
	return l.hasMessage(ctx, store.Queue{Source: s, Class: store.ClassCompletion, To: l.ID.Topic}, is)
}

// hasMessage reports whether a queue has a message like that, or more than are looked through.
func (l flowCheck) hasMessage(ctx context.Context, q store.Queue, is func(*store.Message) bool) (bool, error) {
	for after, n := int64(0), 0; n < checkPages; n++ {
		page, err := l.Store.Messages(ctx, q.Source, q, after, batch, store.MaxBodies)
		if err != nil || slices.ContainsFunc(page.Messages, func(m store.Message) bool { return is(&m) }) {
			return err == nil, err
		}
		if after = page.Next; after == 0 {
			return false, nil
		}
	}
	return true, nil
}

// hasParcel reports whether a box has a parcel like that, or more than are looked through.
func (l flowCheck) hasParcel(ctx context.Context, s store.Shard, box store.Box, is func(*store.Parcel) bool) (bool, error) {
	for after, page := int64(0), 0; page < checkPages; page++ {
		parcels, err := l.Store.Parcels(ctx, s, box, after, batch)
		if err != nil || len(parcels) == 0 {
			return false, err
		}
		for i := range parcels {
			if is(&parcels[i]) {
				return true, nil
			}
		}
		after = parcels[len(parcels)-1].Number
	}
	return true, nil
}

package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// doubt is a task with an id of its caller's for a topic that has former shards: it
// may be in one of them.
type doubt struct {
	task  *NewTask
	out   *Enqueued
	batch *actors.AddBatch
}

// leftover is a dead letter in a former shard whose id was given to a new task.
type leftover struct {
	shard store.Shard
	id    string
	state store.State
	out   *Enqueued // of the new task
}

// resolveDoubts looks for tasks in former shards: those that live there are answered,
// and all others take their way.
func (r *router) resolveDoubts(ctx context.Context, call *shard.Countdown) {
	byShard := make(map[store.Shard][]*doubt)
	for i := range r.doubts {
		d := &r.doubts[i]
		for _, shard := range place.Candidates(d.batch.Topic, d.task.Task.ID)[1:] {
			byShard[shard] = append(byShard[shard], d)
		}
	}
	known := make(map[*doubt]bool)
	for shard, doubts := range ordered.All(byShard, place.Compare) {
		ids := make([]string, len(doubts))
		for i, d := range doubts {
			ids[i] = d.task.Task.ID
		}
		_, found, err := store.GetAll(ctx, r.store, shard, ids)
		for i, d := range doubts {
			if known[d] {
				continue
			}
			if err != nil {
				d.out.Err = problem.FromStore(err)
			} else if !r.meet(d, shard, &found[i]) {
				continue
			}
			known[d] = true
			call.Finish(1)
		}
	}
	for i := range r.doubts {
		if d := &r.doubts[i]; !known[d] {
			r.place(d.task, d.out, d.batch, call)
		}
	}
}

// meet reports whether a task lives in a former shard, and answers that.
func (r *router) meet(d *doubt, shard store.Shard, was *store.Snapshot) bool {
	id := d.task.Task.ID
	switch was.State {
	case store.StateUnknown, store.StateDone: // a done one stays until its retention is over
		return false
	case store.StateDead, store.StateExpired:
		r.leftovers = append(r.leftovers, leftover{shard, id, was.State, d.out})
		return false
	}
	d.out.ID, d.out.Due, d.out.State = id, was.Task.Due, was.State
	if was.Task.Fingerprint == d.task.Task.Fingerprint {
		d.out.Deduplicated = true
	} else {
		d.out.Err = problem.IDConflict(id, was.State)
	}
	return true
}

// clearLeftovers deletes dead letters whose ids have new tasks now. One that stays
// because of an error is no harm but to the eye: givenAnew keeps it from being requeued.
func (s *Tasks) clearLeftovers(ctx context.Context, all []leftover) {
	for _, l := range all {
		if l.out.Err != nil || l.out.Deduplicated {
			continue
		}
		l.out.Replaced = l.state
		_, removed, err := s.store.RemoveDead(ctx, l.shard, []string{l.id})
		if err == nil && removed[0] == store.NotFound { // it was requeued meanwhile, see givenAnew
			_, _, err = s.store.Remove(ctx, l.shard, []string{l.id})
		}
		if err != nil {
			s.node.Log().Warn("replaced dead letter not deleted", "topic", l.shard.Topic, "task", l.id, "err", err)
		}
	}
}

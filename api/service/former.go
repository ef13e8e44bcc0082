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

// rerouteTries is how often tasks are sent again that a shard did not take because
// the topic has got other ones. Each try finds the configuration of the one before.
const rerouteTries = 3

// former answers those tasks of one request that are in former shards of their topics.
type former struct {
	node      *actors.Node
	store     taskStore
	doubts    []doubt
	leftovers []leftover
}

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

// meetKey looks for the keys of a task in the former shards of its topic, which take no
// new task but those of ordering keys that have unfinished ones there: whatever is to
// become of it there is done in the same step. It reports whether that answers the task.
func (f *former) meetKey(ctx context.Context, t *NewTask, out *Enqueued, topic *store.Topic, call *shard.Countdown) (met bool, failed *problem.Error) {
	for _, place := range place.Candidates(topic, t.Task.ID)[1:] {
		var stamp store.Stamp
		var results []store.AddResult
		_, err := f.node.Resolve(ctx, func() (err error) {
			stamp, results, err = f.store.AddKeyed(ctx, place.For(topic.Life), []*store.Task{&t.Task})
			return err
		})
		switch {
		case err != nil:
			return false, problem.FromStore(err)
		case results[0].Status == store.Closed:
			continue
		}
		result := results[0]
		out.ID = t.Task.ID
		(*answer)(out).Added(&t.Task, result)
		if made := result.Status; made == store.Replaced || made == store.Added || made == store.Passed {
			ref, err := f.node.Topics().Open(ctx, t.Topic, false)
			if err == nil {
				ref.Pending(place.N, stamp.Seq, store.Entry{ID: result.ID, Due: result.Due, Traits: t.Task.Traits})
			}
		}
		call.Finish(1)
		return true, nil
	}
	return false, nil
}

// resolve looks for the doubts in former shards, and answers tasks that live there. It
// returns those that go to active shards.
func (f *former) resolve(ctx context.Context, call *shard.Countdown) (rest []*doubt) {
	byShard := make(map[store.Shard][]*doubt)
	for i := range f.doubts {
		d := &f.doubts[i]
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
		_, found, err := store.GetAll(ctx, f.store, shard, ids)
		for i, d := range doubts {
			if known[d] {
				continue
			}
			if err != nil {
				d.out.Err = problem.FromStore(err)
			} else if !f.meet(d, shard, &found[i]) {
				continue
			}
			known[d] = true
			call.Finish(1)
		}
	}
	for i := range f.doubts {
		if d := &f.doubts[i]; !known[d] {
			rest = append(rest, d)
		}
	}
	return rest
}

// meet reports whether a task lives in a former shard, and answers that.
func (f *former) meet(d *doubt, shard store.Shard, was *store.Snapshot) bool {
	id := d.task.Task.ID
	switch was.State {
	case store.StateUnknown, store.StateDone: // a done one stays until its retention is over
		return false
	case store.StateDead, store.StateExpired:
		f.leftovers = append(f.leftovers, leftover{shard, id, was.State, d.out})
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
func (f *former) clearLeftovers(ctx context.Context) {
	for _, l := range f.leftovers {
		if l.out.Err != nil || l.out.Deduplicated {
			continue
		}
		l.out.Replaced = l.state
		_, removed, err := f.store.RemoveDead(ctx, l.shard, []string{l.id})
		if err == nil && removed[0] == store.NotFound { // it was requeued meanwhile, see givenAnew
			_, _, err = f.store.Remove(ctx, l.shard, store.Removals(l.id))
		}
		if err != nil {
			f.node.Log().Warn("replaced dead letter not deleted", "topic", l.shard.Topic, "task", l.id, "err", err)
		}
	}
}

package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// meetKey looks for the keys of a task in the former shards of its topic, which take no
// new task but those of ordering keys that have unfinished ones there: whatever is to
// become of it there is done in the same step. It reports whether that answers the task.
func (r *router) meetKey(ctx context.Context, t *NewTask, out *Enqueued, batch *actors.AddBatch, call *shard.Countdown) (met bool, failed *problem.Error) {
	for _, place := range place.Candidates(batch.Topic, t.Task.ID)[1:] {
		var stamp store.Stamp
		var results []store.AddResult
		_, err := r.node.Resolve(ctx, func() (err error) {
			stamp, results, err = r.store.AddKeyed(ctx, place.For(batch.Topic.Life), []*store.Task{&t.Task})
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
			ref, err := r.node.Topics().Open(ctx, t.Topic, false)
			if err == nil {
				ref.Pending(place.N, stamp.Seq, store.Entry{ID: result.ID, Due: result.Due, Traits: t.Task.Traits})
			}
		}
		call.Finish(1)
		return true, nil
	}
	return false, nil
}

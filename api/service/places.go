package service

import (
	"context"
	"iter"
	"slices"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// places goes through the shards in which a task may be that is to be changed: first as this node knows
// its topic, and once it was in none of them those that the topic has been given since. Another node may
// have given it other shards a moment ago, and have put the task there.
func places(ctx context.Context, node *actors.Node, ref *actors.Topic, id string) iter.Seq2[store.Shard, *problem.Error] {
	return func(yield func(store.Shard, *problem.Error) bool) {
		known := place.Candidates(ref.Config(), id)
		for _, shard := range known {
			if !yield(shard, nil) {
				return
			}
		}
		if err := node.Topics().Refresh(ctx, ref.Config().Name); err != nil {
			yield(store.Shard{}, problem.FromStore(err))
			return
		}
		for _, shard := range place.Candidates(ref.Config(), id) {
			if !slices.Contains(known, shard) && !yield(shard, nil) {
				return
			}
		}
	}
}

package service

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A topic gets another number of shards while it runs: new shards take the new
// tasks, the former ones go on with what they have, and go when they are empty.
//
// The configuration names the new shards first, then the former ones are sealed,
// and only then a node sends tasks to the new ones. So an id that is in none of the
// former shards when a node looks cannot come into one later, and whoever does not
// know of the new shards yet is told by the store. Every step is repeated by every
// node that learns of the configuration: a node that dies in between leaves nothing
// undone.

// Reshard gives a topic another number of shards, 1 to the limit. It returns once
// new tasks go to them; the tasks of the former ones stay there until they end.
func (s *Topics) Reshard(ctx context.Context, name string, shards int) (store.Topic, error) {
	if most := s.limits.Shards; shards < 1 || shards > most {
		return store.Topic{}, problem.BadField("shards", "OUT_OF_RANGE_FIELD", "shards must be 1 to %d", most)
	}
	if _, err := s.node.Topics().Open(ctx, name, false); err != nil {
		return store.Topic{}, err
	}
	t, err := s.reshard(ctx, name, shards)
	if err != nil {
		return store.Topic{}, problem.AsError(err)
	}
	for n := range t.Shards { // hints: the others look for changes by themselves, in a while
		shard := store.Shard{Topic: name, N: t.First + n}
		s.node.Membership().NotifyOwner(shard, fleet.Notice{Released: []store.Shard{shard}})
	}
	return t, nil
}

func (s *Topics) reshard(ctx context.Context, name string, shards int) (store.Topic, error) {
	unlock, err := s.node.Topics().Lock(ctx, name)
	if err != nil {
		return store.Topic{}, err
	}
	defer unlock()
	t, err := s.node.Topics().Stored(ctx, name)
	if err != nil {
		return store.Topic{}, err
	}
	if t.Shards == shards {
		return t, nil
	}
	if err := startGeneration(&t, shards); err != nil {
		return store.Topic{}, err
	}
	if t.Watch.Retention > 0 { // before any task gets there
		if err := s.node.Topics().KeepLogs(ctx, place.Shards(&store.Topic{Name: name, First: t.First, Shards: t.Shards}), t.Watching()); err != nil {
			return store.Topic{}, err
		}
	}
	if t, err = s.store.PutTopic(ctx, t); err != nil {
		return store.Topic{}, err
	}
	if err := s.node.Topics().Configure(ctx, t); err != nil {
		return store.Topic{}, err
	}
	s.node.Log().Info("topic resharded", "topic", name, "shards", shards, "first", t.First)
	return t, nil
}

func startGeneration(t *store.Topic, shards int) *problem.Error {
	free := slices.IndexFunc(t.Former[:], func(span store.Span) bool { return span.Shards == 0 })
	switch {
	case free < 0:
		return &problem.Error{Kind: problem.Precondition, Reason: "RESHARD_PENDING", Field: "name",
			Message: "tasks are left in the shards of three generations; the next one can begin when those of one are done"}
	case t.End()+shards > actors.MaxShardNumber:
		return &problem.Error{Kind: problem.Precondition, Reason: "RESHARD_PENDING", Field: "shards",
			Message: "the numbers of shards are used up; tasks must move to a new topic"}
	}
	t.Former[free] = t.Active()
	t.First, t.Shards = t.End(), shards
	return nil
}

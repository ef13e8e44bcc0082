package actors

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/store"
)

// A shard belongs to the topic that last had it, see store.ShardLife. Whoever creates a topic
// opens the shards that another topic of its name left behind; whoever is told that
// a shard takes no tasks opens it too, because the creator may have died before it did. Both read
// whose the shards are before they read, or write, the catalog: only then is the
// topic in the catalog the later one.

// lives returns whose the active shards of a topic are.
func (s *Topics) lives(ctx context.Context, t *store.Topic) ([]store.ShardLife, error) {
	active := t.Active()
	shards := make([]store.Shard, active.Shards)
	for n := range shards {
		shards[n] = store.Shard{Topic: t.Name, N: active.First + n}
	}
	stats, err := s.rt.CountsOf(ctx, shards)
	lives := make([]store.ShardLife, len(stats))
	for i := range stats {
		lives[i] = stats[i].Life
	}
	return lives, err
}

// openShards gives the active shards of a topic to it that were another topic's, or were
// dropped, when lives was read.
func (s *Topics) openShards(ctx context.Context, t *store.Topic, lives []store.ShardLife) error {
	for n, was := range lives {
		if was == (store.ShardLife{}) || was == (store.ShardLife{Topic: t.Life}) {
			continue
		}
		shard := store.Shard{Topic: t.Name, N: t.First + n, Life: t.Life}
		if _, err := s.rt.Resolve(ctx, func() error { return s.rt.Store.OpenShard(ctx, shard, was) }); err != nil {
			return err
		}
	}
	return nil
}

// Create creates a topic, with shards that take its tasks.
func (s *Topics) Create(ctx context.Context, t store.Topic) (store.Topic, error) {
	lives, err := s.lives(ctx, &t)
	if err != nil {
		return store.Topic{}, err
	}
	if t, err = s.rt.Store.PutTopic(ctx, t); err != nil {
		return store.Topic{}, err
	}
	return t, s.openShards(ctx, &t, lives)
}

// RefreshSealed learns why a shard of a topic takes no tasks: the topic has other shards,
// is gone, or is another one by now. The latter are closed, and open again on their next use.
func (s *Topics) RefreshSealed(ctx context.Context, name string) error {
	unlock, err := s.locks.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	ref, open := s.opened.Load(name)
	if !open {
		return nil
	}
	was := ref.(*Topic).shared.Current.Load()
	lives, err := s.lives(ctx, was)
	if err != nil {
		return err
	}
	t, err := s.Stored(ctx, name)
	switch {
	case errors.Is(err, store.ErrTopicNotFound), err == nil && t.Life != was.Life:
		s.rt.Log.Info("topic closed: it was deleted elsewhere", "topic", name)
		s.CloseLocked(ctx, name)
		return nil
	case err != nil:
		return err
	case t.Active() == was.Active():
		if err := s.openShards(ctx, &t, lives); err != nil {
			return err
		}
	}
	return s.Configure(ctx, t)
}

package actors

import (
	"context"
	"errors"
	"sync"

	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/store"
)

// A shard belongs to the topic that last had it, see store.ShardLife. Whoever creates a topic
// opens the shards that another topic of its name left behind; whoever is told that
// a shard takes no tasks opens it too, because the creator may have died before it did. Both read
// whose the shards are before they read, or write, the catalog: only then is the
// topic in the catalog the later one.

// shardLives has the store give shards to topics.
type shardLives struct{ rt *runtime.Runtime }

// of returns whose the active shards of a topic are.
func (l shardLives) of(ctx context.Context, t *store.Topic) ([]store.ShardLife, error) {
	active := t.Active()
	shards := make([]store.Shard, active.Shards)
	for n := range shards {
		shards[n] = store.Shard{Topic: t.Name, N: active.First + n}
	}
	stats, err := l.rt.CountsOf(ctx, shards)
	lives := make([]store.ShardLife, len(stats))
	for i := range stats {
		lives[i] = stats[i].Life
	}
	return lives, err
}

// open gives the active shards of a topic to it that were another topic's, or were
// dropped, when lives was read.
func (l shardLives) open(ctx context.Context, t *store.Topic, lives []store.ShardLife) error {
	for n, was := range lives {
		if was == (store.ShardLife{}) || was == (store.ShardLife{Topic: t.Life}) {
			continue
		}
		shard := store.Shard{Topic: t.Name, N: t.First + n, Life: t.Life}
		if _, err := l.rt.Resolve(ctx, func() error { return l.rt.Store.OpenShard(ctx, shard, was) }); err != nil {
			return err
		}
	}
	return nil
}

// seal sees to it that the former shards of a topic take no new task.
func (l shardLives) seal(ctx context.Context, t *store.Topic) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs error
	for _, span := range t.Spans()[1:] {
		for n := range span.Shards {
			shard := store.Shard{Topic: t.Name, N: span.First + n}
			wg.Go(func() {
				_, err := l.rt.Resolve(ctx, func() error { return l.rt.Store.Seal(ctx, shard.For(t.Life)) })
				mu.Lock()
				defer mu.Unlock()
				errs = errors.Join(errs, err)
			})
		}
	}
	wg.Wait()
	return errs
}

// Create creates a topic, with shards that take its tasks.
func (s *Topics) Create(ctx context.Context, t store.Topic) (store.Topic, error) {
	if s.Admit != nil {
		done, err := s.Admit(ctx, t.Name)
		if err != nil {
			return store.Topic{}, err
		}
		defer done()
	}
	lives, err := s.lives.of(ctx, &t)
	if err != nil {
		return store.Topic{}, err
	}
	if t, err = s.rt.Store.PutTopic(ctx, t); err != nil {
		return store.Topic{}, err
	}
	return t, s.lives.open(ctx, &t, lives)
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
	lives, err := s.lives.of(ctx, was)
	if err != nil {
		return err
	}
	t, err := s.Stored(ctx, name)
	switch {
	case errors.Is(err, store.ErrTopicNotFound), err == nil && t.Life != was.Life:
		s.rt.Log.Info("topic closed: it was deleted elsewhere", "topic", name)
		s.rt.Meter.Forget(name)
		s.CloseLocked(ctx, name)
		return nil
	case err != nil:
		return err
	case t.Active() == was.Active():
		if err := s.lives.open(ctx, &t, lives); err != nil {
			return err
		}
	}
	return s.Configure(ctx, t)
}

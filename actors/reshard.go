package actors

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/store"
)

// A topic gets another number of shards while it runs: new shards take the new
// tasks, the former ones go on with what they have, and go when they are empty.
//
// The configuration names the new shards first, then the former ones are sealed,
// and only then a node sends tasks to the new ones. So an id that is in none of the
// former shards when a node looks cannot come into one later, and whoever does not
// know of the new shards yet is told by the store. Every step is repeated by every
// node that takes in the configuration: a node that dies in between leaves nothing
// undone.

// maxShardNumber is what a hold token has room for.
const maxShardNumber = 1<<16 - 1

// Reshard gives a topic another number of shards, 1 to the limit. It returns once
// new tasks go to them; the tasks of the former ones stay there until they end.
func (s *System) Reshard(ctx context.Context, name string, shards int) (store.Topic, error) {
	if most := s.cfg.Limits.Shards; shards < 1 || shards > most {
		return store.Topic{}, invalid("shards", "OUT_OF_RANGE_FIELD", "shards must be 1 to %d", most)
	}
	if _, err := s.topic(ctx, name, false); err != nil {
		return store.Topic{}, err
	}
	t, err := s.reshard(ctx, name, shards)
	if err != nil {
		return store.Topic{}, failure(err)
	}
	for n := range t.Shards { // hints: the others look for changes by themselves, in a while
		shard := store.Shard{Topic: name, N: t.First + n}
		s.fleet.notifyOwner(shard, Notice{Released: []store.Shard{shard}})
	}
	return t, nil
}

func (s *System) reshard(ctx context.Context, name string, shards int) (store.Topic, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.stored(ctx, name)
	if err != nil {
		return store.Topic{}, err
	}
	if t.Shards == shards {
		return t, nil
	}
	if err := startGeneration(&t, shards); err != nil {
		return store.Topic{}, err
	}
	if t.WatchRetention > 0 { // before any task gets there
		if err := s.keepLogs(ctx, shardsOf(&store.Topic{Name: name, First: t.First, Shards: t.Shards}), t.Watching()); err != nil {
			return store.Topic{}, err
		}
	}
	if t, err = s.store.PutTopic(ctx, t); err != nil {
		return store.Topic{}, err
	}
	if err := s.configure(ctx, t); err != nil {
		return store.Topic{}, err
	}
	s.log.Info("topic resharded", "topic", name, "shards", shards, "first", t.First)
	return t, nil
}

func startGeneration(t *store.Topic, shards int) *Error {
	free := slices.IndexFunc(t.Former[:], func(span store.Span) bool { return span.Shards == 0 })
	switch {
	case free < 0:
		return &Error{Kind: Precondition, Reason: "RESHARD_PENDING", Field: "name",
			Message: "tasks are left in the shards of three generations; the next one can begin when those of one are done"}
	case t.End()+shards > maxShardNumber:
		return &Error{Kind: Precondition, Reason: "RESHARD_PENDING", Field: "shards",
			Message: "the numbers of shards are used up; tasks must move to a new topic"}
	}
	t.Former[free] = t.Active()
	t.First, t.Shards = t.End(), shards
	return nil
}

// seal sees to it that the former shards of a topic take no new task.
func (s *System) seal(ctx context.Context, t *store.Topic) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs error
	for _, span := range t.Spans()[1:] {
		for n := range span.Shards {
			shard := store.Shard{Topic: t.Name, N: span.First + n}
			wg.Go(func() {
				_, err := s.resolve(ctx, func() error { return s.store.Seal(ctx, shard) })
				mu.Lock()
				defer mu.Unlock()
				errs = errors.Join(errs, err)
			})
		}
	}
	wg.Wait()
	return errs
}

// retire takes former shards that are empty out of a topic's configuration. They
// are sealed, so they stay empty. Those whose logs tell of their last tasks stay until
// watchers had the time to read that.
func (s *System) retire(ctx context.Context, t store.Topic) error {
	var kept [store.MaxFormer]store.Span
	n := 0
	for _, span := range t.Former {
		if span.Shards == 0 {
			continue
		}
		empty, err := s.empty(ctx, t.Name, span)
		if err != nil {
			return err
		}
		if !empty {
			kept[n] = span
			n++
		}
	}
	if kept == t.Former {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.stored(ctx, t.Name)
	if err != nil || now.Former != t.Former {
		return err // look again, next time
	}
	now.Former = kept
	t, err = s.store.PutTopic(ctx, now)
	if errors.Is(err, store.ErrVersion) {
		return nil // another node was quicker
	}
	if err != nil {
		return err
	}
	s.log.Info("former shards are empty", "topic", t.Name)
	return s.configure(ctx, t)
}

func (s *System) empty(ctx context.Context, topic string, span store.Span) (bool, error) {
	shards := make([]store.Shard, span.Shards)
	for n := range shards {
		shards[n] = store.Shard{Topic: topic, N: span.First + n}
	}
	stats, err := s.statsOf(ctx, shards)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(stats, func(st store.Stats) bool {
		return st.Pending+st.Running+st.Done+st.Dead > 0 || st.Keys || st.Logged
	}), nil
}

// reshape gives the topic's actor other shards. One that is still on its way out cannot
// come back yet: the topic stays as it is until the configuration is looked at again.
func (t *topicActor) reshape(c spawner, m *reshaped) {
	defer close(m.done)
	if m.topic == *t.ref.config.Load() {
		return
	}
	last := *t.ref.layout.Load()
	next := layoutOf(t.ref.pid, &m.topic, last)
	fresh, gone := last.changes(next)
	for _, n := range fresh {
		if slices.ContainsFunc(c.Children(), func(child *actor.PID) bool { return child.Id == next[n].pid.Id }) {
			return
		}
	}
	for _, n := range fresh {
		t.spawnShard(c, n, next[n].dozing)
	}
	for _, n := range gone {
		t.core.drop(n)
		t.owned[n] = false
		c.Poison(last[n].pid)
	}
	t.owned = append(t.owned, make([]bool, max(0, len(next)-len(t.owned)))...)
	t.ref.layout.Store(&next)
	for _, n := range fresh {
		t.place(t.ref, n)
	}
	t.ref.config.Store(&m.topic)
	t.configure(&configured{m.topic})
}

package actors

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// An open topic is what the store says it is, also when that is an earlier state: a
// failover of the store can undo changes, and versions are given again then. So what
// counts is not the version but what was read last, and everything that is taken in
// was read or written under System.mu: of two answers the later one is taken in last.
//
// Shards are the exception. Tasks may be in those of a generation that the store has
// forgotten, and the ones before it may be sealed, so such a generation is put back.

// turnstile lets one caller at a time through. It is no sync.Mutex because what waits
// for one keeps the time of a synctest bubble from passing, and calls of the store are
// made inside.
type turnstile chan struct{}

func newTurnstile() turnstile { return make(turnstile, 1) }

// Lock waits until nobody else is inside.
func (t turnstile) Lock() { t <- struct{}{} }

// Unlock lets the next one in.
func (t turnstile) Unlock() { <-t }

// followTopics takes in what other nodes changed. It does nothing that could take
// long: a change is effective on every node within two seconds.
func (s *System) followTopics(ctx context.Context) {
	err := s.readClock(ctx)
	topics, e := s.store.ListTopics(ctx)
	if err = errors.Join(err, e); e == nil {
		s.closeReplaced(ctx, topics)
	}
	for i := range topics {
		ref, open := s.topics.Load(topics[i].Name)
		if !open || *ref.(*topicRef).config.Load() == topics[i] {
			continue
		}
		// The list may be older than what was changed here since, so it is asked again.
		if e := s.refreshTopic(ctx, topics[i].Name); !errors.Is(e, store.ErrTopicNotFound) { // see closeReplaced
			err = errors.Join(err, e)
		}
	}
	s.noteIncomplete(ctx, err)
}

// refreshTopic takes in what the store says of a topic.
func (s *System) refreshTopic(ctx context.Context, name string) error {
	_, err := s.readTopic(ctx, name)
	return err
}

// readTopic is refreshTopic, and returns what that is.
func (s *System) readTopic(ctx context.Context, name string) (store.Topic, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.stored(ctx, name)
	if err != nil {
		return store.Topic{}, err
	}
	return t, s.configure(ctx, t)
}

// stored returns what the store says of a topic, after a generation of shards that it
// has forgotten was put back. The caller has mu.
func (s *System) stored(ctx context.Context, name string) (store.Topic, error) {
	t, err := s.store.GetTopic(ctx, name)
	if err != nil {
		return store.Topic{}, err
	}
	ref, open := s.topics.Load(name)
	if !open {
		return t, nil
	}
	was := ref.(*topicRef).config.Load()
	again, undone := restored(was, &t)
	if !undone {
		return t, nil
	}
	switch again, err = s.store.PutTopic(ctx, again); {
	case errors.Is(err, store.ErrVersion): // another node was quicker
		return s.store.GetTopic(ctx, name)
	case err != nil:
		return store.Topic{}, err
	}
	s.log.Warn("the store has forgotten a reshard, which is made again", "topic", name, "shards", again.Shards, "first", again.First)
	return again, nil
}

// configure makes a configuration effective where its topic is open. The caller has
// mu since before it read or wrote t.
func (s *System) configure(ctx context.Context, t store.Topic) error {
	open, ok := s.topics.Load(t.Name)
	if !ok {
		return nil
	}
	ref := open.(*topicRef)
	switch was := ref.config.Load(); {
	case *was == t || replaced(was, &t): // another topic of that name: see closeReplaced
		return nil
	case was.Active() == t.Active() && was.Former == t.Former:
		ref.config.Store(&t)
		s.send(ref.pid, &configured{topic: t})
		return nil
	}
	if err := s.seal(ctx, &t); err != nil {
		return err
	}
	done := make(chan struct{})
	s.send(ref.pid, &reshaped{topic: t, done: done})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replaced reports whether t is another topic than was, of the same name: it has
// neither the same shards nor later ones, and was is not what became of it.
func replaced(was, t *store.Topic) bool {
	if t.Active() == was.Active() || t.First >= was.End() {
		return false
	}
	_, undone := restored(was, t)
	return !undone
}

// restored reports whether t is a state of before the last reshard that was tells of, and
// returns t with the shards of both. There is room for MaxFormer generations, and none
// for two that have a number in common: after another reshard, or too many, t is what
// counts, and was is replaced.
func restored(was, t *store.Topic) (again store.Topic, undone bool) {
	if t.Life != was.Life || t.End() > was.First {
		return store.Topic{}, false
	}
	former := slices.Concat(t.Spans(), was.Spans()[1:])
	slices.SortFunc(former, func(a, b store.Span) int { return cmp.Or(a.First-b.First, a.Shards-b.Shards) })
	former = slices.Compact(former)
	for i := range former[1:] {
		if former[i].First+former[i].Shards > former[i+1].First {
			return store.Topic{}, false
		}
	}
	if len(former) > store.MaxFormer {
		return store.Topic{}, false
	}
	again = *t
	again.First, again.Shards, again.Former = was.First, was.Shards, [store.MaxFormer]store.Span{}
	copy(again.Former[:], former)
	return again, true
}

// closeReplaced closes topics that were deleted at another node, and those that were
// created anew with another number of shards: they open again on first use.
func (s *System) closeReplaced(ctx context.Context, topics []store.Topic) {
	byName := make(map[string]*store.Topic, len(topics))
	for i := range topics {
		byName[topics[i].Name] = &topics[i]
	}
	s.eachTopic(func(ref *topicRef) {
		was := ref.config.Load()
		if t := byName[was.Name]; t == nil || replaced(was, t) {
			s.closeIfReplaced(ctx, was)
		}
	})
}

// closeIfReplaced asks again: the topic may be younger than the list.
func (s *System) closeIfReplaced(ctx context.Context, was *store.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.store.GetTopic(ctx, was.Name)
	switch {
	case errors.Is(err, store.ErrTopicNotFound) || err == nil && replaced(was, &t) && t.Life != was.Life:
		s.log.Info("topic closed: it was deleted elsewhere", "topic", was.Name)
	case err == nil && replaced(was, &t):
		s.log.Error("topic closed: the store has forgotten a reshard, and shards that it does not have may have tasks",
			"topic", was.Name, "first", was.First, "shards", was.Shards)
	default:
		return
	}
	s.closeLocked(ctx, was.Name)
}

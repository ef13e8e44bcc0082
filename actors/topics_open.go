package actors

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// OpenActive opens the topics that have something to do soon in shards of this node; the others
// open on first use.
func (s *Topics) OpenActive(ctx context.Context) error {
	topics, err := s.rt.Store.ListTopics(ctx)
	if err != nil {
		return err
	}
	a := s.closedOurs(topics)
	if a.stats, err = s.rt.CountsOf(ctx, a.shards); err != nil {
		return err
	}
	a.wakes, err = s.wakes.at(ctx, a.shards, a.stats)
	for _, t := range a.opening(s.cfg.opensAhead()) {
		s.open(ctx, *t)
	}
	s.showResting(ctx, &a)
	return err
}

// Open returns an open topic. An unknown one is created when create is set and the configuration allows it, and so do
// checks, which are told what it would be.
func (s *Topics) Open(ctx context.Context, name string, create bool, checks ...func(*store.Topic) *problem.Error) (*Topic, *problem.Error) {
	if ref, ok := s.inUse(name); ok {
		return ref, nil
	}
	if err := CheckTopicName("topic", name); err != nil {
		return nil, err
	}
	unlock, err := s.locks.Lock(ctx, name)
	if err != nil {
		return nil, problem.FromStore(err)
	}
	defer unlock()
	if ref, ok := s.inUse(name); ok { // whoever was before opened it, or did not close it
		return ref, nil
	}
	t, err := s.rt.Store.GetTopic(ctx, name)
	if errors.Is(err, store.ErrTopicNotFound) && create && !s.cfg.NoAutoCreate {
		t = s.forgotten.asItWas(s.New(name))
		for _, check := range checks {
			if err := check(&t); err != nil {
				return nil, err
			}
		}
		t, err = s.autoCreate(ctx, t)
	}
	if errors.Is(err, store.ErrTopicNotFound) {
		return nil, problem.NoTopic(name)
	}
	if err != nil {
		return nil, problem.FromStore(err)
	}
	return s.openLocked(ctx, t)
}

func (s *Topics) autoCreate(ctx context.Context, t store.Topic) (store.Topic, error) {
	created, err := s.Create(ctx, t)
	if errors.Is(err, store.ErrTopicExists) {
		return s.rt.Store.GetTopic(ctx, t.Name)
	}
	if err == nil && s.forgotten.drop(t.Name) {
		s.rt.Log.Error("topic made again, with the policy that this node knew: the store has forgotten it", "topic", t.Name)
	}
	return created, err
}

// New is a topic as the node's configuration wants it, different from all others of
// its name that were before.
func (s *Topics) New(name string) store.Topic {
	t := s.cfg.Topic
	t.Name, t.Life = name, rand.Uint64()
	return t
}

func (s *Topics) open(ctx context.Context, t store.Topic) {
	unlock, err := s.locks.Lock(ctx, t.Name)
	if err != nil {
		return
	}
	defer unlock()
	_, _ = s.openLocked(ctx, t) // what is not opened now is found by discover
}

func (s *Topics) openLocked(ctx context.Context, t store.Topic) (*Topic, *problem.Error) {
	if err := s.rt.Serving(); err != nil {
		return nil, err
	}
	if ref, ok := s.opened.Load(t.Name); ok {
		return ref.(*Topic), nil
	}
	if err := s.lives.seal(ctx, &t); err != nil {
		return nil, problem.FromStore(err)
	}
	reply := make(chan *Topic, 1)
	s.rt.Send(s.supervisor, &openTopic{topic: s.Caps.Bounded(t), reply: reply})
	ref := <-reply
	<-ref.ready // what is sent to a shard before that is lost
	ref.touch()
	s.opened.Store(t.Name, ref)
	s.shown.forget(t.Name)
	ref.opened.Store(true)
	for _, shard := range place.Shards(&t) {
		ref.place(shard.N)
	}
	s.turns.add(ref)
	if err := s.learnClocks(ctx, &t); err != nil {
		return nil, problem.FromStore(err)
	}
	return ref, nil
}

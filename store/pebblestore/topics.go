package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// catalog keeps the configuration of topics.
type catalog struct {
	*base
	mu     sync.Mutex    // one change of a topic at a time
	listed []store.Topic // as ListTopics read them; nil: they have changed. Guarded by mu
}

// PutTopic stores a topic's configuration when its version is the stored one.
func (s *catalog) PutTopic(ctx context.Context, topic store.Topic) (store.Topic, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer s.dir.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	current, err := readTopic(s.dir, topic.Name)
	switch {
	case err != nil && !errors.Is(err, store.ErrTopicNotFound):
		return store.Topic{}, err
	case err == nil && topic.Version == 0:
		return store.Topic{}, fmt.Errorf("%w: %s", store.ErrTopicExists, topic.Name)
	case topic.Version == 0 && !s.dir.Room():
		return store.Topic{}, s.dir.FullError()
	case current.Version != topic.Version: // 0 when there is none
		return store.Topic{}, fmt.Errorf("%w: %s has version %d", store.ErrVersion, topic.Name, current.Version)
	}
	topic.Version++
	value, err := record.EncodeTopic(topic)
	if err != nil {
		return store.Topic{}, err
	}
	s.listed = nil
	return topic, s.dir.Set(topicKey(topic.Name), value)
}

// GetTopic returns a topic's configuration.
func (s *catalog) GetTopic(ctx context.Context, name string) (store.Topic, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Topic{}, err
	}
	defer s.dir.Leave()
	s.mu.Lock() // what a change under way has written is not synced yet
	defer s.mu.Unlock()
	return readTopic(s.dir, name)
}

// ListTopics returns every topic, by name.
func (s *catalog) ListTopics(ctx context.Context) ([]store.Topic, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.dir.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed == nil {
		var topics []store.Topic
		if err := eachTopic(s.dir, func(t store.Topic) { topics = append(topics, t) }); err != nil {
			return nil, err
		}
		s.listed = topics
	}
	return slices.Clone(s.listed), nil
}

// DeleteTopic removes a topic's configuration only, when it has that life.
func (s *catalog) DeleteTopic(ctx context.Context, name string, life uint64) error {
	if err := s.dir.Enter(ctx); err != nil {
		return err
	}
	defer s.dir.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t, err := readTopic(s.dir, name); {
	case err != nil:
		return err
	case t.Life != life:
		return fmt.Errorf("%w: %s is another one by now", store.ErrTopicNotFound, name)
	}
	s.listed = nil
	return s.dir.Delete(topicKey(name))
}

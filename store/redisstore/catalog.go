package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// catalog is store.Catalog.
type catalog struct {
	*core
	listed topicCache
}

// PutTopic implements store.Catalog.
func (s *catalog) PutTopic(ctx context.Context, t store.Topic) (store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	old, current, err := s.topic(ctx, t.Name)
	switch {
	case err != nil && !errors.Is(err, store.ErrTopicNotFound):
		return store.Topic{}, err
	case err == nil && t.Version == 0:
		return store.Topic{}, store.ErrTopicExists
	case current.Version != t.Version:
		return store.Topic{}, store.ErrVersion
	}
	t.Version++
	encoded, err := record.EncodeTopic(t)
	if err != nil {
		return store.Topic{}, fmt.Errorf("put topic %q: %w", t.Name, err)
	}
	v, err := s.conn.Run(ctx, s.lua.putTopic, []string{topicsKey}, []any{t.Name, old, encoded})
	if err != nil {
		return store.Topic{}, conn.WriteError("put topic", err)
	}
	if number(v) == 0 && t.Version == 1 {
		return store.Topic{}, store.ErrTopicExists
	}
	if number(v) == 0 {
		return store.Topic{}, store.ErrVersion
	}
	return t, nil
}

// topic returns a topic as it is stored, and decoded.
func (s *catalog) topic(ctx context.Context, name string) (string, store.Topic, error) {
	get := redis.NewStringCmd(ctx, "hget", topicsKey, name)
	err := s.conn.Send(ctx, topicsKey, get)
	if errors.Is(err, redis.Nil) {
		return "", store.Topic{}, store.ErrTopicNotFound
	}
	if err != nil {
		return "", store.Topic{}, conn.ReadError("get topic", err)
	}
	encoded := get.Val()
	t, err := record.DecodeTopic([]byte(encoded))
	if err != nil {
		return "", store.Topic{}, fmt.Errorf("topic %q: %w", name, err)
	}
	return encoded, t, nil
}

// GetTopic implements store.Catalog.
func (s *catalog) GetTopic(ctx context.Context, name string) (store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return store.Topic{}, err
	}
	_, t, err := s.topic(ctx, name)
	return t, err
}

// ListTopics implements store.Catalog.
func (s *catalog) ListTopics(ctx context.Context) ([]store.Topic, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	all := redis.NewMapStringStringCmd(ctx, "hgetall", topicsKey)
	if err := s.conn.Send(ctx, topicsKey, all); err != nil {
		return nil, conn.ReadError("list topics", err)
	}
	return s.listed.decode(all.Val())
}

// topicCache has the topics that were listed last: most listings are the same again. It is safe
// for concurrent use.
type topicCache struct {
	mu      sync.Mutex
	encoded map[string]string      // as they were listed; guarded by mu
	topics  map[string]store.Topic // guarded by mu
	sorted  []store.Topic          // by name; guarded by mu
}

// decode returns the topics of a listing, by name. They are the caller's.
func (c *topicCache) decode(all map[string]string) ([]store.Topic, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(all, c.encoded) {
		if err := c.learn(all); err != nil {
			return nil, err
		}
	}
	return slices.Clone(c.sorted), nil
}

// learn takes a listing for the last one.
func (c *topicCache) learn(all map[string]string) error {
	topics := make(map[string]store.Topic, len(all))
	for name, encoded := range all {
		t, known := c.topics[name]
		if was := c.encoded[name]; !known || was != encoded {
			var err error
			if t, err = record.DecodeTopic([]byte(encoded)); err != nil {
				return fmt.Errorf("topic %q: %w", name, err)
			}
		}
		topics[name] = t
	}
	byName := func(a, b store.Topic) int { return strings.Compare(a.Name, b.Name) }
	c.encoded, c.topics, c.sorted = all, topics, slices.SortedFunc(maps.Values(topics), byName)
	return nil
}

// DeleteTopic implements store.Catalog.
func (s *catalog) DeleteTopic(ctx context.Context, name string, life uint64) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	for {
		read, t, err := s.topic(ctx, name)
		if err == nil && t.Life != life {
			err = store.ErrTopicNotFound
		}
		if err != nil {
			return err
		}
		deleted, err := s.conn.Run(ctx, s.lua.deleteTopic, []string{topicsKey}, []any{name, read})
		if err != nil {
			return conn.WriteError("delete topic", err)
		}
		if number(deleted) == 1 {
			return nil
		}
	}
}

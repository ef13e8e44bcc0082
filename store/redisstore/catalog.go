package redisstore

import (
	"context"
	"errors"
	"fmt"
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
	topics, err := s.listed.decode(all.Val())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(topics, func(a, b store.Topic) int { return strings.Compare(a.Name, b.Name) })
	return topics, nil
}

// topicCache has the topics that were listed last: most are the same next time. It is safe for
// concurrent use.
type topicCache struct {
	mu   sync.Mutex
	last map[string]listedTopic // guarded by mu
}

type listedTopic struct {
	encoded string
	topic   store.Topic
}

// decode returns the topics of a listing, in no order.
func (c *topicCache) decode(all map[string]string) ([]store.Topic, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	topics, next := make([]store.Topic, 0, len(all)), make(map[string]listedTopic, len(all))
	for name, encoded := range all {
		l := c.last[name]
		if l.encoded != encoded || encoded == "" {
			t, err := record.DecodeTopic([]byte(encoded))
			if err != nil {
				return nil, fmt.Errorf("topic %q: %w", name, err)
			}
			l = listedTopic{encoded, t}
		}
		next[name] = l
		topics = append(topics, l.topic)
	}
	c.last = next
	return topics, nil
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

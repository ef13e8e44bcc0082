package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/pagetoken"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/service/steps"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Topics is what is done with whole topics.
type Topics struct {
	node      *actors.Node
	store     topicStore
	cells     store.Cells // nil: the store keeps none
	audiences *audiences.Audiences
	limits    *limits
	look      *lookup
	indexNow  func(*store.Topic)
	steps     *steps.Steps
}

// topicStore is the role of the store for Topics.
type topicStore interface {
	taskStore
	store.Catalog
	store.Retention
	store.Limits
}

// Create creates a topic; fields that are nil take the node's defaults.
func (s *Topics) Create(ctx context.Context, name string, c TopicChange) (store.Topic, error) {
	if err := actors.CheckTopicName("name", name); err != nil {
		return store.Topic{}, err
	}
	t := s.node.Topics().New(name)
	if c.Shards != nil {
		if *c.Shards < 1 || *c.Shards > s.limits.Shards {
			return store.Topic{}, problem.BadField("policy.shards", "OUT_OF_RANGE_FIELD", "policy.shards must be 1 to %d", s.limits.Shards)
		}
		t.Shards = *c.Shards
	}
	if err := s.limits.apply(&t, c); err != nil {
		return store.Topic{}, err
	}
	t, err := s.node.Topics().Create(ctx, t)
	if err == nil && t.Watch.Retention > 0 {
		err = s.node.Topics().KeepLogs(ctx, place.Shards(&t), t.Watching())
	}
	if err == nil && t.Indexed != "" {
		s.indexNow(&t)
	}
	return t, problem.AsError(err)
}

// Configure changes the fields that are not nil. It is effective when it returns.
func (s *Topics) Configure(ctx context.Context, name string, c TopicChange) (store.Topic, error) {
	if err := actors.CheckTopicName("name", name); err != nil {
		return store.Topic{}, err
	}
	unlock, err := s.node.Topics().Lock(ctx, name)
	if err != nil {
		return store.Topic{}, problem.AsError(err)
	}
	defer unlock()
	t, err := s.node.Topics().Stored(ctx, name)
	if err != nil {
		return store.Topic{}, problem.AsError(err)
	}
	if c.IfVersion != nil && *c.IfVersion != t.Version {
		return store.Topic{}, problem.TopicVersionMismatch(name, *c.IfVersion)
	}
	if c.Shards != nil && *c.Shards != t.Shards {
		return store.Topic{}, problem.BadField("policy.shards", "OUT_OF_RANGE_FIELD", "policy.shards is %d and is changed by ReshardTopic (ddq cluster reshard)", t.Shards)
	}
	paused, watching := t.DeliveryPaused, t.Watching()
	if err := s.limits.apply(&t, c); err != nil {
		return store.Topic{}, err
	}
	c.rampUp(&t, paused, store.Millis(s.node.Clock().Now().UnixMilli()))
	t, err = s.store.PutTopic(ctx, t)
	switch {
	case errors.Is(err, store.ErrVersion) && c.IfVersion != nil:
		return store.Topic{}, problem.TopicVersionMismatch(name, *c.IfVersion)
	case err != nil:
		return store.Topic{}, problem.AsError(err)
	}
	if watching != t.Watching() {
		if err := s.node.Topics().KeepLogs(ctx, place.Shards(&t), t.Watching()); err != nil {
			return store.Topic{}, problem.AsError(err)
		}
	}
	if c.Indexed != nil {
		defer s.indexNow(&t) // once this node says so to its tasks
	}
	return t, problem.AsError(s.node.Topics().Configure(ctx, t))
}

// Describe returns a topic's configuration and what is in it.
func (s *Topics) Describe(ctx context.Context, name string) (TopicStatus, error) {
	topics, e := s.look.topics(ctx, cmp.Or(name, "?"))
	if e != nil {
		return TopicStatus{}, e
	}
	status := TopicStatus{Topic: topics[0]}
	stats, err := s.store.Stats(ctx, place.Shards(&status.Topic))
	if err != nil {
		return TopicStatus{}, problem.AsError(err)
	}
	status.Default = s.node.Topics().New(name)
	status.Depth, status.Indexing = metrics.DepthOf(stats), indexing(&status.Topic, stats)
	status.Subscriptions, err = s.node.Topics().Subscriptions(ctx, name)
	return status, problem.AsError(err)
}

const topicsPage = "topics:"

// List pages through the topics of the namespace of the call, by name.
func (s *Topics) List(ctx context.Context, size int, token string) (topics []store.Topic, next string, err error) {
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	after, ok := pagetoken.Position(topicsPage, token)
	if !ok {
		return nil, "", problem.AsError(store.ErrBadCursor)
	}
	if topics, err = s.store.ListTopics(ctx); err != nil {
		return nil, "", problem.AsError(err)
	}
	topics = scope.Topics(ctx, topics)
	from, found := slices.BinarySearchFunc(topics, after, func(t store.Topic, name string) int {
		return strings.Compare(t.Name, name)
	})
	if found {
		from++
	}
	topics = topics[from:]
	if size = min(cmp.Or(size, 100), s.limits.PageSize); len(topics) > size {
		topics = topics[:size]
		next = pagetoken.Make(topicsPage, topics[size-1].Name)
	}
	return topics, next, nil
}

// Purged is what came of a purge.
type Purged struct {
	Deleted int64
	Skipped int64 // tasks of workflows, which stay
}

// Purge deletes the pending tasks that are no steps'.
func (s *Topics) Purge(ctx context.Context, name string) (done Purged, err error) {
	topics, e := s.look.topics(ctx, cmp.Or(name, "?"))
	if e != nil {
		return done, e
	}
	ref, e := s.node.Topics().Open(ctx, name, false)
	if e != nil {
		return done, e
	}
	for _, shard := range place.Shards(&topics[0]) {
		if err := s.purge(ctx, shard, ref, &done); err != nil {
			return done, problem.AsError(err)
		}
	}
	return done, nil
}

func (s *Topics) purge(ctx context.Context, shard store.Shard, ref *actors.Topic, done *Purged) error {
	after := store.Entry{}
	for {
		_, page, err := s.store.Window(ctx, shard, store.WindowQuery{After: after, To: store.MaxDue, Limit: purgePage})
		if err != nil || len(page) == 0 {
			return err
		}
		all := make([]string, len(page))
		for i, e := range page {
			all[i] = e.ID
		}
		ids, e := s.steps.Without(ctx, shard, all)
		if e != nil {
			return e
		}
		stamp, results, err := s.store.Remove(ctx, shard, store.Removals(ids...))
		if err != nil {
			return err
		}
		done.Skipped += int64(len(all) - len(ids))
		gone := ids[:0]
		for i, r := range results {
			if r.Status == store.OK {
				gone = append(gone, ids[i])
			}
		}
		done.Deleted += int64(len(gone))
		ref.Deleted(shard.N, stamp.Seq, gone...)
		after = page[len(page)-1]
	}
}

const (
	purgePage = 500
)

// indexing counts shards whose index is not what the topic says.
func indexing(t *store.Topic, stats []store.Stats) (n int) {
	for i := range stats {
		if stats[i].Index.Ready != t.Indexed {
			n++
		}
	}
	return n
}

// TopicStatus is a topic as it stands.
type TopicStatus struct {
	store.Topic
	Default       store.Topic // one that is created now
	Depth         metrics.Depth
	Subscriptions int // on this node
	Indexing      int // shards whose index is not what the topic says yet
}

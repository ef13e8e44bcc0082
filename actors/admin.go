package actors

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

// CreateTopic creates a topic; fields that are nil take the node's defaults.
func (s *System) CreateTopic(ctx context.Context, name string, c TopicChange) (store.Topic, error) {
	if err := checkTopicName("name", name); err != nil {
		return store.Topic{}, err
	}
	t := s.newTopic(name)
	if c.Shards != nil {
		if *c.Shards < 1 || *c.Shards > s.cfg.Limits.Shards {
			return store.Topic{}, invalid("policy.shards", "OUT_OF_RANGE_FIELD", "policy.shards must be 1 to %d", s.cfg.Limits.Shards)
		}
		t.Shards = *c.Shards
	}
	if err := s.cfg.Limits.apply(&t, c); err != nil {
		return store.Topic{}, err
	}
	t, err := s.store.PutTopic(ctx, t)
	if err == nil && t.WatchRetention > 0 {
		err = s.keepLogs(ctx, shardsOf(&t), t.Watching())
	}
	if err == nil && t.Indexed != "" {
		s.indexNow(&t)
	}
	return t, failure(err)
}

// ConfigureTopic changes the fields that are not nil. It is effective when it returns.
func (s *System) ConfigureTopic(ctx context.Context, name string, c TopicChange) (store.Topic, error) {
	if err := checkTopicName("name", name); err != nil {
		return store.Topic{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.stored(ctx, name)
	if err != nil {
		return store.Topic{}, failure(err)
	}
	if c.IfVersion != nil && *c.IfVersion != t.Version {
		return store.Topic{}, errTopicVersion(name, *c.IfVersion)
	}
	if c.Shards != nil && *c.Shards != t.Shards {
		return store.Topic{}, invalid("policy.shards", "OUT_OF_RANGE_FIELD", "policy.shards is %d and is changed by ReshardTopic (ddq cluster reshard)", t.Shards)
	}
	paused, watching := t.DeliveryPaused, t.Watching()
	if err := s.cfg.Limits.apply(&t, c); err != nil {
		return store.Topic{}, err
	}
	c.rampUp(&t, paused, store.Millis(s.clock.Now().UnixMilli()))
	t, err = s.store.PutTopic(ctx, t)
	switch {
	case errors.Is(err, store.ErrVersion) && c.IfVersion != nil:
		return store.Topic{}, errTopicVersion(name, *c.IfVersion)
	case err != nil:
		return store.Topic{}, failure(err)
	}
	if watching != t.Watching() {
		if err := s.keepLogs(ctx, shardsOf(&t), t.Watching()); err != nil {
			return store.Topic{}, failure(err)
		}
	}
	if c.Indexed != nil {
		defer s.indexNow(&t) // once this node says so to its tasks
	}
	return t, failure(s.configure(ctx, t))
}

func (l *Limits) apply(t *store.Topic, c TopicChange) *Error {
	set(&t.Visibility, c.Visibility)
	set(&t.MaxRetries, c.MaxRetries)
	set(&t.Backoff, c.Backoff)
	set(&t.MaxDelay, c.MaxDelay)
	set(&t.MaxPayload, c.MaxPayload)
	set(&t.DoneRetention, c.DoneRetention)
	set(&t.DeadRetention, c.DeadRetention)
	set(&t.MaxDead, c.MaxDead)
	set(&t.MaxBacklog, c.MaxBacklog)
	set(&t.PriorityAgeing, c.PriorityAgeing)
	set(&t.WatchRetention, c.WatchRetention)
	set(&t.WatchMax, c.WatchMax)
	set(&t.DeliveryPaused, c.DeliveryPaused)
	set(&t.EnqueuePaused, c.EnqueuePaused)
	switch {
	case t.MaxRetries < 0 || t.MaxRetries > l.MaxRetries:
		return invalid("policy.max_retries", "OUT_OF_RANGE_FIELD", "policy.max_retries must be 0 to %d", l.MaxRetries)
	case t.MaxDelay < 0 || t.MaxDelay > l.Delay:
		return invalid("policy.max_delay_ms", "OUT_OF_RANGE_FIELD", "policy.max_delay_ms must be 0 to %d", l.Delay.Milliseconds())
	case t.MaxPayload < 1 || t.MaxPayload > l.BatchBytes:
		return invalid("policy.max_payload_bytes", "OUT_OF_RANGE_FIELD", "policy.max_payload_bytes must be 1 to %d", l.BatchBytes)
	case t.DoneRetention < 0 || t.DoneRetention > l.Delay:
		return invalid("policy.done_retention_ms", "OUT_OF_RANGE_FIELD", "policy.done_retention_ms must be 0 to %d", l.Delay.Milliseconds())
	case t.DeadRetention < 0 || t.DeadRetention > l.Delay:
		return invalid("policy.dead_retention_ms", "OUT_OF_RANGE_FIELD", "policy.dead_retention_ms must be 0 to %d", l.Delay.Milliseconds())
	case t.MaxDead < 0 || t.MaxDead > maxTasks:
		return invalid("policy.max_dead", "OUT_OF_RANGE_FIELD", "policy.max_dead must be 0 to %d", maxTasks)
	case t.MaxBacklog < 0 || t.MaxBacklog > maxTasks:
		return invalid("policy.max_backlog", "OUT_OF_RANGE_FIELD", "policy.max_backlog must be 0 to %d", maxTasks)
	case c.Ramp < 0 || c.Ramp > maxRamp:
		return invalid("ramp_ms", "OUT_OF_RANGE_FIELD", "ramp_ms must be 0 to %d", maxRamp.Milliseconds())
	case t.PriorityAgeing < 0 || t.PriorityAgeing > maxAgeing || c.PriorityAgeing != nil && t.PriorityAgeing == 0:
		return invalid("policy.priority_ageing", "OUT_OF_RANGE_FIELD", "policy.priority_ageing must be 1 to %d", maxAgeing)
	case t.Visibility < l.MinVisibility || t.Visibility > l.MaxVisibility:
		return invalid("policy.visibility_timeout_ms", "OUT_OF_RANGE_FIELD", "policy.visibility_timeout_ms must be %d to %d",
			l.MinVisibility.Milliseconds(), l.MaxVisibility.Milliseconds())
	}
	if c.Indexed != nil {
		if err := l.checkIndexed(*c.Indexed); err != nil {
			return err
		}
		t.Indexed = store.NewIndexSet(*c.Indexed...)
	}
	if err := checkBackoff(t.Backoff); err != nil {
		err.Field = "policy." + err.Field
		return err
	}
	if err := checkWatching(t); err != nil {
		return err
	}
	return applyLimits(&t.Limits, c)
}

// What topics may be told.
const (
	maxTasks = 1_000_000_000
	maxRamp  = time.Hour
)

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// DescribeTopic returns a topic's configuration and what is in it.
func (s *System) DescribeTopic(ctx context.Context, name string) (TopicStatus, error) {
	topics, e := s.searched(ctx, or(name, "?"))
	if e != nil {
		return TopicStatus{}, e
	}
	status := TopicStatus{Topic: topics[0]}
	stats, err := s.store.Stats(ctx, shardsOf(&status.Topic))
	if err != nil {
		return TopicStatus{}, failure(err)
	}
	status.Depth, status.Indexing = depthOf(stats), indexing(&status.Topic, stats)
	status.Subscriptions, err = s.subscriptions(ctx, name)
	return status, failure(err)
}

func (s *System) depth(ctx context.Context, t *store.Topic) (d Depth, err error) {
	stats, err := s.store.Stats(ctx, shardsOf(t))
	return depthOf(stats), err
}

func depthOf(stats []store.Stats) (d Depth) {
	for i := range stats {
		d = d.plus(&stats[i])
	}
	return d
}

// plus is d and what a shard has.
func (d Depth) plus(st *store.Stats) Depth {
	d.Scheduled += st.Pending - st.Ready
	d.Ready += st.Ready
	d.Running += st.Running
	d.Done += st.Done
	d.Dead += st.Dead
	return d
}

func (s *System) subscriptions(ctx context.Context, name string) (int, error) {
	ref, ok := s.topics.Load(name)
	if !ok {
		return 0, nil
	}
	reply := make(chan int, 1)
	s.send(ref.(*topicRef).pid, &countSubscriptions{reply: reply})
	select {
	case n := <-reply:
		return n, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ListTopics pages through the topics by name.
func (s *System) ListTopics(ctx context.Context, size int, token string) (topics []store.Topic, next string, err error) {
	if size < 0 {
		return nil, "", invalid("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	after, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, "", failure(store.ErrBadCursor)
	}
	if topics, err = s.store.ListTopics(ctx); err != nil {
		return nil, "", failure(err)
	}
	from, found := slices.BinarySearchFunc(topics, string(after), func(t store.Topic, name string) int {
		return strings.Compare(t.Name, name)
	})
	if found {
		from++
	}
	topics = topics[from:]
	if size = min(or(size, 100), s.cfg.Limits.PageSize); len(topics) > size {
		topics = topics[:size]
		next = base64.RawURLEncoding.EncodeToString([]byte(topics[size-1].Name))
	}
	return topics, next, nil
}

// DeleteTopic deletes a topic, and with force its tasks. Otherwise it must be empty.
func (s *System) DeleteTopic(ctx context.Context, name string, force bool) error {
	status, err := s.DescribeTopic(ctx, name)
	if err != nil {
		return err
	}
	if d := status.Depth; !force && d.Scheduled+d.Ready+d.Running+d.Dead > 0 {
		return &Error{Kind: Precondition, Reason: "TOPIC_NOT_EMPTY", Field: "name", Message: "the topic has tasks; force deletes them too"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.store.DeleteTopic(ctx, name); err != nil {
		return failure(err)
	}
	s.closeLocked(ctx, name)
	for n := range status.Topic.End() { // also those that went, whose seals would outlast the topic
		if err := s.store.DropShard(ctx, store.Shard{Topic: name, N: n}); err != nil {
			return failure(err)
		}
	}
	return nil
}

func (s *System) closeLocked(ctx context.Context, name string) {
	ref, open := s.topics.LoadAndDelete(name)
	if !open {
		return
	}
	s.turns.remove(ref.(*topicRef))
	done := make(chan struct{})
	s.send(s.supervisor, &closeTopic{name: name, done: done})
	awaitAll(ctx, []chan struct{}{done})
}

// PurgeTopic deletes the pending tasks and returns how many.
func (s *System) PurgeTopic(ctx context.Context, name string) (deleted int64, err error) {
	topics, e := s.searched(ctx, or(name, "?"))
	if e != nil {
		return 0, e
	}
	ref, e := s.topic(ctx, name, false)
	if e != nil {
		return 0, e
	}
	for _, shard := range shardsOf(&topics[0]) {
		n, err := s.purge(ctx, shard, ref)
		if deleted += n; err != nil {
			return deleted, failure(err)
		}
	}
	return deleted, nil
}

func (s *System) purge(ctx context.Context, shard store.Shard, ref *topicRef) (deleted int64, err error) {
	after := store.Entry{}
	for {
		_, page, err := s.store.Window(ctx, shard, store.WindowQuery{After: after, To: maxDue, Limit: purgePage})
		if err != nil || len(page) == 0 {
			return deleted, err
		}
		ids := make([]string, len(page))
		for i, e := range page {
			ids[i] = e.ID
		}
		_, results, err := s.store.Remove(ctx, shard, ids)
		if err != nil {
			return deleted, err
		}
		for _, r := range results {
			if r.Status == store.OK {
				deleted++
			}
		}
		s.tell(ref, shard.N, &pendingGone{ids: ids})
		after = page[len(page)-1]
	}
}

const (
	purgePage = 500
	maxDue    = store.Millis(1 << 52) // beyond every due time
)

func (s *System) startRefresh() {
	ctx, cancel := context.WithCancel(context.Background())
	s.refresh.cancel = cancel
	s.refresh.wg.Go(func() { every(ctx, followEvery, s.followTopics) })
	s.refresh.wg.Go(func() { every(ctx, choresEvery, s.chores) })
	s.refresh.wg.Go(func() { s.indexShards(ctx) })
	s.refresh.wg.Go(func() { s.beat(ctx) })
	s.refresh.wg.Go(func() { s.watchWaiters(ctx) })
	if s.fleet.source != nil {
		s.refresh.wg.Go(func() { s.followFleet(ctx) })
	}
}

func (s *System) stopRefresh() {
	s.refresh.cancel()
	s.refresh.wg.Wait()
}

// every calls do at an interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

func (s *System) noteIncomplete(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.metrics.storeErrors.Inc()
		s.log.Debug("housekeeping incomplete", "err", err)
	}
}

// countQueued sets the gauges of what open topics have in the store.
func (s *System) countQueued(ctx context.Context) error {
	var shards []store.Shard
	s.eachTopic(func(ref *topicRef) { shards = append(shards, shardsOf(ref.config.Load())...) })
	stats, err := s.statsOf(ctx, shards)
	depths := make(depths)
	for i := range stats {
		depths.add(shards[i].Topic, &stats[i])
	}
	depths.show(s.metrics)
	return err
}

// depths counts tasks by topic.
type depths map[string]Depth

func (d depths) add(topic string, st *store.Stats) { d[topic] = d[topic].plus(st) }

func (d depths) show(m *metrics) {
	for topic, depth := range d {
		m.setQueued(topic, depth)
	}
}

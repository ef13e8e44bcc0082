package upkeep

import (
	"context"
	"errors"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// retire takes former shards that are empty out of a topic's configuration. They
// are sealed, so they stay empty. Those whose logs tell of their last tasks stay until
// watchers had the time to read that.
func (s *Upkeep) retire(ctx context.Context, t store.Topic) error {
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
	unlock, err := s.node.Topics().Lock(ctx, t.Name)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := s.node.Topics().Stored(ctx, t.Name)
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
	s.node.Log().Info("former shards are empty", "topic", t.Name)
	return s.node.Topics().Configure(ctx, t)
}

func (s *Upkeep) empty(ctx context.Context, topic string, span store.Span) (bool, error) {
	shards := make([]store.Shard, span.Shards)
	for n := range shards {
		shards[n] = store.Shard{Topic: topic, N: span.First + n}
	}
	stats, err := s.node.CountsOf(ctx, shards)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(stats, func(st store.Stats) bool {
		return st.Pending+st.Running+st.Done+st.Dead+st.Cells+st.Parcels > 0 || st.Keys || st.Logged
	}), nil
}

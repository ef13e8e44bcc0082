package service

import (
	"context"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// What tests of the use cases see of their insides.

var StartGeneration = startGeneration

// RampUp is of a change that sets whether deliveries are paused.
func (c *TopicChange) RampUp(t *store.Topic, now store.Millis) {
	paused := t.DeliveryPaused
	set(&t.DeliveryPaused, c.DeliveryPaused)
	c.rampUp(t, paused, now)
}

// IndexPage reads a task of a shard by its index.
func (s *Finder) IndexPage(t *testing.T, topic *store.Topic, f *TaskFilter, shard store.Shard) error {
	_, _, err := s.reads.byAttributes(topic, f, f.kinds()).indexPage(t.Context(), shard, new(spot), 1)
	return err
}

// Narrow reports whether a find walks over the tasks of a due range.
func (s *Finder) Narrow(ctx context.Context, topic *store.Topic, f *TaskFilter, shard store.Shard) (walks bool, err error) {
	return s.reads.byAttributes(topic, f, f.kinds()).narrow(ctx, shard)
}

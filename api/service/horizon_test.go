package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

// TestHorizonsThatDiffer adds tasks at a node that looks less far ahead than the owner of
// their shards, as while the setting is changed node by node: the owner has read past
// their due time already.
func TestHorizonsThatDiffer(t *testing.T) {
	servicetest.FleetBubble(t, nil, func(t *testing.T, f *servicetest.Fleet) {
		f.Horizon = map[string]time.Duration{"a": shard.MaxHorizon, "b": 5 * time.Second}
		a, b := f.Join("a").Sys, f.Join("b").Sys
		if _, err := a.Topics.Create(t.Context(), "mail", service.TopicChange{Shards: new(8)}); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, a, "mail", 100)
		servicetest.EnqueueOne(t, b, servicetest.After("mail", "opens the topic there", time.Hour))
		servicetest.Idle(30 * time.Second)
		const n, delay = 64, 40 * time.Second
		for i := range n {
			servicetest.EnqueueOne(t, b, servicetest.After("mail", fmt.Sprint(i), delay))
		}
		servicetest.Idle(delay + 500*time.Millisecond)
		if got := len(w.Take()); got != n {
			t.Errorf("%d tasks half a second after they were due, want %d", got, n)
		}
	})
}

package server

import (
	"cmp"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// policyOf converts the fields that are set. The limits are the use case's.
func policyOf(p *ddqv1.TopicPolicy) (c service.TopicChange, e *problem.Error) {
	if p == nil {
		return c, nil
	}
	if c.Visibility, e = spanOrNil(p.VisibilityTimeoutMs, "policy.visibility_timeout_ms"); e != nil {
		return c, e
	}
	if c.MaxDelay, e = spanOrNil(p.MaxDelayMs, "policy.max_delay_ms"); e != nil {
		return c, e
	}
	if c.DoneRetention, e = spanOrNil(p.DoneRetentionMs, "policy.done_retention_ms"); e != nil {
		return c, e
	}
	if c.DeadRetention, e = spanOrNil(p.DeadRetentionMs, "policy.dead_retention_ms"); e != nil {
		return c, e
	}
	if c.WatchRetention, e = spanOrNil(p.WatchRetentionMs, "policy.watch_retention_ms"); e != nil {
		return c, e
	}
	c.WatchMax = intOrNil(p.WatchMaxEvents)
	if c.Workflows.Retention, e = spanOrNil(p.WorkflowRetentionMs, "policy.workflow_retention_ms"); e != nil {
		return c, e
	}
	c.Workflows.Max, c.MaxSchedules = intOrNil(p.MaxWorkflows), intOrNil(p.MaxSchedules)
	if c.Backoff, e = wire.ReadBackoff(p.Backoff, "policy.backoff"); e != nil {
		return c, e
	}
	c.Shards = intOrNil(p.Shards)
	c.MaxRetries = intOrNil(p.MaxRetries)
	c.MaxPayload = intOrNil(p.MaxPayloadBytes)
	c.MaxDead = intOrNil(p.MaxDead)
	c.MaxBacklog = intOrNil(p.MaxBacklog)
	c.PriorityAgeing = intOrNil(p.PriorityAgeing)
	if p.IndexedAttributes != nil {
		c.Indexed = &p.IndexedAttributes.Names
	}
	e = limitsOf(&c, p)
	return c, e
}

func spanOrNil(ms *int64, field string) (*time.Duration, *problem.Error) {
	if ms == nil {
		return nil, nil
	}
	d, e := wire.Span(*ms, field)
	return &d, e
}

func topicWire(t *store.Topic) *ddqv1.Topic {
	shards, retries := int32(t.Shards), int32(t.MaxRetries)
	visibility, delay := store.CeilMillis(t.Visibility), store.CeilMillis(t.MaxDelay)
	payload, retention := int64(t.MaxPayload), store.CeilMillis(t.DoneRetention)
	deadRetention, dead, backlog := store.CeilMillis(t.DeadRetention), int64(t.MaxDead), int64(t.MaxBacklog)
	ageing := int32(t.Ageing())
	watchRetention, watchMax := store.CeilMillis(t.Watch.Retention), int64(cmp.Or(t.Watch.Max, store.DefaultWatchMax))
	former := 0
	for _, span := range t.Former {
		former += span.Shards
	}
	w := &ddqv1.Topic{
		Name:         t.Name,
		FormerShards: int32(former),
		Policy: &ddqv1.TopicPolicy{
			Shards:              &shards,
			VisibilityTimeoutMs: &visibility,
			MaxRetries:          &retries,
			Backoff:             wire.PutBackoff(&t.Backoff),
			MaxDelayMs:          &delay,
			MaxPayloadBytes:     &payload,
			DoneRetentionMs:     &retention,
			DeadRetentionMs:     &deadRetention,
			MaxDead:             &dead,
			MaxBacklog:          &backlog,
			PriorityAgeing:      &ageing,
			WatchRetentionMs:    &watchRetention,
			WatchMaxEvents:      &watchMax,
			IndexedAttributes:   &ddqv1.IndexedAttributes{Names: t.Indexed.Names()},
		},
		ResumedUnixMs:  int64(t.Resumed),
		RampMs:         store.CeilMillis(t.Ramp),
		Version:        t.Version,
		DeliveryPaused: t.DeliveryPaused,
		EnqueuePaused:  t.EnqueuePaused,
	}
	retained, open := workflows.Policy(t)
	w.Policy.WorkflowRetentionMs, w.Policy.MaxWorkflows = new(store.CeilMillis(retained)), new(int64(open))
	w.Policy.MaxSchedules = new(int64(schedules.MaxOf(t)))
	limitsWire(w.Policy, &t.Limits)
	return w
}

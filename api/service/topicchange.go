package service

import (
	"time"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// TopicChange are the fields of a topic to set; nil leaves a field as it is.
type TopicChange struct {
	Shards         *int
	Visibility     *time.Duration
	MaxRetries     *int
	Backoff        *store.Backoff
	MaxDelay       *time.Duration
	MaxPayload     *int
	DoneRetention  *time.Duration
	DeadRetention  *time.Duration
	MaxDead        *int
	MaxBacklog     *int
	PriorityAgeing *int
	WatchRetention *time.Duration // 0: no log is kept
	WatchMax       *int           // changes of a shard; 0: the default
	Indexed        *[]string      // names of attributes
	DeliveryPaused *bool
	EnqueuePaused  *bool

	Workflows    WorkflowChange
	MaxSchedules *int // 0: the default

	// IfVersion refuses the change unless the topic has this version.
	IfVersion *int64
	// Ramp is how long deliveries rise when the change ends their pause.
	Ramp time.Duration

	Rate, KeyRate               *store.Rate // the zero one ends the limit
	Concurrency, KeyConcurrency *int        // 0 ends the cap
	OverLimitDead               *bool       // dead-letter tasks over a rate
}

// WorkflowChange are the fields of a topic's WorkflowPolicy to set.
type WorkflowChange struct {
	Retention *time.Duration // 0: the default
	Max       *int           // open ones; 0: the default
}

func (l *limits) apply(t *store.Topic, c TopicChange) *problem.Error {
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
	set(&t.Watch.Retention, c.WatchRetention)
	set(&t.Watch.Max, c.WatchMax)
	set(&t.DeliveryPaused, c.DeliveryPaused)
	set(&t.EnqueuePaused, c.EnqueuePaused)
	set(&t.Workflows.Retention, c.Workflows.Retention)
	set(&t.Workflows.Max, c.Workflows.Max)
	set(&t.MaxSchedules, c.MaxSchedules)
	switch {
	case c.Ramp < 0 || c.Ramp > actors.MaxRamp:
		return problem.BadField("ramp_ms", "OUT_OF_RANGE_FIELD", "ramp_ms must be 0 to %d", actors.MaxRamp.Milliseconds())
	case t.PriorityAgeing < 0 || t.PriorityAgeing > store.MaxAgeing || c.PriorityAgeing != nil && t.PriorityAgeing == 0:
		return problem.BadField("policy.priority_ageing", "OUT_OF_RANGE_FIELD", "policy.priority_ageing must be 1 to %d", store.MaxAgeing)
	}
	if err := problem.FirstInvalid((*actors.Limits)(l).TopicBounds(t)); err != nil {
		return err
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
	if err := workflows.CheckPolicy(&t.Workflows); err != nil {
		return err
	}
	if err := schedules.CheckPolicy(t); err != nil {
		return err
	}
	return applyLimits(&t.Limits, c)
}

// applyLimits changes the rates and caps of a topic that are set in c.
func applyLimits(l *store.TopicLimits, c TopicChange) *problem.Error {
	set(&l.Rate, c.Rate)
	set(&l.KeyRate, c.KeyRate)
	set(&l.Concurrency, c.Concurrency)
	set(&l.KeyConcurrency, c.KeyConcurrency)
	set(&l.DeadLetter, c.OverLimitDead)
	if err := checkRate("policy.rate", &l.Rate); err != nil {
		return err
	}
	if err := checkRate("policy.key_rate", &l.KeyRate); err != nil {
		return err
	}
	if err := checkCap("policy.concurrency", l.Concurrency); err != nil {
		return err
	}
	return checkCap("policy.key_concurrency", l.KeyConcurrency)
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// rampUp says what a change means for how deliveries begin again: the end of a pause
// starts a ramp, a pause ends it, and a ramp that is under way may get another length.
func (c *TopicChange) rampUp(t *store.Topic, paused bool, now store.Millis) {
	resumes := c.DeliveryPaused != nil && !*c.DeliveryPaused
	switch {
	case t.DeliveryPaused, resumes && c.Ramp == 0:
		t.Resumed, t.Ramp = 0, 0
	case resumes && paused:
		t.Resumed, t.Ramp = now, c.Ramp
	case resumes && t.Resumed != 0:
		t.Ramp = c.Ramp
	}
}

// checkIndexed allows no names.
func (l *limits) checkIndexed(names []string) *problem.Error {
	const field = "policy.indexed_attributes"
	if len(names) > store.MaxIndexed {
		return problem.BadField(field, "BAD_ATTRIBUTES", "%s names %d attributes; at most %d are allowed", field, len(names), store.MaxIndexed)
	}
	seen := make(map[string]bool)
	for _, name := range names {
		if most := min(l.AttributeKey, store.MaxIndexName); name == "" || len(name) > most {
			return problem.BadField(field, "BAD_ATTRIBUTES", "a name in %s must have 1 to %d bytes", field, most)
		}
		if !utf8.ValidString(name) {
			return problem.BadField(field, "BAD_ATTRIBUTES", "the names in %s must be UTF-8", field)
		}
		if seen[name] {
			return problem.BadField(field, "BAD_ATTRIBUTES", "%s names %q twice", field, name)
		}
		seen[name] = true
	}
	return nil
}

const (
	minWatchRetention = time.Second
	maxWatchRetention = 7 * 24 * time.Hour
	minWatchMax       = 1_000
	maxWatchMax       = 10_000_000
)

// checkWatching applies to a topic's configuration.
func checkWatching(t *store.Topic) *problem.Error {
	switch {
	case t.Watch.Retention != 0 && (t.Watch.Retention < minWatchRetention || t.Watch.Retention > maxWatchRetention):
		return problem.BadField("policy.watch_retention_ms", "OUT_OF_RANGE_FIELD", "policy.watch_retention_ms must be 0 or %d to %d",
			minWatchRetention.Milliseconds(), maxWatchRetention.Milliseconds())
	case t.Watch.Max != 0 && (t.Watch.Max < minWatchMax || t.Watch.Max > maxWatchMax):
		return problem.BadField("policy.watch_max_events", "OUT_OF_RANGE_FIELD", "policy.watch_max_events must be 0 or %d to %d", minWatchMax, maxWatchMax)
	}
	return nil
}

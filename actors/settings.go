package actors

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// What settings of a node may be.
const (
	minHorizon  = 100 * time.Millisecond
	minLoad     = 10 * time.Millisecond
	minWatchdog = 50 * time.Millisecond
	maxWatchdog = time.Hour
	minLease    = 100 * time.Millisecond // renewed four times within it
	maxLease    = 5 * time.Minute        // the shards of a node that died wait for so long
	maxHolds    = 1_000_000              // of one subscription
	maxAttempts = 1_000_000
	maxBatch    = 100_000
	maxSpan     = 100 * 365 * 24 * time.Hour
)

// Check returns a *SettingError for what cannot work, or nil. receive is how many
// bytes of payload the node's port takes in one message.
func (c Config) Check(receive int) error {
	c = c.WithDefaults()
	all := c.bounds(receive)
	all = append(all, c.Limits.TopicBounds(&c.Topic)...)
	all = append(all, BackoffBounds(c.Topic.Backoff)...)
	for i := range all {
		if !all[i].Holds() {
			return all[i].Unusable()
		}
	}
	return nil
}

// bounds are the bounds of what is not a topic's.
func (c *Config) bounds(receive int) []problem.Bound {
	l := &c.Limits
	return []problem.Bound{
		problem.Span("", "horizon", c.Horizon, minHorizon, shard.MaxHorizon),
		problem.Span("", "hold-ahead", c.HoldAhead, 0, store.MaxHoldAhead),
		problem.Span("", "load-every", c.LoadEvery, minLoad, c.Horizon-time.Millisecond),
		problem.Span("", "watchdog-interval", c.WatchdogInterval, minWatchdog, maxWatchdog),
		problem.Span("", "lease-ttl", c.LeaseTTL, minLease, maxLease),
		problem.Count("", "wheel-budget", c.WheelBudget, 1, math.MaxInt32),
		problem.Count("", "ready-budget", c.ReadyBudget, 1, math.MaxInt32),
		problem.Count("", "subscription-bytes", c.SubscriptionBytes, 1, math.MaxInt),
		problem.Count("", "unsent-bytes", c.UnsentBytes, 1, math.MaxInt),

		problem.Count("", "limit-batch-bytes", l.BatchBytes, 1, receive),
		problem.Count("", "limit-payload", l.Payload, 1, l.BatchBytes),
		problem.Count("", "limit-batch-tasks", l.BatchTasks, 1, maxBatch),
		problem.Span("", "limit-delay", l.Delay, time.Millisecond, maxSpan),
		problem.Count("", "limit-max-in-flight", l.MaxInFlight, 1, maxHolds),
		problem.Span("", "limit-min-visibility", l.MinVisibility, time.Millisecond, l.MaxVisibility),
		problem.Span("", "limit-max-visibility", l.MaxVisibility, l.MinVisibility, maxSpan),
		problem.Count("", "limit-max-retries", l.MaxRetries, 1, maxAttempts),
		problem.Count("", "warn-due-per-second", l.WarnDue, 1, math.MaxInt32),
		problem.Count("", "limit-shards", l.Shards, 1, MaxShardNumber),
		problem.Count("", "shards", c.Topic.Shards, 1, l.Shards),
	}
}

// What topics may be told.
const (
	MaxTasks = 1_000_000_000
	MaxRamp  = time.Hour
)

// MaxShardNumber is what a hold token has room for.
const MaxShardNumber = 1<<16 - 1

package actors

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Config of a System. The zero value works.
type Config struct {
	// Node names this node in sessions and owner records. Two live nodes must not
	// share a name; a restarted one should keep it, to get its shards back at
	// once. Defaults to "ddq".
	Node string

	// Addr is where other nodes reach this one's gRPC port.
	Addr string

	// Horizon is how far ahead of now tasks are kept in the wheel; later ones stay
	// in the store. Memory is about 64 bytes per task due within it. Below 60s.
	// Defaults to 30s.
	Horizon time.Duration

	// LoadEvery is the pause between looks ahead into the store. Defaults to
	// Horizon/4.
	LoadEvery time.Duration

	// WheelBudget is the most tasks of one shard that wait in the wheel; beyond
	// it the shard looks less far ahead. Defaults to 250,000.
	WheelBudget int

	// ReadyBudget is the most due tasks of one shard that are kept in memory
	// while no worker takes them. Defaults to 20,000.
	ReadyBudget int

	// LeaseTTL is how long this node's shards stay its own when it cannot reach
	// the store. It is renewed four times in that span. Defaults to 2s.
	LeaseTTL time.Duration

	// WatchdogInterval is the pause between scans for holds that no timer knows
	// and for tasks that fell out of their index. Defaults to 10s.
	WatchdogInterval time.Duration

	// NoAutoCreate makes enqueueing to an unknown topic an error.
	NoAutoCreate bool

	// Topic is what topics are created with where the request says nothing.
	// Zero fields: 4 shards, visibility timeout 30s, 3 retries, exponential
	// backoff from 1s to 10m with 20 % jitter, done tasks not kept. MaxRetries
	// below zero: none.
	Topic store.Topic

	// Limits bound requests.
	Limits Limits
}

func (c Config) withDefaults() Config {
	c.Node = or(c.Node, "ddq")
	c.Horizon = or(c.Horizon, 30*time.Second)
	c.LoadEvery = or(c.LoadEvery, c.Horizon/4)
	c.WheelBudget = or(c.WheelBudget, 250_000)
	c.ReadyBudget = or(c.ReadyBudget, 20_000)
	c.LeaseTTL = or(c.LeaseTTL, 2*time.Second)
	c.WatchdogInterval = or(c.WatchdogInterval, 10*time.Second)
	c.Limits = c.Limits.withDefaults()
	c.Topic = topicDefaults(c.Topic, c.Limits)
	return c
}

func topicDefaults(t store.Topic, l Limits) store.Topic {
	t.Shards = or(t.Shards, 4)
	t.Visibility = or(t.Visibility, 30*time.Second)
	t.MaxRetries = max(or(t.MaxRetries, 3), 0)
	t.MaxDelay = or(t.MaxDelay, l.Delay)
	t.MaxPayload = or(t.MaxPayload, l.Payload)
	if t.Backoff.Kind == 0 {
		t.Backoff = store.Backoff{Kind: store.BackoffExponential, Base: time.Second, Max: 10 * time.Minute, Jitter: 20}
	}
	return t
}

func (l Limits) withDefaults() Limits {
	l.Payload = or(l.Payload, 1<<20)
	l.ID = or(l.ID, 128)
	l.BatchTasks = or(l.BatchTasks, 1000)
	l.BatchBytes = or(l.BatchBytes, 4<<20)
	l.Delay = or(l.Delay, 3653*24*time.Hour) // ten years
	l.Attributes = or(l.Attributes, 32)
	l.AttributeKey = or(l.AttributeKey, 64)
	l.AttributeVal = or(l.AttributeVal, 1024)
	l.MaxInFlight = or(l.MaxInFlight, 10_000)
	l.MinVisibility = or(l.MinVisibility, time.Second)
	l.MaxVisibility = or(l.MaxVisibility, 12*time.Hour)
	l.MaxRetries = or(l.MaxRetries, 1000)
	l.Shards = or(l.Shards, 256)
	l.PageSize = or(l.PageSize, 1000)
	l.RetrieveTasks = or(l.RetrieveTasks, 1000)
	l.RetrieveWait = or(l.RetrieveWait, time.Minute)
	l.Result = or(l.Result, 256<<10)
	return l
}

// or returns v, or def when v is zero.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

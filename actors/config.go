package actors

import (
	"cmp"
	"time"

	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// Config of a node. The zero value works.
type Config struct {
	// Node names this node in sessions and owner records. Two live nodes must not
	// share a name; a restarted one should keep it, to get its shards back at
	// once. Defaults to "ddq".
	Node string

	// Addr is where other nodes reach this one's gRPC port.
	Addr string

	// Horizon is how far ahead of now tasks are kept in the wheel; later ones stay
	// in the store. Memory is about 64 bytes per task due within it. At most
	// MaxHorizon. Defaults to 30s.
	Horizon time.Duration

	// HoldAhead is how long before its due time a task may be held, so that it only has to
	// be sent when that comes; at most store.MaxHoldAhead. An edit or a delete that comes
	// later than that is told that the task is running. 0: nothing is held ahead.
	HoldAhead time.Duration

	// LoadEvery is the pause between looks ahead into the store. Below Horizon, or
	// tasks are late. Defaults to Horizon/4.
	LoadEvery time.Duration

	// WheelBudget is the most tasks of one shard that wait in the wheel; beyond
	// it the shard looks less far ahead. Defaults to 250,000.
	WheelBudget int

	// ReadyBudget is the most due tasks of one shard that are kept in memory
	// while no worker takes them. Defaults to 20,000.
	ReadyBudget int

	// SubscriptionBytes is the most bytes of payloads that one subscription has out of
	// the store and not sent, but for one more task: what a consumer that does not
	// read costs. Less makes fewer large tasks wait for the stream, and a store call for
	// each few of them. Defaults to 8 MiB.
	SubscriptionBytes int

	// UnsentBytes bounds the same of all subscriptions of the node together. A
	// subscription may use no more than what is left of it, and always one task.
	// Defaults to 256 MiB.
	UnsentBytes int

	// LeaseTTL is how long this node's shards stay its own when it cannot reach
	// the store. It is renewed four times in that span. Defaults to 2s.
	LeaseTTL time.Duration

	// WatchdogInterval is the pause between scans for holds that no timer knows
	// and for tasks that fell out of their index. Defaults to 10s.
	WatchdogInterval time.Duration

	// IdleAfter is how long nobody uses a topic here until its actors stop, when the
	// store has no task of it for this node. Defaults to 10m.
	IdleAfter time.Duration

	// NoAutoCreate makes enqueueing to an unknown topic an error.
	NoAutoCreate bool

	// Topic is what topics are created with where the request says nothing.
	// Zero fields: 4 shards, visibility timeout 30s, 3 retries, exponential
	// backoff from 1s to 10m with 20 % jitter, done tasks not kept. MaxRetries
	// below zero: none.
	Topic store.Topic

	// Limits bound requests.
	Limits Limits

	// Knobs size batches and pages; for tests.
	Knobs knobs.Knobs
}

// WithDefaults fills in the fields that are zero.
func (c Config) WithDefaults() Config {
	c.Node = cmp.Or(c.Node, "ddq")
	c.Horizon = cmp.Or(c.Horizon, 30*time.Second)
	c.LoadEvery = cmp.Or(c.LoadEvery, c.Horizon/4)
	c.WheelBudget = cmp.Or(c.WheelBudget, 250_000)
	c.ReadyBudget = cmp.Or(c.ReadyBudget, 20_000)
	c.SubscriptionBytes = cmp.Or(c.SubscriptionBytes, 8<<20)
	c.UnsentBytes = cmp.Or(c.UnsentBytes, 256<<20)
	c.LeaseTTL = cmp.Or(c.LeaseTTL, 2*time.Second)
	c.WatchdogInterval = cmp.Or(c.WatchdogInterval, 10*time.Second)
	c.IdleAfter = cmp.Or(c.IdleAfter, 10*time.Minute)
	c.Limits = c.Limits.WithDefaults()
	c.Topic = topicDefaults(c.Topic, c.Limits)
	return c
}

// shards is what of it concerns shards.
func (c *Config) shards() shard.Config {
	return shard.Config{Horizon: c.Horizon, HoldAhead: c.HoldAhead, WheelBudget: c.WheelBudget, ReadyBudget: c.ReadyBudget, WatchdogInterval: c.WatchdogInterval, Knobs: c.Knobs}
}

func topicDefaults(t store.Topic, l Limits) store.Topic {
	t.Shards = cmp.Or(t.Shards, 4)
	t.Visibility = cmp.Or(t.Visibility, 30*time.Second)
	t.MaxRetries = max(cmp.Or(t.MaxRetries, 3), 0)
	t.MaxDelay = cmp.Or(t.MaxDelay, l.Delay)
	t.MaxPayload = cmp.Or(t.MaxPayload, l.Payload)
	if t.Backoff.Kind == 0 {
		t.Backoff = store.Backoff{Kind: store.BackoffExponential, Base: time.Second, Max: 10 * time.Minute, Jitter: 20}
	}
	return t
}

// WithDefaults fills in the fields that are zero.
func (l Limits) WithDefaults() Limits {
	l.Payload = cmp.Or(l.Payload, 1<<20)
	l.ID = cmp.Or(l.ID, 128)
	l.BatchTasks = cmp.Or(l.BatchTasks, 1000)
	l.BatchBytes = cmp.Or(l.BatchBytes, 4<<20)
	l.Delay = cmp.Or(l.Delay, 3653*24*time.Hour) // ten years
	l.Attributes = cmp.Or(l.Attributes, 32)
	l.AttributeKey = cmp.Or(l.AttributeKey, 64)
	l.AttributeVal = cmp.Or(l.AttributeVal, 1024)
	l.MaxInFlight = cmp.Or(l.MaxInFlight, 10_000)
	l.MinVisibility = cmp.Or(l.MinVisibility, time.Second)
	l.MaxVisibility = cmp.Or(l.MaxVisibility, 12*time.Hour)
	l.MaxRetries = cmp.Or(l.MaxRetries, 1000)
	l.Shards = cmp.Or(l.Shards, 256)
	l.PageSize = cmp.Or(l.PageSize, 1000)
	l.RetrieveTasks = cmp.Or(l.RetrieveTasks, 1000)
	l.RetrieveWait = cmp.Or(l.RetrieveWait, time.Minute)
	l.Result = cmp.Or(l.Result, 256<<10)
	l.Parcels = cmp.Or(l.Parcels, 100_000)
	l.Recipients = cmp.Or(l.Recipients, 50_000_000)
	l.WarnDue = cmp.Or(l.WarnDue, 10_000)
	return l
}

// Limits bound requests. Zero fields take the defaults.
type Limits struct {
	Payload       int           // bytes; 1 MiB
	ID            int           // bytes; 128
	BatchTasks    int           // 1,000
	BatchBytes    int           // 4 MiB
	Delay         time.Duration // ten years
	Attributes    int           // 32
	AttributeKey  int           // bytes; 64
	AttributeVal  int           // bytes; 1,024
	MaxInFlight   int           // 10,000
	MinVisibility time.Duration // 1 s
	MaxVisibility time.Duration // 12 h
	MaxRetries    int           // 1,000
	Shards        int           // 256
	PageSize      int           // 1,000
	RetrieveTasks int           // 1,000
	RetrieveWait  time.Duration // of every call that waits; 1 min
	Result        int           // bytes; 256 KiB
	Parcels       int           // on their way, of a topic, for each of its shards; 100,000
	Recipients    int           // of an audience; 50,000,000
	WarnDue       int           // tasks due in one second beyond which a schedule is warned of, of a topic without a rate; 10,000
}

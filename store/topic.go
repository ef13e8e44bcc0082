package store

import (
	"cmp"
	"slices"
	"time"
)

// Topic is the configuration of a topic.
type Topic struct {
	Name string

	// Life is another random number for a topic that is created anew under a name: 0 in
	// records of before it was kept.
	Life uint64

	// New tasks go to the shards from First on, as many as Shards says. Those of
	// Former had them before; they are sealed, and go when they are empty. Numbers of
	// shards are not used again while the topic lives.
	First, Shards int
	Former        [MaxFormer]Span // the oldest first; zero ones last

	Visibility     time.Duration
	MaxRetries     int
	Backoff        Backoff
	MaxDelay       time.Duration
	MaxPayload     int // bytes
	DoneRetention  time.Duration
	DeadRetention  time.Duration // 0: for ever
	MaxDead        int           // 0: any number; beyond it the oldest go
	MaxBacklog     int           // pending tasks; 0: any number
	PriorityAgeing int           // one of so many deliveries is the longest due; 0 means 10
	DeliveryPaused bool
	EnqueuePaused  bool
	Resumed        Millis        // when deliveries began again, if they rise slowly since; else 0
	Ramp           time.Duration // how long they rise for
	Version        int64         // rises by one with every change

	Limits TopicLimits

	Indexed IndexSet // attributes by which tasks are found

	// A topic is watched when it keeps a log of changes for a while. A Max of 0 means
	// DefaultWatchMax, see Watching.
	Watch Watching

	Workflows    WorkflowPolicy
	MaxSchedules int // 0: the default
}

// WorkflowPolicy says how many workflows a topic has, and for how long.
type WorkflowPolicy struct {
	Retention time.Duration // after the end of one that does not say itself; 0: the default
	Max       int           // that are open; 0: the default
}

// MaxFormer is how many generations of shards of a topic may have tasks left.
const MaxFormer = 3

// Span is a generation of shards, by number.
type Span struct{ First, Shards int }

// DefaultWatchMax is the Watch.Max of topics that say nothing.
const DefaultWatchMax = 100_000

// Watching is how much of the log of each of its shards a topic keeps.
func (t *Topic) Watching() Watching {
	if t.Watch.Retention == 0 {
		return Watching{}
	}
	return Watching{Retention: t.Watch.Retention, Max: cmp.Or(t.Watch.Max, DefaultWatchMax)}
}

// defaultAgeing is the PriorityAgeing of topics that say nothing.
const defaultAgeing = 10

// MaxAgeing is the most that PriorityAgeing may be.
const MaxAgeing = 1000

// Ageing is PriorityAgeing or its default.
func (t *Topic) Ageing() int {
	if t.PriorityAgeing == 0 {
		return defaultAgeing
	}
	return t.PriorityAgeing
}

// Active is where new tasks go.
func (t *Topic) Active() Span { return Span{t.First, t.Shards} }

// Spans returns the generations that may have tasks, the active one first, then
// from the newest to the oldest.
func (t *Topic) Spans() []Span {
	spans := []Span{t.Active()}
	for i := len(t.Former) - 1; i >= 0; i-- {
		if t.Former[i].Shards > 0 {
			spans = append(spans, t.Former[i])
		}
	}
	return spans
}

// Has reports whether a shard is one of those that may have tasks.
func (t *Topic) Has(n int) bool {
	return slices.ContainsFunc(t.Spans(), func(s Span) bool { return n >= s.First && n < s.First+s.Shards })
}

// End is above the number of every shard that the topic has or had.
func (t *Topic) End() int { return t.First + t.Shards }

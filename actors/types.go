package actors

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// When is a due time as asked for: At when it is not 0, else Delay from now.
type When struct {
	Delay time.Duration
	At    store.Millis
}

// NewTask asks for a task. An empty Task.ID asks for a UUIDv7; Due, Created,
// Fingerprint and Attempt of Task are set by System.
type NewTask struct {
	Topic       string
	Task        store.Task
	When        When
	ExpireAfter time.Duration // from the due time; 0 leaves Task.Expires

	// The task may run so much later than it is due, or up to that time: the node says
	// when. Both 0: it is due as asked for.
	Slack  time.Duration
	Latest store.Millis
}

// Enqueued is the outcome of one NewTask.
type Enqueued struct {
	ID           string
	Due          store.Millis
	State        store.State
	Deduplicated bool
	Replaced     store.State // done, dead or expired when such a task was replaced
	Key          KeyOutcome  // of a task with an idempotency key
	Err          *Error      // nil: stored
}

// Found is a task and where it was found.
type Found struct {
	Topic string
	Shard store.Shard
	store.Snapshot
	MaxRetries    int // the task's own or the topic's
	store.History     // Get and Wait

	WaitingFor WaitingFor   // a task that is due, see System.explain
	NextToken  store.Millis // WaitsForRate: when there is one that nobody has reserved

	limits store.TopicLimits // of its topic
}

// SubscribeOptions are one worker's wishes for one topic.
type SubscribeOptions struct {
	Topic       string
	Worker      string
	MaxInFlight int           // 0: 1,000; at most Limits.MaxInFlight
	Visibility  time.Duration // 0: the topic's
	LocalOnly   bool          // of shards that this node owns
	Peer        string        // the node that subscribes on demand; empty for a worker
	OnDemand    bool          // credit that finds no ready task comes back, see Outbox.Demand
}

// byNode reports whether it is another node that subscribes, for a worker of its own.
func (o *SubscribeOptions) byNode() bool { return o.OnDemand && o.Peer != "" }

// Delivery is a task held for a worker.
type Delivery struct {
	Topic      string
	Task       *store.Task
	MaxRetries int
	Token      []byte        // opaque to workers: shard and hold token
	Deadline   store.Millis  // of the hold, on the store's clock; 0: not told
	HoldFor    time.Duration // what is left of the hold at hand-over
}

// SettleKind is what a worker asks for one hold.
type SettleKind uint8

const (
	SettleAck SettleKind = iota + 1
	SettleNack
	SettleRelease // give back without spending the attempt
	SettleExtend
)

// Settlement is a worker's request about one hold.
type Settlement struct {
	Kind      SettleKind
	ID        string
	Token     []byte
	Error     string         // nack
	Delay     *time.Duration // nack, release: nil leaves it to the backoff (release: at once)
	Permanent bool           // nack: dead-letter
	Result    []byte         // ack: kept with the done task
	Unseen    bool           // release: no worker has seen the task, which is no attempt
	Extend    time.Duration  // extend: 0 the topic's visibility timeout

	reason store.Reason // nack: dead-letter for this reason
}

// Settled is the outcome of one Settlement.
type Settled struct {
	ID      string
	Token   []byte
	Kind    SettleKind
	Already bool          // ack: accepted before
	State   store.State   // nack, release: the task's state now
	Due     store.Millis  // nack, release: when it is due again
	HoldFor time.Duration // extend: what the hold lasts from now

	Cancelled bool // extend: the task's cancellation was asked for

	Err *Error // nil: done
}

// Outbox is where what goes to a subscription's stream is put. Its methods may be
// called from any goroutine and must not block.
type Outbox interface {
	// Deliver takes deliveries, the slice too; false when the stream has ended and took none.
	Deliver([]Delivery) bool
	Settled(sequence uint64, results []Settled)
	Drain(grace time.Duration)
	// Cancel says that the cancellation of delivered tasks was asked for.
	Cancel([]CancelAsk)
	// Demand, of a subscription on demand: how many tasks are ready without credit
	// now, and how much credit came back unused.
	Demand(ready, returned int)
	// NodesChanged, of a worker's subscription on demand: the fleet is another one.
	NodesChanged()
}

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

	// IfVersion refuses the change unless the topic has this version.
	IfVersion *int64
	// Ramp is how long deliveries rise when the change ends their pause.
	Ramp time.Duration

	Rate, KeyRate               *store.Rate // the zero one ends the limit
	Concurrency, KeyConcurrency *int        // 0 ends the cap
	OverLimitDead               *bool       // dead-letter tasks over a rate
}

// Depth counts the tasks of a topic by state.
type Depth struct {
	Scheduled, Ready, Running, Done, Dead int64
}

// TopicStatus is a topic as it stands.
type TopicStatus struct {
	store.Topic
	Depth         Depth
	Subscriptions int // on this node
	Indexing      int // shards whose index is not what the topic says yet
}

// DeadFilter narrows down dead letters; zero fields match everything.
type DeadFilter struct {
	Reason        store.Reason
	ErrorContains string
	After, Before store.Millis
}

// ServerStatus describes the node.
type ServerStatus struct {
	Node       string
	Store      store.Info
	Warnings   []string
	StoreNow   store.Millis
	Uptime     time.Duration
	Limits     Limits
	Visibility time.Duration // default of new topics
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
}

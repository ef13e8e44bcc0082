package service

import (
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// taskStore is the role of the store for use cases that read and change tasks.
type taskStore interface {
	store.Reader
	store.Writer
}

// When is a due time as asked for: At when it is not 0, else Delay from now.
type When struct {
	Delay time.Duration
	At    store.Millis
}

// NewTask asks for a task. An empty Task.ID asks for a UUIDv7; Due, Created,
// Fingerprint and Attempt of Task are set by Enqueue.
type NewTask struct {
	Topic       string
	Task        store.Task
	When        When
	ExpireAfter time.Duration // from the due time; 0 leaves Task.Expires

	// PayloadFingerprint, unless it is empty, is what makes two payloads the same.
	PayloadFingerprint []byte

	// TraceCut says that something of its trace context was left out: it was malformed, or too long.
	TraceCut bool

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
	Replaced     store.State    // done, dead or expired when such a task was replaced
	Key          KeyOutcome     // of a task with an idempotency key
	Err          *problem.Error // nil: stored

	decided uint32 // 1: the rest is final; for those who read it while others write, by atomic calls
}

// Found is a task and where it was found.
type Found struct {
	Topic string
	Shard store.Shard
	store.Snapshot
	MaxRetries    int // the task's own or the topic's
	store.History     // Get and Wait

	WaitingFor WaitingFor   // a task that is due, see explainer
	NextToken  store.Millis // WaitsForRate: when there is one that nobody has reserved

	limits store.TopicLimits // of its topic
}

// KeyOutcome is what became of a task with an idempotency key.
type KeyOutcome uint8

const (
	KeyNone     KeyOutcome = iota // the task had no key
	KeyTook                       // it was free, and is this task's now
	KeyReturned                   // another task has it, which is the answer
	KeyReplaced                   // the pending task that has it is this one now
	KeyPassed                     // the task that had it is not pending any more: this one is another, and has the key now
)

// WaitingFor is what a task that is due lacks.
type WaitingFor uint8

const (
	WaitsForWorker WaitingFor = iota // or nothing
	WaitsForRate
	WaitsForConcurrency
	WaitsForOrder // another task of its ordering key is before it
)

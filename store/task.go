package store

import (
	"crypto/rand"
	"fmt"
	"math"
	"time"
)

// Millis is an instant on the store's clock in Unix milliseconds, UTC.
type Millis int64

// Time returns m as a time in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Add returns m moved by d, rounded up to the millisecond.
func (m Millis) Add(d time.Duration) Millis {
	return m + Millis(CeilMillis(d))
}

// Sub returns the time from other to m.
func (m Millis) Sub(other Millis) time.Duration { return time.Duration(m-other) * time.Millisecond }

// CeilMillis returns d in milliseconds, rounded up.
func CeilMillis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// FromMillis returns so many milliseconds, which come from a record or a message: where there are
// more than a Duration has room for, as many whole ones as it has.
func FromMillis(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(max(-most, min(ms, most))) * time.Millisecond
}

// Shard is one numbered part of a topic and the unit of ownership.
type Shard struct {
	Topic string
	N     int

	// Life is the Life of the topic that a call is made for, where a shard of another
	// one must refuse it: Add, AddKeyed, HoldNew, Seal, DropShard and OpenShard. It is
	// no part of the name; 0: the caller does not say, see ShardLife.
	Life uint64
}

// For is the shard in a call that is made for a topic of that life.
func (s Shard) For(life uint64) Shard {
	s.Life = life
	return s
}

// Name is the shard without a life: two values that name the same shard are equal.
func (s Shard) Name() Shard { return Shard{Topic: s.Topic, N: s.N} }

func (s Shard) String() string { return fmt.Sprintf("%s/%d", s.Topic, s.N) }

// Token is the proof of one hold: 128 random bits, new for every attempt.
type Token [16]byte

// NewToken returns a random token.
func NewToken() (t Token) {
	rand.Read(t[:]) // never fails
	return t
}

// NewTokens returns n random tokens. Together they cost a fraction of what they cost
// one by one.
func NewTokens(n int) []Token {
	random := make([]byte, n*len(Token{}))
	rand.Read(random) // never fails
	tokens := make([]Token, n)
	for i := range tokens {
		copy(tokens[i][:], random[i*len(Token{}):])
	}
	return tokens
}

// Fence proves a claim of a shard. Owner calls carry it.
type Fence struct {
	Epoch int64 // rises by one with every claim
	Nonce Token // random for every claim, so that a rewound epoch cannot be mistaken
}

// State is where a task is in its life.
type State uint8

const (
	StateUnknown   State = iota
	StateScheduled       // pending, not due yet, no attempt failed
	StateReady           // pending and due
	StateRunning         // held
	StateRetrying        // pending, not due yet, an attempt failed
	StateDone            // acked and kept for the retention
	StateDead            // dead letter
	StateExpired         // dead letter whose expiry passed before delivery
)

var stateNames = [...]string{"unknown", "scheduled", "ready", "running", "retrying", "done", "dead", "expired"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Pending reports whether no worker holds the task and one may yet.
func (s State) Pending() bool {
	return s == StateScheduled || s == StateReady || s == StateRetrying
}

// MaxDue is beyond every due time.
const MaxDue = Millis(1 << 52)

// BatchItems is how many tasks a call of a store is given at most by a node.
const BatchItems = 512

// RetryLimit is how often the task is tried again: its own number, or that of its topic.
func (t *Task) RetryLimit(topic *Topic) int {
	if t.MaxRetries >= 0 {
		return t.MaxRetries
	}
	return topic.MaxRetries
}

// Live reports whether a task in this state will get into another one by itself.
func (s State) Live() bool { return s.Pending() || s == StateRunning }

// PendingState tells the three faces of a pending task apart.
func PendingState(due, now Millis, attempt int) State {
	switch {
	case due <= now:
		return StateReady
	case attempt > 0:
		return StateRetrying
	}
	return StateScheduled
}

// Reason says why a task is a dead letter.
type Reason uint8

const (
	ReasonNone        Reason = iota
	ReasonMaxRetries         // the last allowed attempt failed
	ReasonPermanent          // a worker said that no attempt will do
	ReasonExpired            // its expiry passed before delivery
	ReasonCorrupt            // its record could not be read
	ReasonHoldExpired        // the hold of its last allowed attempt ran out
	ReasonRateLimited        // it came when a rate had no token left, and its topic lets none wait

	ReasonCancelled Reason = 8 // its cancellation was asked for while it ran

	// ReasonUndeliverable is of what an ack enqueued and its topic refuses. No store knows it.
	ReasonUndeliverable Reason = 9
)

// Attribute is one header of a task.
type Attribute struct{ Key, Value string }

// BackoffKind is the shape of a backoff.
type BackoffKind uint8

const (
	BackoffFixed       BackoffKind = iota + 1 // base
	BackoffLinear                             // base * n
	BackoffQuadratic                          // base * n²
	BackoffExponential                        // base * 2^(n-1)
)

// Backoff says how long a task waits after its n-th attempt failed, n from 1.
type Backoff struct {
	Kind   BackoffKind
	Base   time.Duration
	Max    time.Duration // cap of one wait; 0 means a day
	Jitter int           // percent by which a wait may be shortened at random, 0 to 100
}

// Task is a task as it was enqueued, with what its attempts left behind.
// The fields up to Fingerprint are the caller's; the rest is the store's.
type Task struct {
	ID             string
	Payload        []byte
	Attributes     []Attribute
	Due            Millis
	Created        Millis
	Expires        Millis        // 0 never: dead-lettered when not held by then
	Visibility     time.Duration // 0: the topic's
	HandlerTimeout time.Duration // of one attempt; 0: the worker decides
	MaxRetries     int           // -1: the topic's
	Backoff        *Backoff      // nil: the topic's
	Traits         *Traits       // nil: none
	Key            *Key          // nil: none. Stores keep its Text with the task
	Indexed        IndexSet      // names of attributes by which it is found; not in what stores return
	RunOf          *RunOf        // nil: it was enqueued
	StepOf         *StepOf       // nil: it is no step of a workflow
	Cause          *Cause        // nil: no ack enqueued it
	Trace          *Trace        // nil: none, or none that could be read. No part of the fingerprint
	Tells          CellID        // a cell that is told when it ends for good, see Ended; empty: none
	Fingerprint    uint64        // hash of the request that made the task

	Attempt   int    // deliveries so far, the running one included
	LastError string // of the last failed attempt
	Edits     int64  // accepted so far, see Version

	// Encrypted says that nobody can read the payload, the data of a recipient, and what the task knows
	// of steps, without a key, see EncryptedBytes. Stores keep it, and do not look at it.
	Encrypted bool

	// Journal is what names of the task returned in attempts before, in no particular order.
	// Hold returns it, and nothing else does.
	Journal []JournalEntry
}

// RunOf says which occurrence of which schedule a task was made of.
type RunOf struct {
	Schedule   string
	Occurrence Millis

	Recipient     string // of an audience, for whom it is; empty: it is the whole run
	RecipientData []byte // of the recipient
}

// Cause names the task whose ack enqueued another one.
type Cause struct{ Topic, ID string }

// StepOf says which step of which workflow a task is, and what the steps before it returned.
type StepOf struct {
	Workflow string // its id
	Topic    string // its topic; empty: that of the task
	Kind     string // its name; may be empty
	Name     string // of the step
	Copy     int    // from 1; 0: the step has no copies
	Try      int    // which making of the step it is, from 1
	Starts   int    // 1, and one more each time that the workflow began again
	Undo     bool   // the task compensates the step
	Input    []byte // of the workflow, if the step asks for it

	Inputs []StepInput // of an undo: its step
	Cut    bool        // Inputs have no results, which are too large together

	// Journal is that of its tasks before this one, with which the step goes on.
	Journal []JournalEntry
}

// StepInput is how a step, or a copy of one, ended before another one was made.
type StepInput struct {
	Step   string
	Copy   int // from 1; 0: the step has no copies
	End    StepEnd
	Size   int // of the result, also when that was left out
	Result []byte
	Error  string // the beginning of it, of a step that failed
}

// StepEnd is how a step ended.
type StepEnd uint8

const (
	StepDone StepEnd = iota + 1
	StepFailed
	StepCancelled
	StepSkipped
)

// Bytes is how much the caller's bytes of a task are together.
func (t *Task) Bytes() int {
	n := len(t.Payload) + journalBytes(t.Journal)
	if t.StepOf != nil {
		n += len(t.StepOf.Input) + journalBytes(t.StepOf.Journal)
		for i := range t.StepOf.Inputs {
			n += len(t.StepOf.Inputs[i].Result) + len(t.StepOf.Inputs[i].Step)
		}
	}
	return n
}

// Snapshot is a task as it stands in the store.
type Snapshot struct {
	Task
	State    State // StateUnknown: no such task
	Token    Token // running: the hold; done: the hold that ended it
	Deadline Millis
	Worker   string
	Reason   Reason
	Finished Millis // done, dead, expired

	// Of a running task.
	Node      string // that took it for the worker
	Started   Millis // 0: not known
	Cancelled bool   // its cancellation was asked for
}

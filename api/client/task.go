package client

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Task is what to enqueue. Only Topic is required.
type Task struct {
	// Topic is created with the server's defaults when it does not exist.
	Topic string

	// ID makes the enqueue repeatable: the same task again is answered with the
	// first receipt, another task of this ID is refused while the first lives.
	// At most 128 bytes. Defaults to a new UUIDv7.
	ID string

	// Idempotency makes tasks of one key one task. None when nil.
	Idempotency *Idempotency

	// Payload is the worker's business. At most 1 MiB unless the server allows more.
	Payload []byte

	// Delay until the task is due, from now on the server's clock; or Due, the
	// moment itself. Both are rounded up to the millisecond. Now when neither is set.
	Delay time.Duration
	Due   time.Time

	// Slack allows the task to run so much later, or Latest up to that moment: the
	// server spreads tasks evenly over what they allow, and the receipt has the time that
	// it chose. Neither: the task runs when it is due.
	Slack  time.Duration
	Latest time.Time

	// Attributes are headers for the worker: at most 32, of keys up to 64 bytes
	// and values up to 1,024.
	Attributes map[string]string

	// MaxRetries is how many deliveries may follow the first. The topic's when nil.
	MaxRetries *int

	// VisibilityTimeout is how long a worker may hold the task without extending
	// it: 1s to 12h. The topic's when 0.
	VisibilityTimeout time.Duration

	// HandlerTimeout is how long a handler may run in one attempt: then its context ends,
	// and the attempt has failed. At most 366 days. When 0, worker.Config.HandlerTimeout of
	// the worker that gets the task.
	HandlerTimeout time.Duration

	// Backoff between attempts. The topic's when nil.
	Backoff *Backoff

	// Priority says which of the tasks that are due goes first: 0, the lowest, to 9.
	// The lowest does not starve, see Policy.PriorityAgeing.
	Priority int

	// FairnessKey, such as a tenant's name: tasks of one priority take turns, each key with FairnessWeight
	// of them (1 to 1,000, the latest task of a key says what counts; 0 means 1). UTF-8 of at most 128 bytes.
	FairnessKey    string
	FairnessWeight int

	// RateKey and ConcurrencyKey name whose rate and cap the task counts for, where its topic has limits
	// for keys: Policy.KeyRate and KeyConcurrency. UTF-8 of at most 128 bytes.
	RateKey        string
	ConcurrencyKey string

	// OrderingKey, such as an account's number: tasks of one key are held one at a time, in order of their
	// due times; of those due at the same time, the one that was made first goes first. One that is to be
	// tried again keeps the others back. UTF-8 of at most 128 bytes. The ID has to be empty: it is made for
	// the key. An idempotency key is one of the tasks with the same ordering key only.
	OrderingKey string

	// Expires, or ExpireAfter measured from the due time: a task that was not
	// delivered by then goes to the dead letters. Never when neither is set.
	Expires     time.Time
	ExpireAfter time.Duration

	encoded     bool   // its payload is what a Codec made of it
	fingerprint []byte // of the payload before that
}

// Receipt says what was stored.
type Receipt struct {
	Topic        string
	ID           string
	Due          time.Time  // as resolved by the server
	Deduplicated bool       // the same task was stored before; this is that one's receipt
	Key          KeyOutcome // of a task with an idempotency key
	Replaced     State      // the state of the finished task of this ID that was replaced, if any
	Version      int64      // of the task: 1 when this call enqueued it; 0 where another one did, whose task may have been edited since
}

// String says what matters of the receipt, for logs.
func (r Receipt) String() string {
	text := fmt.Sprintf("task %s of topic %s, due %s", r.ID, r.Topic, r.Due.UTC().Format(time.RFC3339Nano))
	if r.Version > 0 {
		text += fmt.Sprintf(", version %d", r.Version)
	}
	if r.Deduplicated {
		text += ", enqueued before"
	}
	if r.Key != 0 {
		text += ", idempotency key " + r.Key.String()
	}
	if r.Replaced != StateUnknown {
		text += ", replaces one that was " + r.Replaced.String()
	}
	return text
}

// BackoffKind is how waits grow from attempt to attempt.
type BackoffKind int32

// With n the number of the attempt that failed, counted from 1.
const (
	BackoffFixed       BackoffKind = BackoffKind(ddqv1.BackoffKind_BACKOFF_KIND_FIXED)       // base
	BackoffLinear      BackoffKind = BackoffKind(ddqv1.BackoffKind_BACKOFF_KIND_LINEAR)      // base * n
	BackoffQuadratic   BackoffKind = BackoffKind(ddqv1.BackoffKind_BACKOFF_KIND_QUADRATIC)   // base * n^2
	BackoffExponential BackoffKind = BackoffKind(ddqv1.BackoffKind_BACKOFF_KIND_EXPONENTIAL) // base * 2^(n-1)
)

// String returns the kind in lower case, such as "exponential".
func (k BackoffKind) String() string {
	return wire.Word(ddqv1.BackoffKind(k).String(), "BACKOFF_KIND_")
}

// Backoff says how long a task waits between attempts.
type Backoff struct {
	Kind          BackoffKind   `json:"kind"`
	Base          time.Duration `json:"base_ms"`
	Max           time.Duration `json:"max_ms"`         // cap of one wait; 0 means a day
	JitterPercent int           `json:"jitter_percent"` // each wait is lowered by a random share of up to this: 0 to 100
}

// MarshalJSON writes the form that `ddq task get -o json` prints.
func (b Backoff) MarshalJSON() ([]byte, error) { return fields.Write(b) }

// UnmarshalJSON reads it.
func (b *Backoff) UnmarshalJSON(text []byte) error { return fields.Read(text, b) }

func (b *Backoff) wire() *ddqv1.Backoff {
	if b == nil {
		return nil
	}
	return &ddqv1.Backoff{
		Kind:          ddqv1.BackoffKind(b.Kind),
		BaseMs:        wire.Millis(b.Base),
		MaxMs:         wire.Millis(b.Max),
		JitterPercent: wire.Int32(b.JitterPercent),
	}
}

func backoffFrom(b *ddqv1.Backoff) *Backoff {
	if b == nil {
		return nil
	}
	return &Backoff{
		Kind:          BackoffKind(b.GetKind()),
		Base:          wire.Duration(b.GetBaseMs()),
		Max:           wire.Duration(b.GetMaxMs()),
		JitterPercent: int(b.GetJitterPercent()),
	}
}

// fill makes r the request for t, whose id is set.
func fill(r *sender.Request, t *Task) *Error {
	if err := t.check(); err != nil {
		return err
	}
	r.Reset(t.Payload)
	w := &r.Wire
	w.Topic, w.Id, w.PayloadFingerprint = t.Topic, t.ID, t.fingerprint
	switch {
	case !t.Due.IsZero():
		r.SetDue(t.Due)
	case t.Delay != 0:
		r.SetDelay(t.Delay)
	}
	if len(t.Attributes) > 0 {
		w.Attributes = wire.Attributes(t.Attributes)
	}
	if t.MaxRetries != nil {
		n := wire.Int32(*t.MaxRetries)
		w.MaxRetries = &n
	}
	w.VisibilityTimeoutMs, w.HandlerTimeoutMs = wire.Millis(t.VisibilityTimeout), wire.Millis(t.HandlerTimeout)
	w.Backoff = t.Backoff.wire()
	w.Idempotency = t.Idempotency.wire()
	w.Priority, w.FairnessKey, w.FairnessWeight = wire.Int32(t.Priority), t.FairnessKey, wire.Int32(t.FairnessWeight)
	w.RateKey, w.ConcurrencyKey, w.OrderingKey = t.RateKey, t.ConcurrencyKey, t.OrderingKey
	r.SetSpread(t.Latest, t.Slack)
	r.SetExpiry(t.Expires, t.ExpireAfter)
	if reason, field, value := wire.NotUTF8(w); field != "" {
		return &Error{Code: codes.InvalidArgument, Reason: reason, Field: field, Message: fmt.Sprintf("%s: %.100q is not UTF-8", field, value)}
	}
	return nil
}

// Request is what the server is asked for by an enqueue of t.
func (t Task) Request() (*ddqv1.EnqueueRequest, error) {
	r := new(sender.Request)
	if err := fill(r, &t); err != nil {
		return nil, err
	}
	return &r.Wire, nil
}

// check finds what the wire cannot say; the rest is the server's to judge.
func (t *Task) check() *Error {
	switch {
	case t.Delay != 0 && !t.Due.IsZero():
		return invalid("delay", "a task has a delay or a due time, not both")
	case t.Slack != 0 && !t.Latest.IsZero():
		return invalid("slack", "a task has a slack or a latest time, not both")
	case t.ExpireAfter != 0 && !t.Expires.IsZero():
		return invalid("expire_after", "a task has an expiry or a time to expire after, not both")
	}
	return nil
}

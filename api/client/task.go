package client

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/client/internal/fields"
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

	// FairnessKey, such as a tenant's name: tasks of one priority take turns, each key
	// with FairnessWeight of them (1 to 1,000, the latest task of a key says what
	// counts; 0 means 1). UTF-8 of at most 128 bytes.
	FairnessKey    string
	FairnessWeight int

	// RateKey and ConcurrencyKey name whose rate and cap the task counts for, where its
	// topic has limits for keys: Policy.KeyRate and KeyConcurrency. UTF-8 of at most 128
	// bytes.
	RateKey        string
	ConcurrencyKey string

	// OrderingKey, such as an account's number: tasks of one key are held one at a time,
	// in order of their due times; of those due at the same time, the one that was made
	// first goes first. One that is to be tried again keeps the others back. UTF-8 of at
	// most 128 bytes. The ID has to be empty: it is made for the key. An idempotency key
	// is one of the tasks with the same ordering key only.
	OrderingKey string

	// Expires, or ExpireAfter measured from the due time: a task that was not
	// delivered by then goes to the dead letters. Never when neither is set.
	Expires     time.Time
	ExpireAfter time.Duration
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
	return lowerName(ddqv1.BackoffKind(k).String(), "BACKOFF_KIND_")
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
		BaseMs:        millis(b.Base),
		MaxMs:         millis(b.Max),
		JitterPercent: int32Of(b.JitterPercent),
	}
}

func backoffFrom(b *ddqv1.Backoff) *Backoff {
	if b == nil {
		return nil
	}
	return &Backoff{
		Kind:          BackoffKind(b.GetKind()),
		Base:          duration(b.GetBaseMs()),
		Max:           duration(b.GetMaxMs()),
		JitterPercent: int(b.GetJitterPercent()),
	}
}

// request is an EnqueueRequest with room for its usual parts, so that a
// pooled one is filled without allocating.
type request struct {
	wire    ddqv1.EnqueueRequest
	byDelay ddqv1.EnqueueRequest_Delay
	delay   durationpb.Duration
	byDue   ddqv1.EnqueueRequest_ExecuteTime
	due     timestamppb.Timestamp
	payload []byte // a copy: the caller may leave before the task is sent
	size    int    // encoded
}

// fill makes r the request for t, whose id is set.
func (r *request) fill(t *Task) *Error {
	if err := t.check(); err != nil {
		return err
	}
	r.payload = append(r.payload[:0], t.Payload...)
	w := &r.wire
	w.Reset()
	w.Topic, w.Id, w.Payload = t.Topic, t.ID, r.payload
	r.fillDue(t)
	if len(t.Attributes) > 0 {
		w.Attributes = attributes(t.Attributes)
	}
	if t.MaxRetries != nil {
		n := int32Of(*t.MaxRetries)
		w.MaxRetries = &n
	}
	w.VisibilityTimeoutMs, w.HandlerTimeoutMs = millis(t.VisibilityTimeout), millis(t.HandlerTimeout)
	w.Backoff = t.Backoff.wire()
	w.Idempotency = t.Idempotency.wire()
	w.Priority, w.FairnessKey, w.FairnessWeight = int32Of(t.Priority), t.FairnessKey, int32Of(t.FairnessWeight)
	w.RateKey, w.ConcurrencyKey, w.OrderingKey = t.RateKey, t.ConcurrencyKey, t.OrderingKey
	switch {
	case !t.Latest.IsZero():
		w.Spread = &ddqv1.EnqueueRequest_LatestTime{LatestTime: timestamppb.New(t.Latest)}
	case t.Slack != 0:
		w.Spread = &ddqv1.EnqueueRequest_Slack{Slack: durationpb.New(t.Slack)}
	}
	switch {
	case !t.Expires.IsZero():
		w.Expiry = &ddqv1.EnqueueRequest_ExpireTime{ExpireTime: timestamppb.New(t.Expires)}
	case t.ExpireAfter != 0:
		w.Expiry = &ddqv1.EnqueueRequest_ExpireAfter{ExpireAfter: durationpb.New(t.ExpireAfter)}
	}
	r.size = w.SizeVT()
	return nil
}

func (r *request) fillDue(t *Task) {
	switch {
	case !t.Due.IsZero():
		r.due.Seconds, r.due.Nanos = t.Due.Unix(), int32(t.Due.Nanosecond())
		r.byDue.ExecuteTime = &r.due
		r.wire.When = &r.byDue
	case t.Delay != 0:
		r.delay.Seconds, r.delay.Nanos = int64(t.Delay/time.Second), int32(t.Delay%time.Second)
		r.byDelay.Delay = &r.delay
		r.wire.When = &r.byDelay
	}
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

// attributes are sorted, so that the same task encodes to the same request.
func attributes(m map[string]string) []*ddqv1.Attribute {
	list := make([]*ddqv1.Attribute, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, &ddqv1.Attribute{Key: key, Value: m[key]})
	}
	return list
}

func attributesFrom(list []*ddqv1.Attribute) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]string, len(list))
	for _, a := range list {
		m[a.GetKey()] = a.GetValue()
	}
	return m
}

// millis rounds up, away from "none".
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

func duration(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// int32Of clamps, so that a number out of range stays out of range.
func int32Of(n int) int32 {
	return int32(max(math.MinInt32, min(math.MaxInt32, n)))
}

// timeOf returns the zero time for an unset timestamp.
func timeOf(ts *timestamppb.Timestamp) time.Time {
	if ts == nil {
		return time.Time{}
	}
	return ts.AsTime()
}

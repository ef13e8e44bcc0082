package worker

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Task is a task held by this worker. Its bytes and map are the handler's. When the hold
// ends is not said: the worker extends it, and the handler's context ends when that fails.
type Task struct {
	ID         string
	Topic      string
	Payload    []byte
	Attributes map[string]string
	Attempt    int       // number of this delivery, from 1
	MaxRetries int       // deliveries that may follow the first
	Due        time.Time // it was not delivered before
	CreatedAt  time.Time
	Version    int64 // 1 when enqueued; rises by one with every edit

	// OrderingKey is the task's, empty for none: while this worker has the task, and until
	// it is done or dead, no other task of the key is delivered.
	OrderingKey string

	Trace Trace // who enqueued it, for tracing; package api/tracing makes spans of it

	Run  *Run  // of a schedule; nil of a task that no schedule made
	Step *Step // of a workflow; nil of a task that is none

	Priority       int    // 0, the lowest, to 9
	FairnessKey    string // the keys that it shares with other tasks; empty for none
	RateKey        string
	ConcurrencyKey string
	IdempotencyKey string
	Expires        time.Time // it is not delivered after that; zero for never
	LastError      string    // of the attempt before, empty when none failed

	// HandlerTimeout is how long the task lets a handler run; 0 when it leaves that to
	// Config.HandlerTimeout.
	HandlerTimeout time.Duration

	// HoldToken proves the hold; no other attempt of any task has the same. A
	// resource that keeps the token of the attempt it last served can tell a
	// repeat of that attempt from another one.
	HoldToken []byte

	ending  *ending  // where SetResult and Enqueue put it; nil for a task that no worker made
	journal *journal // what Once remembers; the same
}

// Run says which run of a schedule a task is.
type Run struct {
	Schedule   string    // its name
	Occurrence time.Time // the instant that its timetable named

	// Recipient is for whom the task is, of a schedule that has an audience, and
	// RecipientData what the audience has of it. Empty of all others.
	Recipient     string
	RecipientData []byte
}

// MaxResult is how many bytes a result may have.
const MaxResult = 256 << 10

// NewTask returns t as a handler gets it, for tests of handlers: with an id, as a first
// attempt unless it is another one, and with room for a result and for tasks
// that it enqueues. Result and Enqueued return those.
func NewTask(t Task) Task {
	t.ID = cmp.Or(t.ID, "test")
	t.Attempt = max(t.Attempt, 1)
	t.Version = max(t.Version, 1)
	t.ending, t.journal = new(ending), new(journal)
	return t
}

// SetResult makes b what the task's producer may read once the task is done, for as long
// as the topic keeps done tasks. It counts when the handler returns nil after it; the
// last call does. It fails for more than MaxResult bytes. It is the handler's to call,
// before it returns, from one goroutine at a time; b is kept.
func (t Task) SetResult(b []byte) error {
	if len(b) > MaxResult {
		return fmt.Errorf("result has %d bytes; at most %d are allowed", len(b), MaxResult)
	}
	if t.ending != nil {
		t.ending.result = b
	}
	return nil
}

// Result returns what SetResult was given, nil when that was not called. Of a task that
// neither a worker nor NewTask made it is always nil.
func (t Task) Result() []byte {
	if t.ending == nil {
		return nil
	}
	return t.ending.result
}

// Last reports whether no attempt follows if this one fails.
func (t Task) Last() bool { return t.Attempt > t.MaxRetries }

// fill makes t, which is zero, the task of a delivery. A Task is large: it is written where
// it stays.
func (t *Task) fill(d *ddqv1.Delivery) {
	from := d.GetTask()
	t.ID, t.Topic, t.Payload = from.GetId(), from.GetTopic(), from.GetPayload()
	t.Attempt, t.MaxRetries = int(from.GetRetryCount())+1, int(from.GetMaxRetries())
	t.Due, t.CreatedAt, t.Expires = timeOf(from.GetExecuteTime()), timeOf(from.GetCreatedAt()), timeOf(from.GetExpireTime())
	t.Version, t.Priority, t.LastError = from.GetVersion(), int(from.GetPriority()), from.GetLastError()
	t.HandlerTimeout = time.Duration(from.GetHandlerTimeoutMs()) * time.Millisecond
	t.OrderingKey, t.FairnessKey = from.GetOrderingKey(), from.GetFairnessKey()
	t.RateKey, t.ConcurrencyKey, t.IdempotencyKey = from.GetRateKey(), from.GetConcurrencyKey(), from.GetIdempotencyKey()
	t.HoldToken = d.GetHoldToken()
	t.Trace = Trace{from.GetTraceparent(), from.GetTracestate(), d.GetTraceparent()}
	t.Run, t.Step = runOf(from), stepOf(from)
	if list := from.GetAttributes(); len(list) > 0 {
		t.Attributes = make(map[string]string, len(list))
		for _, a := range list {
			t.Attributes[a.GetKey()] = a.GetValue()
		}
	}
}

// runOf is nil of a task that no schedule made.
func runOf(t *ddqv1.Task) *Run {
	if t.GetSchedule() == "" {
		return nil
	}
	return &Run{Schedule: t.GetSchedule(), Occurrence: timeOf(t.GetOccurrenceTime()), Recipient: t.GetRecipient(), RecipientData: t.GetRecipientData()}
}

func timeOf(ts *timestamppb.Timestamp) time.Time {
	if ts == nil {
		return time.Time{}
	}
	return ts.AsTime()
}

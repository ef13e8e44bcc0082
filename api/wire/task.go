package wire

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// Contents are the fields that a task has from its enqueue on and that a worker's node
// learns, too. An EnqueueRequest has them, and a Task.
type Contents interface {
	GetId() string
	GetPayload() []byte
	GetAttributes() []*ddqv1.Attribute
	GetVisibilityTimeoutMs() int64
	GetHandlerTimeoutMs() int64
	GetBackoff() *ddqv1.Backoff
	traits
}

// ReadContents writes contents into t. The attributes go to the end of slab, which it
// returns. With an error t has all the fields that are well formed.
func ReadContents(t *store.Task, from Contents, slab []store.Attribute) ([]store.Attribute, *problem.Error) {
	t.ID, t.Payload = from.GetId(), from.GetPayload()
	t.Traits = ReadTraits(from)
	slab, t.Attributes = ReadAttributes(from.GetAttributes(), slab)
	var badHold, badTimeout, badBackoff *problem.Error
	t.Visibility, badHold = Span(from.GetVisibilityTimeoutMs(), "visibility_timeout_ms")
	t.HandlerTimeout, badTimeout = Span(from.GetHandlerTimeoutMs(), "handler_timeout_ms")
	t.Backoff, badBackoff = ReadBackoff(from.GetBackoff(), "backoff")
	return slab, cmp.Or(badHold, badTimeout, badBackoff)
}

// PutTask writes what the store keeps of every task.
func PutTask(t *ddqv1.Task, from *store.Task) {
	PutTaskIn(t, new([2]timestamppb.Timestamp), from)
	if from.Trace != nil {
		t.Traceparent, t.Tracestate = Traceparent(from.Trace), from.Trace.State
	}
}

// PutTaskIn is PutTask but for the trace context. The two timestamps lie in
// stamps, so that a frame of deliveries needs one allocation for all of them.
func PutTaskIn(t *ddqv1.Task, stamps *[2]timestamppb.Timestamp, from *store.Task) {
	t.Id = from.ID
	t.Payload = from.Payload
	t.ExecuteTime = Stamp(&stamps[0], from.Due)
	t.CreatedAt = Stamp(&stamps[1], from.Created)
	t.Attributes = PutAttributes(from.Attributes)
	t.ExpireTime = StampOrNil(from.Expires)
	t.VisibilityTimeoutMs = store.CeilMillis(from.Visibility)
	t.HandlerTimeoutMs = store.CeilMillis(from.HandlerTimeout)
	t.Backoff = PutBackoff(from.Backoff)
	t.LastError = Text(from.LastError)
	t.Version = from.Version()
	if from.Key != nil {
		t.IdempotencyKey = Text(from.Key.Text)
	}
	if from.RunOf != nil {
		t.Schedule, t.OccurrenceTime = Text(from.RunOf.Schedule), StampOrNil(from.RunOf.Occurrence)
		t.Recipient, t.RecipientData = Text(from.RunOf.Recipient), from.RunOf.RecipientData
	}
	putStep(t, from.StepOf)
	if from.Cause != nil {
		t.Cause = &ddqv1.TaskCause{Topic: from.Cause.Topic, Id: from.Cause.ID}
	}
	if r := from.Traits; r != nil {
		t.Priority, t.FairnessKey, t.FairnessWeight = int32(r.Priority), r.FairnessKey, int32(r.FairnessWeight)
		t.RateKey, t.ConcurrencyKey, t.OrderingKey = r.RateKey, r.ConcurrencyKey, r.OrderingKey
	}
}

// ReadTask reads what PutTask wrote at another node for a delivery. What is malformed is
// left out.
func ReadTask(t *store.Task, from *ddqv1.Task) {
	_, _ = ReadContents(t, from, nil)
	t.Due, t.Created = Millis(from.GetExecuteTime()), Millis(from.GetCreatedAt())
	t.Expires = Millis(from.GetExpireTime())
	t.MaxRetries = int(from.GetMaxRetries())
	t.Attempt = int(from.GetRetryCount()) + 1
	t.LastError = from.GetLastError()
	t.Edits = max(0, from.GetVersion()-1)
	if key := from.GetIdempotencyKey(); key != "" {
		t.Key = &store.Key{Text: key}
	}
	if name := from.GetSchedule(); name != "" {
		t.RunOf = &store.RunOf{
			Schedule: name, Occurrence: Millis(from.GetOccurrenceTime()),
			Recipient: from.GetRecipient(), RecipientData: from.GetRecipientData(),
		}
	}
	t.StepOf = readStep(from)
	if c := from.GetCause(); c != nil {
		t.Cause = &store.Cause{Topic: c.GetTopic(), ID: c.GetId()}
	}
	t.Trace, _ = ReadTrace(from.GetTraceparent(), from.GetTracestate())
}

// PutAttributes returns nil for none.
func PutAttributes(from []store.Attribute) []*ddqv1.Attribute {
	if len(from) == 0 {
		return nil
	}
	slab := make([]ddqv1.Attribute, len(from))
	out := make([]*ddqv1.Attribute, len(from))
	for i, a := range from {
		slab[i].Key, slab[i].Value = Text(a.Key), Text(a.Value)
		out[i] = &slab[i]
	}
	return out
}

// ReadAttributes returns slab with attributes at its end, and these; nil for none.
func ReadAttributes(from []*ddqv1.Attribute, slab []store.Attribute) (all, read []store.Attribute) {
	if len(from) == 0 {
		return slab, nil
	}
	begin := len(slab)
	for _, a := range from {
		slab = append(slab, store.Attribute{Key: a.GetKey(), Value: a.GetValue()})
	}
	return slab, slab[begin:len(slab):len(slab)]
}

// traits are the fields of ddqv1.Traits, which several messages have among theirs.
type traits interface {
	GetPriority() int32
	GetFairnessKey() string
	GetFairnessWeight() int32
	GetRateKey() string
	GetConcurrencyKey() string
	GetOrderingKey() string
}

// ReadTraits returns nil for a task without any, which most are.
func ReadTraits(from traits) *store.Traits {
	if from.GetPriority() == 0 && from.GetFairnessKey() == "" && from.GetFairnessWeight() == 0 &&
		from.GetRateKey() == "" && from.GetConcurrencyKey() == "" && from.GetOrderingKey() == "" {
		return nil
	}
	return &store.Traits{
		Priority: int(from.GetPriority()), FairnessKey: from.GetFairnessKey(), FairnessWeight: int(from.GetFairnessWeight()),
		RateKey: from.GetRateKey(), ConcurrencyKey: from.GetConcurrencyKey(), OrderingKey: from.GetOrderingKey(),
	}
}

// PutTraits returns empty traits for a task without any.
func PutTraits(t *store.Traits) *ddqv1.Traits {
	if t == nil {
		return &ddqv1.Traits{}
	}
	return &ddqv1.Traits{
		Priority: int32(t.Priority), FairnessKey: t.FairnessKey, FairnessWeight: int32(t.FairnessWeight),
		RateKey: t.RateKey, ConcurrencyKey: t.ConcurrencyKey, OrderingKey: t.OrderingKey,
	}
}

var backoffKinds = [...]ddqv1.BackoffKind{
	store.BackoffFixed:       ddqv1.BackoffKind_BACKOFF_KIND_FIXED,
	store.BackoffLinear:      ddqv1.BackoffKind_BACKOFF_KIND_LINEAR,
	store.BackoffQuadratic:   ddqv1.BackoffKind_BACKOFF_KIND_QUADRATIC,
	store.BackoffExponential: ddqv1.BackoffKind_BACKOFF_KIND_EXPONENTIAL,
}

// PutBackoff converts a backoff that may be unset.
func PutBackoff(b *store.Backoff) *ddqv1.Backoff {
	if b == nil {
		return nil
	}
	return &ddqv1.Backoff{
		Kind:          Enum(backoffKinds[:], b.Kind),
		BaseMs:        store.CeilMillis(b.Base),
		MaxMs:         store.CeilMillis(b.Max),
		JitterPercent: int32(b.Jitter),
	}
}

// ReadBackoff converts a backoff that may be unset.
func ReadBackoff(b *ddqv1.Backoff, field string) (*store.Backoff, *problem.Error) {
	if b == nil {
		return nil, nil
	}
	if b.Kind == ddqv1.BackoffKind_BACKOFF_KIND_UNSPECIFIED {
		return nil, Invalid("BAD_ENUM", field+".kind", "is required in a backoff")
	}
	kind, e := ReadEnum[store.BackoffKind](backoffKinds[:], b.Kind, field+".kind")
	if e != nil {
		return nil, e
	}
	var base, most time.Duration
	if base, e = Span(b.BaseMs, field+".base_ms"); e != nil {
		return nil, e
	}
	if most, e = Span(b.MaxMs, field+".max_ms"); e != nil {
		return nil, e
	}
	return &store.Backoff{Kind: kind, Base: base, Max: most, Jitter: int(b.JitterPercent)}, nil
}

// TaskSize is about what a task takes up in a message.
func TaskSize(t *store.Task) int {
	n := 256 + len(t.ID) + t.Bytes() + len(t.LastError)
	for _, a := range t.Attributes {
		n += len(a.Key) + len(a.Value) + 8
	}
	return n
}

// Package record encodes what stores keep and never look into: the body of a
// task and the configuration of a topic.
package record

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// AppendBody appends the encoded body of t to b: payload, creation time,
// attributes, handler timeout, the schedule or the ack that made it or the step that it is, its trace context, and the
// task's own retry policy.
// What a store must look at (id, due time, expiry, visibility timeout, fingerprint) is not in it.
func AppendBody(b []byte, t *store.Task) ([]byte, error) {
	body := Body{Payload: t.Payload, CreatedMs: int64(t.Created), MaxRetriesPlusOne: int32(t.MaxRetries) + 1}
	if t.Encrypted {
		body.Payload, body.EncryptedPayload = nil, t.Payload
	}
	if t.Backoff != nil {
		body.Backoff = encodeBackoff(*t.Backoff)
	}
	body.HandlerTimeoutMs = store.CeilMillis(t.HandlerTimeout)
	if t.Traits != nil {
		body.Traits = AppendTraits(nil, t.Traits)
	}
	for _, a := range t.Attributes {
		body.Attributes = append(body.Attributes, &Attribute{Key: a.Key, Value: a.Value})
	}
	if t.Key != nil {
		body.IdempotencyKey = t.Key.Text
	}
	if t.RunOf != nil {
		body.Schedule, body.OccurrenceMs = t.RunOf.Schedule, int64(t.RunOf.Occurrence)
		body.Recipient, body.RecipientData = t.RunOf.Recipient, t.RunOf.RecipientData
	}
	body.Step = encodeStep(t.StepOf)
	if t.Cause != nil {
		body.Cause = &Cause{Topic: t.Cause.Topic, Id: t.Cause.ID}
	}
	body.Trace = EncodeTrace(t.Trace)
	start, size := len(b), body.SizeVT()
	b = append(b, make([]byte, size)...)
	if _, err := body.MarshalToSizedBufferVT(b[start:]); err != nil {
		return b[:start], fmt.Errorf("encode task %q: %w", t.ID, err)
	}
	return b, nil
}

// DecodeBody reads b into the body's fields of t. It copies what it keeps, the payload
// into what t.Payload has room for.
func DecodeBody(b []byte, t *store.Task) error {
	body := Body{Payload: t.Payload[:0]}
	if err := body.UnmarshalVT(b); err != nil {
		return fmt.Errorf("decode task: %w", err)
	}
	if body.MaxRetriesPlusOne < 0 || body.CreatedMs < 0 || body.HandlerTimeoutMs < 0 {
		return fmt.Errorf("decode task: negative retries, creation time or handler timeout")
	}
	t.Payload = body.Payload
	if t.Encrypted = len(body.EncryptedPayload) > 0; t.Encrypted {
		t.Payload = body.EncryptedPayload
	}
	t.Created = store.Millis(body.CreatedMs)
	t.MaxRetries = int(body.MaxRetriesPlusOne) - 1
	t.HandlerTimeout = store.FromMillis(body.HandlerTimeoutMs)
	if body.Backoff != nil {
		backoff := decodeBackoff(body.Backoff)
		t.Backoff = &backoff
	}
	if body.IdempotencyKey != "" {
		t.Key = &store.Key{Text: body.IdempotencyKey}
	}
	if body.Schedule != "" {
		t.RunOf = &store.RunOf{
			Schedule: body.Schedule, Occurrence: store.Millis(body.OccurrenceMs),
			Recipient: body.Recipient, RecipientData: body.RecipientData,
		}
	}
	t.StepOf = decodeStep(body.Step)
	if c := body.Cause; c != nil {
		t.Cause = &store.Cause{Topic: c.Topic, ID: c.Id}
	}
	t.Trace = DecodeTrace(body.Trace)
	for _, a := range body.Attributes {
		t.Attributes = append(t.Attributes, store.Attribute{Key: a.Key, Value: a.Value})
	}
	var err error
	t.Traits, err = DecodeTraits(body.Traits)
	return err
}

// EncodeTopic returns the stored form of t.
func EncodeTopic(t store.Topic) ([]byte, error) {
	var former []*Span
	for _, span := range t.Former {
		if span.Shards > 0 {
			former = append(former, &Span{First: int32(span.First), Shards: int32(span.Shards)})
		}
	}
	return (&Topic{
		First:               int32(t.First),
		Former:              former,
		Name:                t.Name,
		Life:                t.Life,
		Shards:              int32(t.Shards),
		VisibilityTimeoutMs: t.Visibility.Milliseconds(),
		MaxRetries:          int32(t.MaxRetries),
		Backoff:             encodeBackoff(t.Backoff),
		MaxDelayMs:          t.MaxDelay.Milliseconds(),
		MaxPayloadBytes:     int64(t.MaxPayload),
		DoneRetentionMs:     t.DoneRetention.Milliseconds(),
		DeadRetentionMs:     t.DeadRetention.Milliseconds(),
		MaxDead:             int64(t.MaxDead),
		MaxBacklog:          int64(t.MaxBacklog),
		ResumedMs:           int64(t.Resumed),
		RampMs:              t.Ramp.Milliseconds(),
		DeliveryPaused:      t.DeliveryPaused,
		EnqueuePaused:       t.EnqueuePaused,
		Version:             t.Version,
		PriorityAgeing:      int32(t.PriorityAgeing),
		Limits:              encodeLimits(t.Limits),
		IndexedAttributes:   t.Indexed.Names(),
		WatchRetentionMs:    t.Watch.Retention.Milliseconds(),
		WatchMax:            int64(t.Watch.Max),
		WorkflowRetentionMs: t.Workflows.Retention.Milliseconds(),
		MaxWorkflows:        int64(t.Workflows.Max),
		MaxSchedules:        int64(t.MaxSchedules),
	}).MarshalVT()
}

// DecodeTopic reads the stored form of a topic.
func DecodeTopic(b []byte) (store.Topic, error) {
	var t Topic
	if err := t.UnmarshalVT(b); err != nil {
		return store.Topic{}, fmt.Errorf("decode topic: %w", err)
	}
	if len(t.Former) > store.MaxFormer {
		return store.Topic{}, fmt.Errorf("decode topic: %d generations of shards", len(t.Former))
	}
	var former [store.MaxFormer]store.Span
	for i, span := range t.Former {
		former[i] = store.Span{First: int(span.First), Shards: int(span.Shards)}
	}
	return store.Topic{
		Name:           t.Name,
		Life:           t.Life,
		First:          int(t.First),
		Shards:         int(t.Shards),
		Former:         former,
		Visibility:     store.FromMillis(t.VisibilityTimeoutMs),
		MaxRetries:     int(t.MaxRetries),
		Backoff:        decodeBackoff(t.Backoff),
		MaxDelay:       store.FromMillis(t.MaxDelayMs),
		MaxPayload:     int(t.MaxPayloadBytes),
		DoneRetention:  store.FromMillis(t.DoneRetentionMs),
		DeadRetention:  store.FromMillis(t.DeadRetentionMs),
		MaxDead:        int(t.MaxDead),
		MaxBacklog:     int(t.MaxBacklog),
		Resumed:        store.Millis(t.ResumedMs),
		Ramp:           store.FromMillis(t.RampMs),
		DeliveryPaused: t.DeliveryPaused,
		EnqueuePaused:  t.EnqueuePaused,
		Version:        t.Version,
		PriorityAgeing: int(t.PriorityAgeing),
		Limits:         decodeLimits(t.Limits),
		Indexed:        store.NewIndexSet(t.IndexedAttributes...),
		Watch:          store.Watching{Retention: store.FromMillis(t.WatchRetentionMs), Max: int(t.WatchMax)},
		Workflows:      store.WorkflowPolicy{Retention: store.FromMillis(t.WorkflowRetentionMs), Max: int(t.MaxWorkflows)},
		MaxSchedules:   int(t.MaxSchedules),
	}, nil
}

func encodeBackoff(b store.Backoff) *Backoff {
	return &Backoff{
		Kind:          int32(b.Kind),
		BaseMs:        b.Base.Milliseconds(),
		MaxMs:         b.Max.Milliseconds(),
		JitterPercent: int32(b.Jitter),
	}
}

func decodeBackoff(b *Backoff) store.Backoff {
	return store.Backoff{
		Kind:   store.BackoffKind(b.GetKind()),
		Base:   store.FromMillis(b.GetBaseMs()),
		Max:    store.FromMillis(b.GetMaxMs()),
		Jitter: int(b.GetJitterPercent()),
	}
}

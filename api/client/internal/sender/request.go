package sender

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Request is an EnqueueRequest with room for its usual parts, so that a
// pooled one is filled without allocating.
type Request struct {
	Wire    ddqv1.EnqueueRequest
	byDelay ddqv1.EnqueueRequest_Delay
	delay   durationpb.Duration
	byDue   ddqv1.EnqueueRequest_ExecuteTime
	due     timestamppb.Timestamp
	payload []byte // a copy: the caller may leave before the task is sent
	size    int    // encoded
}

// Reset empties the request, and gives it a copy of payload.
func (r *Request) Reset(payload []byte) {
	r.payload = append(r.payload[:0], payload...)
	r.Wire.Reset()
	r.Wire.Payload = r.payload
}

// SetDue says when the task is due.
func (r *Request) SetDue(t time.Time) {
	r.due.Seconds, r.due.Nanos = t.Unix(), int32(t.Nanosecond())
	r.byDue.ExecuteTime = &r.due
	r.Wire.When = &r.byDue
}

// SetDelay says how long after now the task is due.
func (r *Request) SetDelay(d time.Duration) {
	r.delay.Seconds, r.delay.Nanos = int64(d/time.Second), int32(d%time.Second)
	r.byDelay.Delay = &r.delay
	r.Wire.When = &r.byDelay
}

// SetSpread says how much later the task may run: until a time, or by a span; not at all when both
// are zero.
func (r *Request) SetSpread(latest time.Time, slack time.Duration) {
	switch {
	case !latest.IsZero():
		r.Wire.Spread = &ddqv1.EnqueueRequest_LatestTime{LatestTime: timestamppb.New(latest)}
	case slack != 0:
		r.Wire.Spread = &ddqv1.EnqueueRequest_Slack{Slack: durationpb.New(slack)}
	}
}

// SetExpiry says when the task expires: at a time, or a span after its due time; never when both
// are zero.
func (r *Request) SetExpiry(at time.Time, after time.Duration) {
	switch {
	case !at.IsZero():
		r.Wire.Expiry = &ddqv1.EnqueueRequest_ExpireTime{ExpireTime: timestamppb.New(at)}
	case after != 0:
		r.Wire.Expiry = &ddqv1.EnqueueRequest_ExpireAfter{ExpireAfter: durationpb.New(after)}
	}
}

// MaxBytes is the most that a request may have, encoded: a server takes no message over 6 MiB, and
// ends the stream on which one comes.
const MaxBytes = 6<<20 - 64

// MaxAttributes is the most attributes that are sent: of tasks that have more, which every server refuses,
// a frame might have more items than a server takes in one message.
const MaxAttributes = 100

// TooLarge names the reason and the field because of which no server takes the request, empty for none: such a request is
// refused before it shares a frame with those of others.
func (r *Request) TooLarge() (reason, field, why string) {
	switch n := len(r.Wire.Attributes); {
	case n > MaxAttributes:
		return "BAD_ATTRIBUTES", "attributes", fmt.Sprintf("a task has %d attributes, which no server takes", n)
	case r.size > MaxBytes:
		return "PAYLOAD_TOO_LARGE", "payload", fmt.Sprintf("a task has %d bytes as it is sent; no server takes more than %d", r.size, MaxBytes)
	}
	return "", "", ""
}

// Measure counts the bytes of the request. It comes after the last change.
func (r *Request) Measure() { r.size = r.Wire.SizeVT() }

// keepPayload is the most payload of one task that a pooled request keeps room for.
const keepPayload = 16 << 10

// shrink gives up room that is not worth keeping.
func (r *Request) shrink() {
	if cap(r.payload) > keepPayload {
		r.payload = nil
	}
}

// Poisoned is the topic of a request that is back in its pool, under Pool.Poison.
const Poisoned = "poisoned"

// poison overwrites what a frame would read.
func (r *Request) poison() {
	for i := range r.payload[:cap(r.payload)] {
		r.payload[:cap(r.payload)][i] = 0xdb
	}
	r.Wire.Reset()
	r.Wire.Topic = Poisoned
}

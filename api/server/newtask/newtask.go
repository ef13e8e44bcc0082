package newtask

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
)

// Read writes r into t, which is zero.
func Read(t *service.NewTask, r *ddqv1.EnqueueRequest) *problem.Error { return new(Room).Read(t, r) }

// Read is Read with what tasks have apart from others in the room.
func (room *Room) Read(t *service.NewTask, r *ddqv1.EnqueueRequest) (e *problem.Error) {
	t.Topic, t.Task.MaxRetries, t.PayloadFingerprint = r.Topic, -1, r.PayloadFingerprint
	if e := readTimes(t, r); e != nil {
		return e
	}
	if r.MaxRetries != nil {
		if *r.MaxRetries < 0 { // -1 would mean the topic's
			return wire.Invalid("OUT_OF_RANGE_FIELD", "max_retries", "must not be negative")
		}
		t.Task.MaxRetries = int(*r.MaxRetries)
	}
	room.attributes, e = wire.ReadContents(&t.Task, r, room.attributes)
	if e != nil {
		return e
	}
	t.TraceCut = !room.readTrace(t, r)
	t.Task.Key, e = readKey(r.Idempotency)
	return e
}

// readTimes converts when the task is due and when it expires.
func readTimes(t *service.NewTask, r *ddqv1.EnqueueRequest) (e *problem.Error) {
	switch when := r.When.(type) {
	case *ddqv1.EnqueueRequest_Delay:
		t.When.Delay, e = wire.Delay(when.Delay, "delay")
	case *ddqv1.EnqueueRequest_ExecuteTime:
		t.When.At, e = wire.Instant(when.ExecuteTime, "execute_time")
	}
	if e != nil {
		return e
	}
	switch spread := r.Spread.(type) {
	case *ddqv1.EnqueueRequest_LatestTime:
		t.Latest, e = wire.Instant(spread.LatestTime, "latest_time")
	case *ddqv1.EnqueueRequest_Slack:
		t.Slack, e = wire.Delay(spread.Slack, "slack")
	}
	if e != nil {
		return e
	}
	switch expiry := r.Expiry.(type) {
	case *ddqv1.EnqueueRequest_ExpireTime:
		t.Task.Expires, e = wire.Instant(expiry.ExpireTime, "expire_time")
	case *ddqv1.EnqueueRequest_ExpireAfter:
		t.ExpireAfter, e = wire.Delay(expiry.ExpireAfter, "expire_after")
		if e == nil && t.ExpireAfter == 0 { // 0 would mean never
			e = wire.Invalid("BAD_DELAY", "expire_after", "must be longer than 0")
		}
	}
	return e
}

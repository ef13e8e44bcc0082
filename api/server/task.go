package server

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// foundWire converts a task as it stands.
func foundWire(f *service.Found) *ddqv1.Task {
	t := &ddqv1.Task{DeadReason: wireOf(reasonToWire[:], f.Reason), FinishedAt: stampOrNil(f.Finished)}
	taskWire(t, new([2]timestamppb.Timestamp), &f.Task)
	t.Topic = f.Topic
	t.State = stateWire(f.State)
	t.MaxRetries = int32(f.MaxRetries)
	t.RetryCount = retryCount(f.State, f.Attempt)
	t.WaitingFor, t.NextTokenTime = wireOf(waitingToWire[:], f.WaitingFor), stampOrNil(f.NextToken)
	if f.State == store.StateRunning {
		t.Worker = text(f.Worker)
		t.HoldDeadline = stampOrNil(f.Deadline)
		t.CancelRequested = f.Cancelled
	}
	return t
}

// historyWire is foundWire with what the task's attempts left behind, and the one that
// runs.
func historyWire(f *service.Found) *ddqv1.Task {
	t := foundWire(f)
	t.Result = f.Result
	attempts := f.Attempts
	if f.State == store.StateRunning {
		attempts = append(attempts, store.Attempt{Number: f.Attempt, Worker: f.Worker, Node: f.Node, Started: f.Started})
	}
	for i := range attempts {
		a := &attempts[i]
		t.Attempts = append(t.Attempts, &ddqv1.Attempt{
			Number:    int32(a.Number),
			Worker:    text(a.Worker),
			Node:      text(a.Node),
			StartedAt: stampOrNil(a.Started),
			EndedAt:   stampOrNil(a.Ended),
			Outcome:   wireOf(outcomeToWire[:], a.Outcome),
			Error:     text(a.Error),
		})
	}
	return t
}

// taskWire writes what the store keeps of every task. The two timestamps lie in
// stamps, so that a frame of deliveries needs one allocation for all of them.
func taskWire(t *ddqv1.Task, stamps *[2]timestamppb.Timestamp, from *store.Task) {
	t.Id = from.ID
	t.Payload = from.Payload
	t.ExecuteTime = stamp(&stamps[0], from.Due)
	t.CreatedAt = stamp(&stamps[1], from.Created)
	t.Attributes = attributesWire(from.Attributes)
	t.ExpireTime = stampOrNil(from.Expires)
	t.VisibilityTimeoutMs = store.CeilMillis(from.Visibility)
	t.Backoff = backoffWire(from.Backoff)
	t.LastError = text(from.LastError)
	t.Version = from.Version()
	if from.Key != nil {
		t.IdempotencyKey = text(from.Key.Text)
	}
	if r := from.Traits; r != nil {
		t.Priority, t.FairnessKey, t.FairnessWeight = int32(r.Priority), r.FairnessKey, int32(r.FairnessWeight)
		t.RateKey, t.ConcurrencyKey, t.OrderingKey = r.RateKey, r.ConcurrencyKey, r.OrderingKey
	}
}

func attributesWire(from []store.Attribute) []*ddqv1.Attribute {
	if len(from) == 0 {
		return nil
	}
	slab := make([]ddqv1.Attribute, len(from))
	out := make([]*ddqv1.Attribute, len(from))
	for i, a := range from {
		slab[i].Key, slab[i].Value = text(a.Key), text(a.Value)
		out[i] = &slab[i]
	}
	return out
}

// retryCount is the number of deliveries before the one that a task is at: the
// one to come while it waits, else the last one.
func retryCount(s store.State, attempt int) int32 {
	if s.Pending() || s == store.StateExpired || attempt == 0 {
		return int32(attempt)
	}
	return int32(attempt - 1)
}

// text makes s fit for a string field: one stray byte, in an error that was cut
// in the middle of a letter, would make the whole message unreadable.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// tellDeadlines adds when holds end on the store's clock, which another node knows
// too: a frame may be long on its way.
func tellDeadlines(out []*ddqv1.Delivery, ds []handed) {
	for i := range out {
		out[i].Task.HoldDeadline = stampOrNil(ds[i].Deadline)
	}
}

// deliveriesWire converts ds for sending at now. Each was handed over at its time
// in at, which is what its hold is counted from.
func deliveriesWire(ds []handed, now time.Time) []*ddqv1.Delivery {
	return new(wireSlab).deliveries(ds, now)
}

// wireSlab is room for the deliveries of a frame, in one piece.
type wireSlab struct {
	slots []wireSlot
	out   []*ddqv1.Delivery
}

type wireSlot struct {
	delivery ddqv1.Delivery
	task     ddqv1.Task
	stamps   [2]timestamppb.Timestamp
}

// deliveries is deliveriesWire in the room of b, which has to be clear.
func (b *wireSlab) deliveries(ds []handed, now time.Time) []*ddqv1.Delivery {
	if cap(b.slots) < len(ds) {
		b.slots, b.out = make([]wireSlot, len(ds)), make([]*ddqv1.Delivery, len(ds))
	}
	b.slots, b.out = b.slots[:len(ds)], b.out[:len(ds)]
	for i := range ds {
		d, s := &ds[i], &b.slots[i]
		taskWire(&s.task, &s.stamps, d.Task)
		s.task.Topic = d.Topic
		s.task.State = ddqv1.TaskState_TASK_STATE_RUNNING
		s.task.MaxRetries = int32(d.MaxRetries)
		s.task.RetryCount = retryCount(store.StateRunning, d.Task.Attempt)
		s.delivery.Task = &s.task
		s.delivery.HoldToken = d.Token
		s.delivery.HoldMs = d.left(now).Milliseconds() // rounded down: never longer than it is
		b.out[i] = &s.delivery
	}
	return b.out
}

// clear makes room for other deliveries.
func (b *wireSlab) clear() {
	clear(b.slots)
	clear(b.out)
}

package server

import (
	"time"

	"github.com/ddq-io/ddq/api/wire"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// foundWire converts a task as it stands.
func foundWire(f *service.Found) *ddqv1.Task {
	t := &ddqv1.Task{DeadReason: wire.Enum(reasonToWire[:], f.Reason), FinishedAt: wire.StampOrNil(f.Finished)}
	wire.PutTask(t, new([2]timestamppb.Timestamp), &f.Task)
	t.Topic = f.Topic
	t.State = stateWire(f.State)
	t.MaxRetries = int32(f.MaxRetries)
	t.RetryCount = retryCount(f.State, f.Attempt)
	t.WaitingFor, t.NextTokenTime = wire.Enum(waitingToWire[:], f.WaitingFor), wire.StampOrNil(f.NextToken)
	if f.State == store.StateRunning {
		t.Worker = wire.Text(f.Worker)
		t.HoldDeadline = wire.StampOrNil(f.Deadline)
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
			Worker:    wire.Text(a.Worker),
			Node:      wire.Text(a.Node),
			StartedAt: wire.StampOrNil(a.Started),
			EndedAt:   wire.StampOrNil(a.Ended),
			Outcome:   wire.Enum(outcomeToWire[:], a.Outcome),
			Error:     wire.Text(a.Error),
		})
	}
	return t
}

// retryCount is the number of deliveries before the one that a task is at: the
// one to come while it waits, else the last one.
func retryCount(s store.State, attempt int) int32 {
	if s.Pending() || s == store.StateExpired || attempt == 0 {
		return int32(attempt)
	}
	return int32(attempt - 1)
}

// tellDeadlines adds when holds end on the store's clock, which another node knows
// too: a frame may be long on its way.
func tellDeadlines(out []*ddqv1.Delivery, ds []handed) {
	for i := range out {
		out[i].Task.HoldDeadline = wire.StampOrNil(ds[i].Deadline)
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
		wire.PutTask(&s.task, &s.stamps, d.Task)
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

package delivery

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// Handed is a delivery and when the actor handed it over.
type Handed struct {
	subscription.Delivery
	At time.Time // monotonic
}

// left is what remains of the hold at now.
func (h *Handed) left(now time.Time) time.Duration { return h.HoldFor - now.Sub(h.At) }

// stale reports whether more than half of the hold went by while the delivery
// waited here: the worker would get it with too little time to work.
func (h *Handed) stale(now time.Time) bool { return now.Sub(h.At) > h.HoldFor/2 }

// Wire converts ds for sending at now. Each one's hold counts from when it was handed
// over.
func Wire(ds []Handed, now time.Time) []*ddqv1.Delivery {
	return new(wireSlab).deliveries(ds, now)
}

// wireSlab is room for the deliveries of a frame, in one piece.
type wireSlab struct {
	slots   []wireSlot
	out     []*ddqv1.Delivery
	parents []byte // traceparents of the frame before
}

type wireSlot struct {
	delivery ddqv1.Delivery
	task     ddqv1.Task
	stamps   [2]timestamppb.Timestamp
}

// deliveries is Wire in the room of b, which has to be clear.
func (b *wireSlab) deliveries(ds []Handed, now time.Time) []*ddqv1.Delivery {
	if cap(b.slots) < len(ds) {
		b.slots, b.out = make([]wireSlot, len(ds)), make([]*ddqv1.Delivery, len(ds))
	}
	b.slots, b.out = b.slots[:len(ds)], b.out[:len(ds)]
	for i := range ds {
		d, s := &ds[i], &b.slots[i]
		wire.PutTaskIn(&s.task, &s.stamps, d.Task)
		s.task.Topic = d.Topic
		s.task.State = ddqv1.TaskState_TASK_STATE_RUNNING
		s.task.MaxRetries = int32(d.MaxRetries)
		s.task.RetryCount = wire.RetryCount(store.StateRunning, d.Task.Attempt)
		s.delivery.Task = &s.task
		s.delivery.HoldToken = d.Token
		s.delivery.HoldMs = d.left(now).Milliseconds() // rounded down: never longer than it is
		s.delivery.Journal = wire.PutJournal(d.Task.Remembered())
		b.out[i] = &s.delivery
	}
	b.putTraces(ds)
	return b.out
}

// putTraces writes the trace contexts of tasks, the text of all in one piece.
func (b *wireSlab) putTraces(ds []Handed) {
	b.parents = b.parents[:0]
	for i := range ds {
		if t := ds[i].Task.Trace; t != nil {
			b.parents = wire.AppendTraceparent(b.parents, t)
		}
	}
	if len(b.parents) == 0 {
		return
	}
	all := string(b.parents)
	for i := range ds {
		if t := ds[i].Task.Trace; t != nil {
			to := &b.slots[i].task
			to.Traceparent, to.Tracestate = all[:wire.TraceparentBytes], t.State
			all = all[wire.TraceparentBytes:]
		}
	}
}

// clear makes room for other deliveries.
func (b *wireSlab) clear() {
	clear(b.slots)
	clear(b.out)
}

// ServerTime is what the store's clock, by which tasks become due, says at now, as the holds of
// deliveries have it; 0: none tells.
func ServerTime(ds []Handed, now time.Time) int64 {
	for i := range ds {
		if d := &ds[i]; d.Deadline != 0 {
			return int64(d.Deadline) - d.left(now).Milliseconds()
		}
	}
	return 0
}

// TellDeadlines adds when holds end on the store's clock, which another node knows
// too: a frame may be long on its way.
func TellDeadlines(out []*ddqv1.Delivery, ds []Handed) {
	for i := range out {
		out[i].Task.HoldDeadline = wire.StampOrNil(ds[i].Deadline)
	}
}

func cancelsWire(asks []subscription.CancelAsk) []*ddqv1.Cancel {
	out := make([]*ddqv1.Cancel, len(asks))
	for i, a := range asks {
		out[i] = &ddqv1.Cancel{TaskId: a.ID, HoldToken: a.Token}
	}
	return out
}

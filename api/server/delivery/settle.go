package delivery

import (
	"context"
	"log/slog"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/newtask"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/server/workflows"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
)

// AckOf converts an ack, without what comes next by it.
func AckOf(a *ddqv1.Ack) subscription.Settlement {
	s := subscription.Settlement{Kind: subscription.SettleAck, ID: a.GetTaskId(), Token: a.GetHoldToken(), Result: a.GetResult()}
	readTrace(&s, a.GetTraceId())
	return s
}

// readTrace reads in which trace the worker recorded the attempt. It refuses nothing.
func readTrace(s *subscription.Settlement, id []byte) {
	trace, whole := wire.ReadTraceID(id)
	s.Trace, s.TraceCut = trace, !whole
}

// NackOf converts a nack. A delay is as long as it says: there is no way to
// come back sooner than at once.
func NackOf(n *ddqv1.Nack) (subscription.Settlement, *problem.Error) {
	s := subscription.Settlement{
		Kind:      subscription.SettleNack,
		ID:        n.GetTaskId(),
		Token:     n.GetHoldToken(),
		Error:     wire.Text(n.GetError()),
		Permanent: n.GetPermanent(),
		Say:       workflows.SayFailed(n),
	}
	readTrace(&s, n.GetTraceId())
	if n.GetRelease() {
		s.Kind = subscription.SettleRelease
	}
	if n.GetRelease() && n.GetPermanent() {
		return s, wire.Invalid("OUT_OF_RANGE_FIELD", "release", "and permanent exclude each other")
	}
	if n == nil || n.DelayMs == nil {
		return s, nil
	}
	if *n.DelayMs < 0 {
		return s, wire.Invalid("BAD_DELAY", "delay_ms", "must not be negative")
	}
	delay, e := wire.Span(*n.DelayMs, "delay_ms")
	if e != nil {
		e.Reason = "BAD_DELAY"
		return s, e
	}
	s.Delay = &delay
	return s, nil
}

// ExtendOf converts an extension.
func ExtendOf(x *ddqv1.Extend) (s subscription.Settlement, e *problem.Error) {
	s = subscription.Settlement{Kind: subscription.SettleExtend, ID: x.GetTaskId(), Token: x.GetHoldToken()}
	s.Extend, e = wire.Span(x.GetVisibilityTimeoutMs(), "visibility_timeout_ms")
	return s, e
}

// CheckpointOf converts a checkpoint.
func CheckpointOf(c *ddqv1.Checkpoint) subscription.Settlement {
	return subscription.Settlement{Kind: subscription.SettleCheckpoint, ID: c.GetTaskId(), Token: c.GetHoldToken(), Name: c.GetName(), Value: c.GetValue()}
}

// settling is a message that settles holds.
type settling interface {
	GetAcks() []*ddqv1.Ack
	GetNacks() []*ddqv1.Nack
	GetExtends() []*ddqv1.Extend
	GetCheckpoints() []*ddqv1.Checkpoint
}

// Count is how many settlements a message has.
func Count(m settling) int {
	return len(m.GetAcks()) + len(m.GetNacks()) + len(m.GetExtends()) + len(m.GetCheckpoints())
}

// BringsOn reports whether something comes next by an ack.
func BringsOn(a *ddqv1.Ack) bool { return len(a.GetEnqueue()) > 0 || a.GetGrow() != nil }

// NextOf converts what comes next by an ack of a topic. The caller must be allowed to enqueue
// that by itself.
func NextOf(ctx context.Context, topic string, a *ddqv1.Ack) (next service.Next, e *problem.Error) {
	may := guard.Enqueue{Principal: auth.From(ctx)}
	next.Tasks = make([]service.NewTask, len(a.GetEnqueue()))
	room := newtask.RoomFor(a.GetEnqueue())
	for i, r := range a.GetEnqueue() {
		e := may.Check(r.GetTopic())
		if e == nil {
			e = room.Read(&next.Tasks[i], r)
		}
		if e != nil {
			return next, service.InEnqueue(i, e)
		}
	}
	for _, to := range workflows.GrowsIn(topic, a.GetGrow()) {
		if e := may.Check(to); e != nil {
			return next, e
		}
	}
	next.Grow, e = workflows.ReadGrowth(a.GetGrow())
	return next, e
}

// Settlements converts what a message settles of a topic. Those that the wire rules refuse
// are answered already.
func Settlements(ctx context.Context, topic string, m settling) (out []subscription.Settlement, refused []subscription.Settled, next service.Nexts) {
	out = make([]subscription.Settlement, 0, Count(m))
	keep := func(s subscription.Settlement, e *problem.Error) {
		if e != nil {
			refused = append(refused, subscription.Settled{ID: s.ID, Token: s.Token, Kind: s.Kind, Err: e})
			return
		}
		out = append(out, s)
	}
	for _, a := range m.GetAcks() {
		s := AckOf(a)
		if !BringsOn(a) {
			out = append(out, s)
			continue
		}
		more, e := NextOf(ctx, topic, a)
		if e == nil {
			if next == nil {
				next = make(service.Nexts)
			}
			next[len(out)] = more
		}
		keep(s, e)
	}
	for _, n := range m.GetNacks() {
		keep(NackOf(n))
	}
	for _, x := range m.GetExtends() {
		keep(ExtendOf(x))
	}
	for _, c := range m.GetCheckpoints() {
		out = append(out, CheckpointOf(c))
	}
	return out, refused, next
}

// settleResult converts an outcome that the worker has to hear of; nil for one
// that went as asked, unless it is in a part.
func settleResult(log *slog.Logger, s *subscription.Settled, part bool) *ddqv1.SettleResult {
	if !part && s.Err == nil && !s.Already && s.Kind != subscription.SettleExtend {
		return nil
	}
	r := &ddqv1.SettleResult{TaskId: wire.Text(s.ID), HoldToken: s.Token, Already: s.Already, Name: wire.Text(s.Name), Error: status.Item(log, s.Err)}
	if s.Kind == subscription.SettleExtend && s.Err == nil {
		r.HoldMs, r.CancelRequested = s.HoldFor.Milliseconds(), s.Cancelled
	}
	return r
}

// Results converts the outcomes that the worker has to hear of.
func Results(log *slog.Logger, settled []subscription.Settled) []*ddqv1.SettleResult {
	results := make([]*ddqv1.SettleResult, 0, len(settled))
	for i := range settled {
		if r := settleResult(log, &settled[i], false); r != nil {
			results = append(results, r)
		}
	}
	return results
}

// Release is the settlement that gives a delivery, which its worker has not seen, back
// as if it had not been.
func Release(d *subscription.Delivery) subscription.Settlement {
	return subscription.Settlement{Kind: subscription.SettleRelease, ID: d.Task.ID, Token: d.Token, Unseen: true}
}

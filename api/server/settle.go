package server

import (
	"log/slog"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func ackOf(a *ddqv1.Ack) subscription.Settlement {
	return subscription.Settlement{Kind: subscription.SettleAck, ID: a.GetTaskId(), Token: a.GetHoldToken(), Result: a.GetResult()}
}

// nackOf converts a nack. A delay is as long as it says: there is no way to
// come back sooner than at once.
func nackOf(n *ddqv1.Nack) (subscription.Settlement, *problem.Error) {
	s := subscription.Settlement{
		Kind:      subscription.SettleNack,
		ID:        n.GetTaskId(),
		Token:     n.GetHoldToken(),
		Error:     wire.Text(n.GetError()),
		Permanent: n.GetPermanent(),
	}
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

func extendOf(x *ddqv1.Extend) (s subscription.Settlement, e *problem.Error) {
	s = subscription.Settlement{Kind: subscription.SettleExtend, ID: x.GetTaskId(), Token: x.GetHoldToken()}
	s.Extend, e = wire.Span(x.GetVisibilityTimeoutMs(), "visibility_timeout_ms")
	return s, e
}

// settling is a message that settles holds.
type settling interface {
	GetAcks() []*ddqv1.Ack
	GetNacks() []*ddqv1.Nack
	GetExtends() []*ddqv1.Extend
}

// settlementsOf converts what a message settles. Those that the wire rules refuse
// are answered already.
func settlementsOf(m settling) (out []subscription.Settlement, refused []subscription.Settled) {
	out = make([]subscription.Settlement, 0, len(m.GetAcks())+len(m.GetNacks())+len(m.GetExtends()))
	keep := func(s subscription.Settlement, e *problem.Error) {
		if e != nil {
			refused = append(refused, subscription.Settled{ID: s.ID, Token: s.Token, Kind: s.Kind, Err: e})
			return
		}
		out = append(out, s)
	}
	for _, a := range m.GetAcks() {
		out = append(out, ackOf(a))
	}
	for _, n := range m.GetNacks() {
		keep(nackOf(n))
	}
	for _, x := range m.GetExtends() {
		keep(extendOf(x))
	}
	return out, refused
}

// settleResult converts an outcome that the worker has to hear of; nil for one
// that went as asked.
func settleResult(log *slog.Logger, s *subscription.Settled) *ddqv1.SettleResult {
	if s.Err == nil && !s.Already && s.Kind != subscription.SettleExtend {
		return nil
	}
	r := &ddqv1.SettleResult{TaskId: wire.Text(s.ID), HoldToken: s.Token, Already: s.Already, Error: itemError(log, s.Err)}
	if s.Kind == subscription.SettleExtend && s.Err == nil {
		r.HoldMs, r.CancelRequested = s.HoldFor.Milliseconds(), s.Cancelled
	}
	return r
}

func settleResults(log *slog.Logger, settled []subscription.Settled) []*ddqv1.SettleResult {
	results := make([]*ddqv1.SettleResult, 0, len(settled))
	for i := range settled {
		if r := settleResult(log, &settled[i]); r != nil {
			results = append(results, r)
		}
	}
	return results
}

// release is the settlement that gives a delivery, which its worker has not seen, back
// as if it had not been.
func release(d *subscription.Delivery) subscription.Settlement {
	return subscription.Settlement{Kind: subscription.SettleRelease, ID: d.Task.ID, Token: d.Token, Unseen: true}
}

func nackResponse(s subscription.Settled) *ddqv1.NackResponse {
	r := &ddqv1.NackResponse{State: stateWire(s.State)}
	if s.State != store.StateDead {
		r.ExecuteTime = wire.StampOrNil(s.Due)
	}
	return r
}

package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Hold implements store.Owner.
func (m *Store) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	return batch(ctx, m, s, access{fence: &f}, holds, func(sh *shard, now clock, h store.Hold) store.HoldResult {
		return sh.tryHold(h, now)
	})
}

// tryHold holds one task if it is pending, due and not past its expiry.
func (sh *shard) tryHold(h store.Hold, now clock) store.HoldResult {
	r := sh.tasks[h.ID]
	switch {
	case r == nil:
		return store.HoldResult{Status: store.NotFound}
	case r.kind == store.KindRunning && r.token == h.Token:
		return r.held() // a repeated call
	case r.kind != store.KindPending:
		return store.HoldResult{Status: store.WrongState}
	case r.expired(now):
		sh.bury(r, store.ReasonExpired, now)
		sh.tell(r, store.Change{Kind: store.ChangeDead}, now)
		return store.HoldResult{Status: store.Expired}
	case r.task.Due > now.ms():
		return store.HoldResult{Status: store.NotDue, Due: r.task.Due}
	}
	if key := r.task.Traits.Ordering(); key != "" {
		if head := sh.head(key); head != r {
			return head.behind()
		}
	}
	if h.Before != 0 && h.Before <= now.ms() {
		return store.HoldResult{Status: store.Late}
	}
	sh.hold(r, h, now)
	return r.held()
}

// hold gives the pending record r to a worker.
func (sh *shard) hold(r *record, h store.Hold, now clock) {
	visibility := h.Visibility
	if r.task.Visibility > 0 {
		visibility = r.task.Visibility
	}
	sh.take(r)
	*r = record{
		task:     r.task,
		kind:     store.KindRunning,
		token:    h.Token,
		deadline: now.in(visibility),
		worker:   h.Worker,
		node:     h.Node,
		started:  now.ms(),
		first:    true,
		past:     r.past,
	}
	if h.Until != 0 {
		r.deadline = min(r.deadline, h.Until)
	}
	r.task.Attempt++ // counted at hold, so a worker that crashes still uses one up
	sh.put(r)
	sh.tell(r, store.Change{Kind: store.ChangeHeld}, now)
}

// held is the answer to who holds the running record r.
func (r *record) held() store.HoldResult {
	task := copyTask(&r.task)
	task.Indexed = ""
	return store.HoldResult{Status: store.OK, Task: &task, Due: task.Due, Deadline: r.deadline}
}

// expired reports whether r may no longer be held for the first time or again.
func (r *record) expired(now clock) bool {
	return r.task.Expires != 0 && r.task.Expires <= now.ms()
}

// holder returns the record that is running under the token: OK, NotFound,
// WrongState or Stale, the record being nil only when there is none.
func (sh *shard) holder(id string, token store.Token) (*record, store.Status) {
	r := sh.tasks[id]
	switch {
	case r == nil:
		return nil, store.NotFound
	case r.kind != store.KindRunning:
		return r, store.WrongState
	case r.token != token:
		return r, store.Stale
	}
	return r, store.OK
}

// Extend implements store.Writer.
func (m *Store) Extend(ctx context.Context, s store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	return batch(ctx, m, s, access{}, extends, func(sh *shard, now clock, e store.Extend) store.ExtendResult {
		r, status := sh.holder(e.ID, e.Token)
		if status != store.OK {
			return store.ExtendResult{Status: status}
		}
		if e.Until != 0 && r.deadline <= now.ms() {
			return store.ExtendResult{Status: store.Stale}
		}
		r.deadline = now.in(e.Visibility)
		if e.Until != 0 {
			r.deadline = min(r.deadline, e.Until)
		}
		return store.ExtendResult{Status: store.OK, Deadline: r.deadline, Cancelled: r.cancelled}
	})
}

// Ack implements store.Writer.
func (m *Store) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	return batch(ctx, m, s, access{}, acks, func(sh *shard, now clock, a store.Ack) store.Status {
		return sh.ack(a, retention, now)
	})
}

func (sh *shard) ack(a store.Ack, retention time.Duration, now clock) store.Status {
	r, status := sh.holder(a.ID, a.Token)
	switch {
	case r != nil && r.kind == store.KindDone && r.token == a.Token:
		return store.Already
	case status != store.OK:
		return status
	}
	ended := store.Change{Kind: store.ChangeDone, Outcome: store.OutcomeAcked, Worker: r.worker}
	sh.take(r)
	if retention > 0 {
		r.remember(store.OutcomeAcked, "", now)
		r.past.Result = slices.Clone(a.Result)
		*r = record{task: r.task, kind: store.KindDone, token: r.token, finished: now.ms(), until: now.in(retention), past: r.past}
		sh.put(r)
	}
	sh.tell(r, ended, now)
	return store.OK
}

// Nack implements store.Writer.
func (m *Store) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return batch(ctx, m, s, access{}, nacks, func(sh *shard, now clock, n store.Nack) store.NackResult {
		return sh.nack(n, now, false)
	})
}

// Recover implements store.Owner.
func (m *Store) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return batch(ctx, m, s, access{fence: &f}, nacks, func(sh *shard, now clock, n store.Nack) store.NackResult {
		return sh.nack(n, now, true)
	})
}

// nack ends a hold without success; with overdue only one whose deadline has passed.
func (sh *shard) nack(n store.Nack, now clock, overdue bool) store.NackResult {
	r, status := sh.holder(n.ID, n.Token)
	switch {
	case status == store.WrongState:
		return store.NackResult{Status: status, State: r.state(now)}
	case status != store.OK:
		return store.NackResult{Status: status}
	case overdue && r.deadline > now.ms():
		return store.NackResult{Status: store.NotDue, Deadline: r.deadline}
	}
	if r.cancelled {
		n.Reason = store.ReasonCancelled
		if n.Outcome != store.OutcomeNone {
			n.Outcome = store.OutcomeCancelled
		}
	}
	if n.Outcome != store.OutcomeNone {
		r.remember(n.Outcome, n.Error, now)
	}
	if n.Uncount {
		r.task.Attempt--
	}
	if n.Error != "" {
		r.task.LastError = n.Error
	}
	ended := store.Change{Kind: store.ChangeRetrying, Outcome: n.Outcome, Worker: r.worker}
	result := store.NackResult{Status: store.OK, Attempt: r.task.Attempt}
	if n.Reason != store.ReasonNone {
		ended.Kind = store.ChangeDead
		sh.bury(r, n.Reason, now)
	} else {
		if n.Uncount {
			ended.Kind = store.ChangeReleased
		}
		result.Due, result.Traits = now.in(n.Delay), r.task.Traits
		sh.pend(r, result.Due)
	}
	sh.tell(r, ended, now)
	return result
}

package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Hold implements store.Owner.
func (m *owner) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	var bodies store.Bodies
	return batch(ctx, m.core, s, access{fence: &f}, holds, func(sh *shard, now clock, h store.Hold) store.HoldResult {
		if bodies.Full() {
			return store.HoldResult{Status: store.LeftOut}
		}
		result := sh.tryHold(h, now)
		if result.Task != nil {
			bodies.Add(result.Task)
		}
		return result
	})
}

// tryHold holds one task if it is pending, due and not past its expiry.
func (sh *shard) tryHold(h store.Hold, now clock) store.HoldResult {
	r := sh.tasks[h.ID]
	t := r.life()
	switch status := life.Hold(&t, &h, now.Millis()); status {
	case store.OK:
	case store.Held:
		return r.held()
	case store.Expired:
		sh.leave(r, store.Ended{Kind: store.ChangeDead, Reason: store.ReasonExpired}, now)
		sh.bury(r, store.ReasonExpired, now)
		sh.tell(r, store.Change{Kind: store.ChangeDead}, now)
		return store.HoldResult{Status: status}
	case store.NotDue:
		return store.HoldResult{Status: status, Due: r.task.Due}
	default:
		return store.HoldResult{Status: status}
	}
	if key := r.task.Traits.Ordering(); key != "" {
		if head := sh.head(key); head != r {
			return head.behind()
		}
	}
	if life.Late(&h, now.Millis()) {
		return store.HoldResult{Status: store.Late}
	}
	sh.hold(r, h, now)
	return r.held()
}

// hold gives the pending record r to a worker.
func (sh *shard) hold(r *record, h store.Hold, now clock) {
	sh.take(r)
	begins := now.From(r.task.Due)
	*r = record{
		task:     r.task,
		kind:     store.KindRunning,
		token:    h.Token,
		deadline: begins.Deadline(r.task.Visibility, h.Visibility, h.Until),
		worker:   h.Worker,
		node:     h.Node,
		started:  begins.Millis(),
		first:    true,
		past:     r.past,
		journal:  r.journal,
	}
	r.task.Attempt++ // counted at hold, so a worker that crashes still uses one up
	sh.put(r)
	sh.tell(r, store.Change{Kind: store.ChangeHeld}, now)
}

// held is the answer to who holds the running record r.
func (r *record) held() store.HoldResult {
	task := copyTask(&r.task)
	task.Indexed = ""
	task.Journal = copyJournal(r.journal)
	return store.HoldResult{Status: store.OK, Task: &task, Due: task.Due, Deadline: r.deadline}
}

// Extend implements store.Writer.
func (m writer) Extend(ctx context.Context, s store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	return batch(ctx, m.core, s, access{}, extends, func(sh *shard, now clock, e store.Extend) store.ExtendResult {
		r := sh.tasks[e.ID]
		t := r.life()
		if status := life.Extend(&t, &e, now.Millis()); status != store.OK {
			return store.ExtendResult{Status: status}
		}
		r.deadline = now.Deadline(0, e.Visibility, e.Until)
		return store.ExtendResult{Status: store.OK, Deadline: r.deadline, Cancelled: r.cancelled}
	})
}

// Ack implements store.Writer.
func (m writer) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	return batch(ctx, m.core, s, access{}, acks, func(sh *shard, now clock, a store.Ack) store.Status {
		return sh.ack(a, retention, now)
	})
}

func (sh *shard) ack(a store.Ack, retention time.Duration, now clock) store.Status {
	r := sh.tasks[a.ID]
	t := r.life()
	if status := life.Ack(&t, a.Token); status != store.OK {
		return status
	}
	if status := life.Says(&a, r.task.Tells); status != store.OK {
		return status
	}
	ended := store.Change{Kind: store.ChangeDone, Outcome: store.OutcomeAcked, Worker: r.worker}
	sh.leave(r, store.Ended{Kind: ended.Kind, Result: a.Result, Say: a.Say}, now)
	sh.take(r)
	if retention > 0 {
		r.remember(store.Attempt{Outcome: store.OutcomeAcked, Trace: a.Trace}, now)
		r.past.Result = slices.Clone(a.Result)
		*r = record{task: r.task, kind: store.KindDone, token: r.token, finished: now.Millis(), until: now.In(retention), past: r.past}
		sh.put(r)
	}
	sh.tell(r, ended, now)
	return store.OK
}

// Nack implements store.Writer.
func (m writer) Nack(ctx context.Context, s store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return batch(ctx, m.core, s, access{}, nacks, func(sh *shard, now clock, n store.Nack) store.NackResult {
		return sh.nack(n, now, false)
	})
}

// Recover implements store.Owner.
func (m *owner) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return batch(ctx, m.core, s, access{fence: &f}, nacks, func(sh *shard, now clock, n store.Nack) store.NackResult {
		return sh.nack(n, now, true)
	})
}

// nack ends a hold without success; with overdue only one whose deadline has passed.
func (sh *shard) nack(n store.Nack, now clock, overdue bool) store.NackResult {
	r := sh.tasks[n.ID]
	t := r.life()
	status := life.Nack(&t, n.Token)
	if overdue {
		status = life.Recover(&t, n.Token, now.Millis())
	}
	switch status {
	case store.OK:
	case store.WrongState:
		return store.NackResult{Status: status, State: r.state(now)}
	case store.NotDue:
		return store.NackResult{Status: status, Deadline: r.deadline}
	default:
		return store.NackResult{Status: status}
	}
	f := life.Fail(&n, r.task.Attempt, r.cancelled, false)
	if f.Outcome != store.OutcomeNone {
		r.remember(store.Attempt{Outcome: f.Outcome, Error: n.Error, Trace: n.Trace}, now)
	}
	r.task.Attempt = f.Attempt
	if n.Error != "" {
		r.task.LastError = n.Error
	}
	ended := store.Change{Kind: f.Kind, Outcome: f.Outcome, Worker: r.worker}
	result := store.NackResult{Status: store.OK, Attempt: f.Attempt}
	if f.Reason != store.ReasonNone {
		sh.leave(r, store.Ended{Kind: f.Kind, Reason: f.Reason, Say: n.Say}, now)
		sh.bury(r, f.Reason, now)
	} else {
		result.Due, result.Traits = now.Again(n.Delay, r.task.Due), r.task.Traits
		sh.pend(r, result.Due)
	}
	sh.tell(r, ended, now)
	return result
}

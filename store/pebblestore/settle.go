package pebblestore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
	"github.com/ddq-io/ddq/store/record"
)

// Ack ends holds: the tasks are done.
func (s taskWriter) Ack(ctx context.Context, name store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	results := make([]store.Status, len(acks))
	stamp, err := s.change(ctx, name, access{}, func(t *transaction) (err error) {
		held := settler{t}
		for _, i := range inOrder(acks) {
			if results[i], err = held.ack(acks[i], retention); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// inOrder returns the indexes of acks by id: keys that rise are found from one to
// the next, and workers finish in any order.
func inOrder(acks []store.Ack) []int {
	order := make([]int, len(acks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(acks[a].ID, acks[b].ID) })
	return order
}

// settler ends holds, and changes those that there are.
type settler struct{ *transaction }

func (t settler) ack(a store.Ack, retention time.Duration) (store.Status, error) {
	if err := t.item(a.ID); err != nil {
		return 0, err
	}
	h := t.sh.holds.get(a.ID)
	if h == nil {
		return t.ackAgain(a)
	}
	rules := h.life()
	if status := life.Ack(&rules, a.Token); status != store.OK {
		return status, nil
	}
	if status, err := t.says(h, &a); err != nil || status != store.OK {
		return status, err
	}
	return store.OK, t.done(h, &a, retention)
}

// says is what becomes of an ack that says something.
func (t settler) says(h *hold, a *store.Ack) (store.Status, error) {
	if len(a.Say) == 0 {
		return store.OK, nil
	}
	e, _, err := t.ended(h, false)
	return life.Says(a, e.tells), err
}

// done ends a hold whose task is done.
func (t settler) done(h *hold, a *store.Ack, retention time.Duration) error {
	t.next.end(h)
	e, f, err := t.ended(h, retention > 0)
	if err != nil {
		return err
	}
	if err := t.tellEnd(store.Change{Kind: store.ChangeDone, Attempt: h.attempt, Outcome: store.OutcomeAcked}, &e, h, a.Result, a.Say); err != nil {
		return err
	}
	if err := t.line.leaveHeld(h); err != nil {
		return err
	}
	if h.taskJournal {
		e.journal = false
		if err := t.journals.forget(h.id); err != nil {
			return err
		}
	}
	switch {
	case f == absent:
		return nil
	case f == broken: // there is nothing left that could be kept
		return t.tasks.erase(h.id, true)
	case retention <= 0:
		return t.erase(h.id, &e)
	}
	if err := t.history.record(h, &e, store.Attempt{Outcome: store.OutcomeAcked, Trace: a.Trace}, a.Result); err != nil {
		return err
	}
	return t.tasks.addDone(h, &e, t.in(retention))
}

// ended returns the entry of a task whose hold ends. It is read only if it is asked for or
// says something that the hold does not know; else it is what that knows of it.
func (t settler) ended(h *hold, whole bool) (entry, found, error) {
	known := entry{rewritten: h.taskRewritten, history: h.taskHistory}
	switch {
	case whole:
	case h.told != nil:
		known.tells, known.due = h.told.cell, h.told.due
		return known, readable, nil
	case !h.taskSays:
		return known, readable, nil
	}
	e, f, err := t.find(h.id)
	if !whole && f != readable {
		e, f = known, readable
	}
	return e, f, err
}

// ackAgain is the outcome of acking a task that is not held.
func (t settler) ackAgain(a store.Ack) (store.Status, error) {
	e, f, err := t.find(a.ID)
	if err != nil {
		return 0, err
	}
	rules := e.life(f)
	return life.Ack(&rules, a.Token), nil
}

// Nack ends holds and makes the tasks pending again, or dead.
func (s taskWriter) Nack(ctx context.Context, name store.Shard, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return s.nack(ctx, name, access{}, nacks, false)
}

// Recover is Nack for holds whose deadline has passed.
func (s *shardOwner) Recover(ctx context.Context, name store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	return s.nack(ctx, name, access{fence: &f}, nacks, true)
}

func (s *base) nack(ctx context.Context, name store.Shard, a access, nacks []store.Nack, overdue bool) (store.Stamp, []store.NackResult, error) {
	return changeEach(ctx, s, name, a, len(nacks), func(t *transaction, i int) (store.NackResult, error) {
		return settler{t}.nack(&nacks[i], overdue)
	})
}

func (t settler) nack(n *store.Nack, overdue bool) (store.NackResult, error) {
	if err := t.item(n.ID); err != nil {
		return store.NackResult{}, err
	}
	e, f, err := t.find(n.ID)
	if err != nil {
		return store.NackResult{}, err
	}
	h, rules := t.sh.holds.get(n.ID), e.life(f)
	if h != nil {
		rules = h.life()
	}
	status := life.Nack(&rules, n.Token)
	if overdue {
		status = life.Recover(&rules, n.Token, t.ms)
	}
	switch status {
	case store.OK:
	case store.WrongState:
		return store.NackResult{Status: status, State: e.stateAt(t.ms)}, nil
	case store.NotDue:
		return store.NackResult{Status: status, Deadline: h.deadline}, nil
	default:
		return store.NackResult{Status: status}, nil
	}
	t.next.end(h)
	if f == absent { // a hold of nothing: it only had to go
		return store.NackResult{Status: store.NotFound}, nil
	}
	return t.fail(n, h, &e, f)
}

// fail is what becomes of a task whose hold ended without success.
func (t settler) fail(n *store.Nack, h *hold, e *entry, f found) (store.NackResult, error) {
	failure := life.Fail(n, h.attempt, h.cancelled, f == broken)
	if failure.Outcome != store.OutcomeNone && f != broken {
		if err := t.history.record(h, e, store.Attempt{Outcome: failure.Outcome, Error: n.Error, Trace: n.Trace}, nil); err != nil {
			return store.NackResult{}, err
		}
	}
	e.attempt, e.journal = failure.Attempt, h.taskJournal
	if n.Error != "" {
		e.lastError = n.Error
	}
	result := store.NackResult{Status: store.OK, Attempt: e.attempt}
	traits := e.traits()
	ended := store.Change{Kind: failure.Kind, Attempt: e.attempt, Reason: failure.Reason, Outcome: failure.Outcome}
	if failure.Reason != store.ReasonNone {
		if err := t.line.leaveHeld(h); err != nil {
			return result, err
		}
		if err := t.tellEnd(ended, e, h, nil, n.Say); err != nil {
			return result, err
		}
		return result, t.tasks.addDead(n.ID, e, failure.Reason)
	}
	e.due, e.first = t.moment().Again(n.Delay, e.due), h.place != nil
	if err := t.line.stayFirst(h); err != nil {
		return result, err
	}
	ended.Due = e.due
	t.log.tellHeld(h, ended, e)
	result.Due = e.due
	result.Traits, _ = record.DecodeTraits(traits) // what is not readable is dead-lettered by Hold
	if err := t.tasks.rewrite(n.ID, e); err != nil {
		return result, err
	}
	return result, t.tasks.addPending(e.due, n.ID, traits)
}

// Extend moves the deadline of holds to Visibility from now.
func (s taskWriter) Extend(ctx context.Context, name store.Shard, extends []store.Extend) (store.Stamp, []store.ExtendResult, error) {
	return changeEach(ctx, s.base, name, access{}, len(extends), func(t *transaction, i int) (store.ExtendResult, error) {
		return settler{t}.extend(&extends[i])
	})
}

func (t settler) extend(x *store.Extend) (store.ExtendResult, error) {
	if err := t.item(x.ID); err != nil {
		return store.ExtendResult{}, err
	}
	h := t.sh.holds.get(x.ID)
	if h == nil {
		e, f, err := t.find(x.ID)
		rules := e.life(f)
		return store.ExtendResult{Status: life.Extend(&rules, x, t.ms)}, err
	}
	rules := h.life()
	if status := life.Extend(&rules, x, t.ms); status != store.OK {
		return store.ExtendResult{Status: status}, nil
	}
	longer := *h
	longer.deadline = t.moment().Deadline(0, x.Visibility, x.Until)
	t.next.extend(&longer)
	return store.ExtendResult{Status: store.OK, Deadline: longer.deadline, Cancelled: h.cancelled}, nil
}

// Cancel asks for running tasks to be ended. Their holds are stored anew, as when they are extended.
func (s taskWriter) Cancel(ctx context.Context, name store.Shard, ids []string) (store.Stamp, []store.CancelResult, error) {
	return changeEach(ctx, s.base, name, access{}, len(ids), func(t *transaction, i int) (store.CancelResult, error) {
		return settler{t}.cancel(ids[i])
	})
}

func (t settler) cancel(id string) (store.CancelResult, error) {
	if err := t.item(id); err != nil {
		return store.CancelResult{}, err
	}
	if h := t.sh.holds.get(id); h != nil {
		return store.CancelResult{Status: store.OK, Token: h.token}, t.mark(h)
	}
	e, f, err := t.find(id)
	if err != nil {
		return store.CancelResult{}, err
	}
	result := store.CancelResult{Status: life.Cancel(e.phase(f))}
	if result.Status == store.WrongState {
		result.State = e.stateAt(t.ms)
	}
	return result, nil
}

// mark has a hold say that its task is to be ended.
func (t settler) mark(h *hold) error {
	if h.cancelled {
		return nil
	}
	marked := *h
	marked.cancelled = true
	t.next.extend(&marked)
	e, _, err := t.ended(h, false)
	if err == nil {
		t.log.tellHeld(h, store.Change{Kind: store.ChangeCancelRequested, Attempt: h.attempt}, &e)
	}
	return err
}

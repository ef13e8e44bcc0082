package actors

import (
	"cmp"
	"context"
	"errors"

	"github.com/ddq-io/ddq/store"
)

// addition is one task on its way into the store.
type addition struct {
	task *store.Task
	out  *Enqueued
	call *countdown
	sub  *subscriber // whose credit is reserved for it; nil: none
}

// immediate reports whether credit may be reserved for the task: it is due, nothing but
// its id decides whether it is stored, and no other task whether it is held.
func (a *addition) immediate(now store.Millis) bool {
	return a.task.Due <= now && a.task.Key == nil && a.task.Traits.Ordering() == ""
}

func (a *addition) answer(r store.AddResult) {
	a.out.Due = r.Due
	if a.task.Key != nil {
		a.answerKeyed(r)
		return
	}
	switch r.Status {
	case store.Added:
		a.out.State, a.out.Replaced = store.StateScheduled, r.Replaced
	case store.Held:
		a.out.State, a.out.Replaced = store.StateRunning, r.Replaced
	case store.Duplicate:
		a.out.State, a.out.Deduplicated = r.State, true
	default:
		a.out.Err = errIDConflict(a.task.ID, r.State)
	}
}

func (m *enqueue) fail(err *Error) {
	for _, items := range m.shards {
		failAdditions(items, err)
	}
}

func (m *addTasks) fail(err *Error) { failAdditions(m.items, err) }

func failAdditions(items []addition, err *Error) {
	for i := range items {
		items[i].out.Err = err
		items[i].call.finish(1)
	}
}

func additionSize(a *addition) int { return len(a.task.Payload) + 256 }

// add queues tasks: those with reserved credit to be stored and held in one step.
func (s *shard) add(items []addition) {
	for _, it := range items {
		switch {
		case it.task.Key != nil:
			s.keyed.waiting = append(s.keyed.waiting, it)
		case it.sub == nil:
			s.adds.waiting = append(s.adds.waiting, it)
		case s.owned && !it.sub.gone.Load():
			s.holdNews.waiting = append(s.holdNews.waiting, it)
		default:
			s.refund(it.sub, 1)
			it.sub = nil
			s.adds.waiting = append(s.adds.waiting, it)
		}
	}
	s.flyLater()
}

func (s *shard) flushAdds() {
	if batch := s.adds.next(); batch != nil {
		s.call(func(ctx context.Context) reply { return s.storeAdds(ctx, batch) })
	}
	if batch := s.keyed.next(); batch != nil {
		s.call(func(ctx context.Context) reply { return s.storeKeyed(ctx, batch) })
	}
	if batch := s.holdNews.next(); batch != nil {
		fence := s.fence
		s.call(func(ctx context.Context) reply { return s.storeHoldNews(ctx, fence, batch) })
	}
}

func tasksOf(items []addition) []*store.Task {
	tasks := make([]*store.Task, len(items))
	for i := range items {
		tasks[i] = items[i].task
	}
	return tasks
}

func (s *shard) storeAdds(ctx context.Context, items []addition) *added {
	m, tasks := &added{items: items}, tasksOf(items)
	_, m.err = s.resolve(ctx, func() error {
		stamp, results, err := s.store.Add(ctx, s.id, tasks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

func (s *shard) storeHoldNews(ctx context.Context, fence store.Fence, items []addition) *added {
	tasks, holds := tasksOf(items), make([]store.Hold, len(items))
	tokens := store.NewTokens(len(items))
	for i, it := range items {
		holds[i] = it.sub.hold(it.task.ID, tokens[i])
	}
	m := &added{items: items, held: true, tokens: holds}
	_, m.err = s.resolve(ctx, func() error {
		stamp, results, err := s.store.HoldNew(ctx, s.id, fence, tasks, holds)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	if errors.Is(m.err, store.ErrFenced) {
		// Not ours any more, but the tasks are welcome all the same.
		lost := s.storeAdds(ctx, items)
		lost.held, lost.err = true, cmp.Or(lost.err, m.err)
		return lost
	}
	return m
}

func (m *added) answer() {
	for i := range m.items {
		if len(m.results) == 0 {
			m.items[i].out.Err = storeError(m.err)
		} else {
			m.items[i].answer(m.results[i])
		}
		m.items[i].call.finish(1)
	}
}

// onAdded takes in what became of a batch.
func (s *shard) onAdded(m *added) {
	switch {
	case m.held:
		s.holdNews.landed()
		s.onHeldNew(m)
	case m.keyed:
		s.keyed.landed()
	default:
		s.adds.landed()
	}
	fresh, known := m.pending()
	if len(fresh) > 0 {
		s.becamePending(m.seq, fresh)
	}
	for _, t := range known {
		s.learn(t)
	}
	s.noteError(m.err)
	s.flyLater()
}

// pending are the tasks of a batch that are pending now: those that it added, and
// those that were there. One of these may be our own, when the first answer was lost.
func (m *added) pending() (fresh, known []store.Entry) {
	for i, r := range m.results {
		t := store.Entry{ID: m.items[i].task.ID, Due: r.Due, Traits: m.items[i].task.Traits}
		if r.ID != "" {
			t.ID = r.ID
		}
		switch {
		case r.Status == store.Added, r.Status == store.Passed, r.Status == store.Replaced:
			fresh = append(fresh, t)
		case m.keyed: // of another task that has the key nothing is known but its id
		case r.Status == store.Duplicate && r.State.Pending():
			known = append(known, t)
		}
	}
	return fresh, known
}

// onHeldNew delivers what was stored and held, and gives back the other credit.
func (s *shard) onHeldNew(m *added) {
	for i, it := range m.items {
		r := store.AddResult{}
		if i < len(m.results) && m.tokens != nil {
			r = m.results[i]
		}
		switch {
		case r.Status == store.Held:
			it.task.Attempt = max(1, r.Attempt)
		case r.Status == store.Duplicate && r.State == store.StateRunning && r.Token == m.tokens[i].Token:
			// The answer of the first try was lost; this is our hold.
			it.task.Attempt = 1
			r.Deadline = s.now().Add(or(it.task.Visibility, m.tokens[i].Visibility))
		default:
			s.refund(it.sub, 1)
			continue
		}
		it.task.Due = r.Due
		s.deliver(it.sub, heldTask{task: it.task, token: m.tokens[i].Token, deadline: r.Deadline})
	}
}

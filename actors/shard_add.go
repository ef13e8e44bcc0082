package actors

import (
	"cmp"
	"context"
	"errors"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Addition is one task to be stored. What became of it is told to `to`, then to call.
type Addition struct {
	Task *store.Task
	To   Asker
	Call *Countdown
	sub  *subscriber // whose credit is reserved for it; nil: none
}

// Asker is told what became of a task that it asked for: one of the two, once, from any
// goroutine.
type Asker interface {
	// Added says what the store answered.
	Added(t *store.Task, r store.AddResult)
	// Refused says why the store was not asked, or did not answer.
	Refused(err *problem.Error)
}

// immediate reports whether credit may be reserved for the task: it is due, nothing but
// its id decides whether it is stored, and no other task whether it is held.
func (a *Addition) immediate(now store.Millis) bool {
	return a.Task.Due <= now && a.Task.Key == nil && a.Task.Traits.Ordering() == ""
}

func (m *AddBatch) fail(err *problem.Error) {
	for _, items := range m.Shards {
		failAdditions(items, err)
	}
}

func (m *addTasks) fail(err *problem.Error) { failAdditions(m.items, err) }

func failAdditions(items []Addition, err *problem.Error) {
	for i := range items {
		items[i].To.Refused(err)
		items[i].Call.Finish(1)
	}
}

func additionSize(a *Addition) int { return len(a.Task.Payload) + 256 }

// add queues tasks: those with reserved credit to be stored and held in one step.
func (s *shard) add(items []Addition) {
	for _, it := range items {
		if it.sub != nil {
			s.assigned[it.sub.id]++
		}
		switch {
		case it.Task.Key != nil:
			s.keyed.Waiting = append(s.keyed.Waiting, it)
		case it.sub == nil:
			s.adds.Waiting = append(s.adds.Waiting, it)
		case s.claim.Owned() && !it.sub.gone.Load() && !it.sub.budget.full():
			s.holdNews.Waiting = append(s.holdNews.Waiting, it)
		default:
			s.refund(it.sub, 1)
			it.sub = nil
			s.adds.Waiting = append(s.adds.Waiting, it)
		}
	}
	s.scheduleFlush()
}

func (s *shard) flushAdds() {
	if batch := s.adds.Next(); batch != nil {
		s.call(func(ctx context.Context) reply { return s.storeAdds(ctx, batch) })
	}
	if batch := s.keyed.Next(); batch != nil {
		s.call(func(ctx context.Context) reply { return s.storeKeyed(ctx, batch) })
	}
	if batch := s.holdNews.Next(); batch != nil {
		fence := s.claim.Fence()
		s.call(func(ctx context.Context) reply { return s.storeHoldNews(ctx, fence, batch) })
	}
}

func tasksOf(items []Addition) []*store.Task {
	tasks := make([]*store.Task, len(items))
	for i := range items {
		tasks[i] = items[i].Task
	}
	return tasks
}

// ours is the shard in calls that add tasks: it must be the topic's. An open topic has one
// life.
func (s *shard) ours() store.Shard { return s.id.For(s.ref.config.Load().Life) }

func (s *shard) storeAdds(ctx context.Context, items []Addition) *added {
	m, tasks := &added{items: items}, tasksOf(items)
	_, m.err = s.Resolve(ctx, func() error {
		stamp, results, err := s.store.Add(ctx, s.ours(), tasks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

func (s *shard) storeKeyed(ctx context.Context, items []Addition) *added {
	m, tasks := &added{items: items, keyed: true}, tasksOf(items)
	_, m.err = s.Resolve(ctx, func() error {
		stamp, results, err := s.store.AddKeyed(ctx, s.ours(), tasks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

func (s *shard) storeHoldNews(ctx context.Context, fence store.Fence, items []Addition) *added {
	tasks, holds := tasksOf(items), make([]store.Hold, len(items))
	tokens := store.NewTokens(len(items))
	for i, it := range items {
		holds[i] = it.sub.hold(it.Task.ID, tokens[i])
	}
	m := &added{items: items, held: true, tokens: holds}
	_, m.err = s.Resolve(ctx, func() error {
		stamp, results, err := s.store.HoldNew(ctx, s.ours(), fence, tasks, holds)
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
			m.items[i].To.Refused(problem.FromStore(m.err))
		} else {
			m.items[i].To.Added(m.items[i].Task, m.results[i])
		}
		m.items[i].Call.Finish(1)
	}
}

// onAdded learns what became of a batch.
func (s *shard) onAdded(m *added) {
	s.learnAdded(m.items)
	if m.held {
		s.onHeldNew(m)
		s.expectHolds(m.tokens, m.err)
	}
	fresh, known := m.pending()
	if len(fresh) > 0 {
		s.becamePending(m.seq, fresh)
	}
	s.tasks.Pending(s.now(), known...)
	s.noteError(m.err)
	s.scheduleFlush()
}

// learnAdded learns how large bodies are that a Hold will return.
func (s *shard) learnAdded(items []Addition) {
	bytes := int64(0)
	for i := range items {
		bytes += bodyBytes(items[i].Task)
	}
	s.ref.bodies.learn(int64(len(items)), bytes)
}

// pending are the tasks of a batch that are pending now: those that it added, and
// those that were there. One of these may be our own, when the first answer was lost.
func (m *added) pending() (fresh, known []store.Entry) {
	for i, r := range m.results {
		t := store.Entry{ID: m.items[i].Task.ID, Due: r.Due, Traits: m.items[i].Task.Traits}
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

// landAdds notes that the call of a batch is over.
func (s *shard) landAdds(m *added) {
	switch {
	case m.held:
		s.holdNews.Done()
	case m.keyed:
		s.keyed.Done()
	default:
		s.adds.Done()
	}
}

// onHeldNew delivers what was stored and held, and gives back the other credit.
func (s *shard) onHeldNew(m *added) {
	now := s.now()
	for i, it := range m.items {
		if h, ok := m.heldTask(i, now); ok {
			s.deliver(it.sub, h)
		} else {
			s.refund(it.sub, 1)
		}
	}
}

// heldTasks are the tasks of a batch that were held as they were stored.
func (m *added) heldTasks(now store.Millis) (tasks []heldTask) {
	for i := range m.items {
		if h, ok := m.heldTask(i, now); ok {
			tasks = append(tasks, h)
		}
	}
	return tasks
}

func (m *added) heldTask(i int, now store.Millis) (h heldTask, ok bool) {
	if i >= len(m.results) || m.tokens == nil {
		return h, false
	}
	task, r := m.items[i].Task, m.results[i]
	switch {
	case r.Status == store.Held:
		task.Attempt = max(1, r.Attempt)
	case r.Status == store.Duplicate && r.State == store.StateRunning && r.Token == m.tokens[i].Token:
		// The answer of the first try was lost; this is our hold.
		task.Attempt = 1
		r.Deadline = now.Add(cmp.Or(task.Visibility, m.tokens[i].Visibility))
	default:
		return h, false
	}
	task.Due = r.Due
	return heldTask{task: task, token: m.tokens[i].Token, deadline: r.Deadline}, true
}

package shard

import (
	"cmp"
	"context"
	"errors"

	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

func additionSize(a *Addition) int { return a.Task.Bytes() + 256 }

// added is what a call that adds tasks came to, in a CallDone.
type added struct {
	seq     int64
	items   []Addition
	results []store.AddResult
	held    bool // by HoldNew
	keyed   bool // by AddKeyed
	tokens  []store.Hold
	began   store.Millis // of a call that holds
	err     error
}

// adder stores tasks: those with reserved credit are held in the same step.
type adder struct {
	*shardState
	claim    *claimer
	holder   *holder
	settler  *settler
	notifier *notifier
	holds    *holdRegistry
	store    interface {
		store.Writer
		store.Owner
	}
	adds     engine.Batcher[Addition]
	holdNews engine.Batcher[Addition] // with reserved credit
	keyed    engine.Batcher[Addition] // with idempotency keys
}

func newAdder(claim *claimer, holder *holder, settler *settler, notifier *notifier, holds *holdRegistry) adder {
	b := claim.shardState
	batches := engine.Batcher[Addition]{Most: 1, Limit: store.BatchItems, Size: additionSize}
	return adder{
		shardState: b, claim: claim, holder: holder, settler: settler, notifier: notifier, holds: holds, store: b.Store,
		adds: batches, holdNews: batches, keyed: batches,
	}
}

// receive handles a message of the adder.
func (a *adder) receive(message any, own bool) {
	switch m := message.(type) {
	case *AddTasks:
		a.add(m.Items)
	case *added:
		a.onAdded(m, own)
	}
}

// add queues tasks, each kind for its store call.
func (a *adder) add(items []Addition) {
	for _, it := range items {
		if it.Sub != nil {
			a.report.assign(it.Sub.ID, 1)
		}
		switch {
		case it.Task.Key != nil:
			a.keyed.Waiting = append(a.keyed.Waiting, it)
		case it.Sub == nil:
			a.adds.Waiting = append(a.adds.Waiting, it)
		case a.claim.owned() && !it.Sub.Gone.Load() && !it.Sub.Budget.Full():
			a.holdNews.Waiting = append(a.holdNews.Waiting, it)
		default:
			a.addUnheld(it)
		}
	}
	a.scheduleFlush()
}

// addUnheld queues a task that is stored without its reserved credit.
func (a *adder) addUnheld(it Addition) {
	a.report.refund(it.Sub, 1)
	it.Sub = nil
	a.adds.Waiting = append(a.adds.Waiting, it)
}

func (a *adder) flush() {
	if batch := a.adds.Next(); batch != nil {
		a.call(func(ctx context.Context) reply { return a.storeAdds(ctx, batch) })
	}
	if batch := a.keyed.Next(); batch != nil {
		a.call(func(ctx context.Context) reply { return a.storeKeyed(ctx, batch) })
	}
	if batch := a.holdNews.Next(); batch != nil {
		fence := a.claim.fence()
		a.call(func(ctx context.Context) reply { return a.storeHoldNews(ctx, fence, batch) })
	}
}

func (a *adder) idle() bool { return a.adds.Idle() && a.holdNews.Idle() && a.keyed.Idle() }

func (a *adder) fenced() int { return a.holdNews.InFlight }

func (a *adder) lose() {
	for _, it := range a.holdNews.Waiting {
		a.addUnheld(it)
	}
	a.holdNews.Waiting = nil
}

func (a *adder) stop() {
	FailAdditions(a.adds.Waiting, problem.Draining())
	FailAdditions(a.holdNews.Waiting, problem.Draining())
	FailAdditions(a.keyed.Waiting, problem.Draining())
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
func (a *adder) ours() store.Shard { return a.id.For(a.ref.Current.Load().Life) }

func (a *adder) storeAdds(ctx context.Context, items []Addition) *added {
	m, tasks := &added{items: items}, tasksOf(items)
	_, m.err = a.Resolve(ctx, func() error {
		stamp, results, err := a.store.Add(ctx, a.ours(), tasks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

func (a *adder) storeKeyed(ctx context.Context, items []Addition) *added {
	m, tasks := &added{items: items, keyed: true}, tasksOf(items)
	_, m.err = a.Resolve(ctx, func() error {
		stamp, results, err := a.store.AddKeyed(ctx, a.ours(), tasks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

func (a *adder) storeHoldNews(ctx context.Context, fence store.Fence, items []Addition) *added {
	tasks, holds := tasksOf(items), make([]store.Hold, len(items))
	tokens := store.NewTokens(len(items))
	for i, it := range items {
		holds[i] = it.Sub.Hold(it.Task.ID, tokens[i])
	}
	m := &added{items: items, held: true, tokens: holds, began: a.Now()}
	_, m.err = a.Resolve(ctx, func() error {
		stamp, results, err := a.store.HoldNew(ctx, a.ours(), fence, tasks, holds)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	if errors.Is(m.err, store.ErrFenced) {
		// Not ours any more, but the tasks are welcome all the same.
		lost := a.storeAdds(ctx, items)
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

// onAdded learns what became of a batch. own: this incarnation made the call; else the
// holds that it was granted go back, as their room was refunded.
func (a *adder) onAdded(m *added, own bool) {
	if own {
		a.batcherOf(m).Done()
	}
	a.learnSizes(m.items)
	if m.held {
		a.onHeld(m, own)
	}
	fresh, known := m.pending()
	if len(fresh) > 0 {
		a.notifier.becamePending(m.seq, fresh)
	}
	a.notifier.learn(m.seq, known)
	a.claim.noteError(m.err)
	a.scheduleFlush()
}

// learnSizes learns how large bodies are that a Hold will return.
func (a *adder) learnSizes(items []Addition) {
	bytes := int64(0)
	for i := range items {
		bytes += subscription.BodyBytes(items[i].Task)
	}
	a.ref.Bodies.Learn(int64(len(items)), bytes)
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

// batcherOf is where a batch came from.
func (a *adder) batcherOf(m *added) *engine.Batcher[Addition] {
	switch {
	case m.held:
		return &a.holdNews
	case m.keyed:
		return &a.keyed
	}
	return &a.adds
}

// onHeld delivers what was stored and held, and gives back the other credit.
func (a *adder) onHeld(m *added, own bool) {
	if !own {
		a.settler.releaseUnseen(m.heldTasks())
	} else {
		a.deliver(m)
	}
	a.holds.expect(m.tokens, m.began, m.err)
	a.holder.passEarly()
}

func (a *adder) deliver(m *added) {
	for i, it := range m.items {
		if h, ok := m.heldTask(i); ok {
			a.holder.granted(it.Sub, h)
		} else {
			a.report.refund(it.Sub, 1)
		}
	}
}

// heldTasks are the tasks of a batch that were held as they were stored.
func (m *added) heldTasks() (tasks []subscription.HeldTask) {
	for i := range m.items {
		if h, ok := m.heldTask(i); ok {
			tasks = append(tasks, h)
		}
	}
	return tasks
}

func (m *added) heldTask(i int) (h subscription.HeldTask, ok bool) {
	if i >= len(m.results) || m.tokens == nil {
		return h, false
	}
	task, r := m.items[i].Task, m.results[i]
	switch {
	case r.Status == store.Held:
		task.Attempt = max(1, r.Attempt)
	case r.Status == store.Duplicate && r.State == store.StateRunning && r.Token == m.tokens[i].Token:
		// The answer of the first try was lost; this is our hold, and nobody says when that began.
		task.Attempt = 1
		r.Deadline = m.began.Add(cmp.Or(task.Visibility, m.tokens[i].Visibility)) // at the earliest
	default:
		return h, false
	}
	task.Due = r.Due
	return subscription.HeldTask{Task: task, Token: m.tokens[i].Token, Deadline: r.Deadline}, true
}

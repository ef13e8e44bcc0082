package dispatch_test

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// This file is the reference: what limits allow, and what they owe. It is slow and plain on
// purpose, knows no node, no store call and no lease, and sees only what a user sees: a task is
// ready, a worker has a place, a handler starts and ends.

const (
	soon      = 50 * time.Millisecond  // within which a task goes that has all that it needs
	turnover  = 20 * time.Millisecond  // of that, until a place or permit that was used is free for another
	tokenLife = 500 * time.Millisecond // that a token of a bucket may be late, as documented
)

// ModelTask is a task as the model sees it.
type ModelTask struct {
	ID, RateKey, CapKey, OrderKey string
	Node                          int       // whose workers can have it
	could                         time.Time // since then it has had all that it needs; zero: it lacks something
}

// Model is the reference.
type Model struct {
	limits  store.TopicLimits
	now     time.Time
	places  int // of the workers of each node
	waiting map[string]*ModelTask
	running map[string]*ModelTask
	ended   []*ended
	order   map[string][]string // ids of an ordering key, the first goes next
	rates   map[string]*usage   // by rate key; "": of the topic

	longest   time.Duration // for which one had all that it needed, and did not go
	started   int
	dead      int
	grace     time.Duration
	deadWrong int // dead letters for which there was a token
}

// ended is a task whose handler ended lately.
type ended struct {
	*ModelTask
	at time.Time
}

// usage is what was started under one rate.
type usage struct {
	rate   store.Rate
	at     []time.Time // of starts
	strict time.Time   // bucket: when its next token comes, by what was started and nothing else
	loose  time.Time   // the same with what a late token is allowed
}

func newModel(limits store.TopicLimits, places int, now time.Time) *Model {
	return &Model{
		limits: limits, now: now, places: places, grace: soon, waiting: map[string]*ModelTask{}, running: map[string]*ModelTask{},
		order: map[string][]string{}, rates: map[string]*usage{},
	}
}

// Ready says that a task is due.
func (m *Model) Ready(t ModelTask) {
	m.waiting[t.ID] = &t
	if t.OrderKey != "" {
		m.order[t.OrderKey] = append(m.order[t.OrderKey], t.ID)
	}
}

// ratesOf are the rates of a task.
func (m *Model) ratesOf(t *ModelTask) (all []*usage) {
	add := func(key string, r store.Rate) {
		if m.rates[key] == nil {
			m.rates[key] = &usage{rate: r}
		}
		all = append(all, m.rates[key])
	}
	if m.limits.KeyRate.Limited() && t.RateKey != "" {
		add("k"+t.RateKey, m.limits.KeyRate)
	}
	if m.limits.Rate.Limited() {
		add("", m.limits.Rate)
	}
	return all
}

// has reports whether a token is there by what was started: nothing that was reserved and
// not used counts. Of a window it allows for slots.
func (u *usage) has(now time.Time) bool {
	if u.rate.Kind == store.TokenBucket {
		return !u.strict.After(now)
	}
	return u.within(now, u.rate.Period+2*u.rate.Slot()+2*time.Millisecond) < u.rate.Count
}

// within is how many were started in the time before.
func (u *usage) within(now time.Time, d time.Duration) (n int) {
	for i := len(u.at) - 1; i >= 0 && now.Sub(u.at[i]) < d; i-- {
		n++
	}
	return n
}

// start records a start, and reports whether the rate allows it.
func (u *usage) start(now time.Time) bool {
	spacing := u.rate.Span(1)
	var ok bool
	if u.rate.Kind == store.TokenBucket {
		ok = !u.loose.After(now.Add(time.Millisecond))
		u.strict = later(u.strict, now.Add(-u.rate.Slack())).Add(spacing)
		u.loose = later(u.loose, now.Add(-u.rate.Slack()-tokenLife)).Add(spacing)
	} else {
		ok = u.within(now, u.rate.Period-time.Millisecond) < u.rate.Count
	}
	u.at = append(u.at, now)
	return ok
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// room reports whether the caps let one more task of a kind go. Lately: those that ended
// a moment ago count as running.
func (m *Model) room(t *ModelTask, lately bool) bool {
	key, all := 0, len(m.running)
	count := func(r *ModelTask) {
		if r.CapKey == t.CapKey {
			key++
		}
	}
	for _, r := range m.running {
		count(r)
	}
	if lately {
		all += len(m.ended)
		for _, r := range m.ended {
			count(r.ModelTask)
		}
	}
	l := m.limits
	return (l.KeyConcurrency == 0 || t.CapKey == "" || key < l.KeyConcurrency) &&
		(l.Concurrency == 0 || all < l.Concurrency) && (l.Namespace == 0 || all < l.Namespace)
}

// busy is how many places of a node are taken.
func (m *Model) busy(node int, lately bool) (n int) {
	for _, r := range m.running {
		if r.Node == node {
			n++
		}
	}
	for _, r := range m.ended {
		if lately && r.Node == node {
			n++
		}
	}
	return n
}

// lacks is what a task that waits lacks; empty: it could go.
func (m *Model) lacks(t *ModelTask) string {
	switch {
	case t.OrderKey != "" && m.order[t.OrderKey][0] != t.ID:
		return "order"
	case !m.room(t, true):
		return "permit"
	}
	for _, u := range m.ratesOf(t) {
		if !u.has(m.now) {
			return "token"
		}
	}
	return ""
}

// Start says that a handler starts, and returns what is against that.
func (m *Model) Start(id string) error {
	t := m.waiting[id]
	switch {
	case t == nil:
		return fmt.Errorf("%s starts, and does not wait", id)
	case m.busy(t.Node, false) >= m.places:
		return fmt.Errorf("%s starts without a place", id)
	case !m.room(t, false):
		return fmt.Errorf("%s starts over a cap: %d run", id, len(m.running))
	case t.OrderKey != "" && m.order[t.OrderKey][0] != id:
		return fmt.Errorf("%s starts out of order", id)
	}
	for _, u := range m.ratesOf(t) {
		if !u.start(m.now) {
			return fmt.Errorf("%s starts over the rate %v: %d within a second", id, u.rate, u.within(m.now, time.Second))
		}
	}
	delete(m.waiting, id)
	m.running[id] = t
	m.started++
	return nil
}

// End says that a handler ended.
func (m *Model) End(id string) {
	t := m.running[id]
	if t == nil {
		return // its start was a fault
	}
	delete(m.running, id)
	m.ended = append(m.ended, &ended{t, m.now})
	if t.OrderKey != "" {
		m.order[t.OrderKey] = m.order[t.OrderKey][1:]
	}
}

// Dead says that a task is a dead letter because it was over a rate: so it must have lacked a
// token. Those just before in the same call are not started yet: one burst is allowed for.
func (m *Model) Dead(id string, onTheWay int) error {
	t := m.waiting[id]
	if t == nil {
		return fmt.Errorf("%s is a dead letter, and does not wait", id)
	}
	delete(m.waiting, id)
	m.dead++
	then := m.now.Add(-turnover) // it was decided then, or later
	for _, u := range m.ratesOf(t) {
		ahead := *u
		for range onTheWay {
			ahead.strict = later(ahead.strict, m.now.Add(-u.rate.Slack())).Add(u.rate.Span(1))
		}
		if u.rate.Kind == store.SlidingWindow && u.within(m.now, u.rate.Period+2*u.rate.Slot()+turnover)+onTheWay >= u.rate.Count ||
			u.rate.Kind == store.TokenBucket && !ahead.has(then) {
			return nil
		}
	}
	m.deadWrong++
	return fmt.Errorf("%s is a dead letter, and there was a token for it", id)
}

// Gone is a task that was deleted.
func (m *Model) Gone(id string) { delete(m.waiting, id) }

// Advance is called at least every few milliseconds. It returns an error when for longer than
// grace a place was free and a task had all that it needs, without a break, and it did not go:
// nobody can have been before it, as then a token, permit or place would have been gone.
func (m *Model) Advance(now time.Time) (err error) {
	m.now = now
	for len(m.ended) > 0 && now.Sub(m.ended[0].at) > turnover {
		m.ended = m.ended[1:]
	}
	first, busy := "", map[int]int{}
	for id, t := range m.waiting {
		if _, counted := busy[t.Node]; !counted {
			busy[t.Node] = m.busy(t.Node, true)
		}
		switch {
		case busy[t.Node] >= m.places || m.lacks(t) != "":
			t.could = time.Time{}
			continue
		case t.could.IsZero():
			t.could = now
		}
		m.longest = max(m.longest, now.Sub(t.could))
		if now.Sub(t.could) > m.grace && (first == "" || id < first) {
			first = id
			err = fmt.Errorf("%s had all that it needs for %v, with %d of %d places free, and did not go (%d wait, %d started)",
				id, now.Sub(t.could), m.places-m.busy(t.Node, false), m.places, len(m.waiting), m.started)
		}
	}
	return err
}

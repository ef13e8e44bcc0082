package agenda

import (
	"iter"
	"maps"
	"time"

	"github.com/ddq-io/ddq/store"
)

// memory is the pending tasks that a shard knows of, and puts each where it belongs: into
// the wheel, to the ready ones, behind another one of its ordering key, or nowhere, when
// there is no room. The invariants are Shard's.
type memory struct {
	ahead
	horizon time.Duration // how far ahead of now the window reaches
	owned   bool
	window  window
	lanes   lanes
	orders  orderKeys
	out     map[string]struct{}    // ready or being held: with the topic
	news    map[string]store.Entry // of tasks in out: what was learned last since they came there; nil: nothing
	wheel   stagedWheel
	ready   []store.Entry // see TakeReady
	owed    store.Millis  // when the wheel has what was left out looked at; 0: not
	reading *Lane         // whose page is being taken in; nil: none
}

// load is what counts for the shard's window.
func (m *memory) load() load {
	return load{m.wheel.all() - m.lanes.InWheel, len(m.out) - m.lanes.InReady}
}

// WithTopic reports whether a task is ready, or being held.
func (m *memory) WithTopic(id string) bool {
	_, known := m.out[id]
	return known
}

// AllWithTopic are the tasks that are ready or being held, in no order.
func (m *memory) AllWithTopic() iter.Seq[string] { return maps.Keys(m.out) }

// Empty reports whether no task is known.
func (m *memory) Empty() bool { return m.wheel.Len()+len(m.out)+len(m.orders.ByKey) == 0 }

// ReadyLen is how many tasks are ready, those included that wait for another one of their
// ordering key.
func (m *memory) ReadyLen() int { return len(m.out) + len(m.orders.Waiting) }

// KnownUntil is before when all pending tasks are known.
func (m *memory) KnownUntil() store.Millis { return max(m.window.Mark.Due, m.window.Clear) }

// Behind is how many tasks wait for another one of their ordering key.
func (m *memory) Behind() int { return len(m.orders.Waiting) }

// TakeReady returns the tasks that became ready since it was last called, in order. They
// are the caller's.
func (m *memory) TakeReady() []store.Entry {
	ready := m.ready
	m.ready = nil
	return ready
}

// Forget forgets the tasks that are known.
func (m *memory) Forget() {
	clear(m.out)
	m.ready, m.news, m.owed = nil, nil, 0
	m.lanes.Clear()
	m.orders = orderKeys{Most: m.orders.Most}
	m.wheel.Clear()
}

// covers reports whether a task that became pending must be kept. A lane that is not
// known is read, if the window stopped before the task.
func (m *memory) covers(now store.Millis, e store.Entry) bool {
	key := m.lanes.key(e.Traits)
	if l := m.lanes.ByKey[key]; l.Limited() && (l.window.Full || l.window.Covers(e.Due)) {
		return l.window.Covers(e.Due)
	}
	key.limitKeys = limitKeys{}
	l := m.lanes.ByKey[key]
	switch {
	case key == laneKey{}, l == nil && (!m.window.Full || e.Due > now.Add(m.horizon)):
		return m.window.Covers(e.Due)
	case l == nil:
		l = m.lanes.Open(key, &m.window)
	}
	return !l.window.Full && m.window.Covers(e.Due) || l.window.Covers(e.Due)
}

// knownSooner reports whether a task is known to be due before e says.
func (m *memory) knownSooner(now store.Millis, e store.Entry) bool {
	due, there := m.wheel.Due(e.ID)
	return there && due < e.Due || m.orders.Waiting[e.ID] != nil && e.Due > now
}

// keep admits a task that may be in the wheel already, for another time.
func (m *memory) keep(now store.Millis, e store.Entry) {
	switch {
	case m.WithTopic(e.ID):
		m.learn(e)
		m.relane(now, e)
	case m.orders.Moved(e, now):
	case m.admit(now, e, m.ahead.most):
	case m.WithTopic(e.ID):
		m.wheel.Remove(e.ID) // its traits are those of a ready task
	default:
		m.unwait(e.ID)
	}
}

// learn remembers what is said of a task that is ready or being held. The store may have
// refused to hold it before that became so.
func (m *memory) learn(e store.Entry) {
	if m.news == nil {
		m.news = make(map[string]store.Entry)
	}
	m.news[e.ID] = e
}

// relane makes a ready task ready once more when it has other traits than before. Its
// first place in the ready queue stays and comes to nothing: a task is held once.
func (m *memory) relane(now store.Millis, e store.Entry) {
	if m.lanes.Of(e.ID).Same(e.Traits) || e.Due > now+m.reach(e, m.ahead.most) {
		return
	}
	m.lanes.Put(e.ID, e.Traits, m.lanes.Lane(e.Traits, &m.window), true)
	m.ready = append(m.ready, e)
}

// Due makes tasks ready that were in the wheel until now. While others wait for a worker
// (busy), those that are not due yet go back.
func (m *memory) Due(now store.Millis, es []store.Entry, busy bool) {
	reach := m.ahead.most
	if busy {
		reach = 0
	}
	m.due(now, es, reach)
}

func (m *memory) due(now store.Millis, es []store.Entry, ahead store.Millis) {
	for _, e := range es {
		if !m.WithTopic(e.ID) {
			e.Traits = m.lanes.Of(e.ID)
			m.lanes.Drop(e.ID)
			m.admit(now, e, ahead)
		}
	}
}

// CrowdDue makes the tasks of a crowd ready.
func (m *memory) CrowdDue(now store.Millis, es []store.Entry) {
	m.due(now, es, store.Millis(store.MaxHoldAhead.Milliseconds()))
}

// admit puts a task where it belongs, and reports whether that is the wheel: else it is
// among the ready ones, or beyond the budgets. Ahead is how long before its due time it
// may be ready.
func (m *memory) admit(now store.Millis, e store.Entry, ahead store.Millis) (waits bool) {
	if e.Due <= now && m.orders.MustWait(e) {
		return false
	}
	m.wheel.moves(e.ID)
	l, reached := m.lanes.Lane(e.Traits, &m.window), now+m.reach(e, ahead)
	if !m.fits(reached, e.Due, l) {
		if l.Limited() {
			m.lanes.Tidy(l)
		}
		return false
	}
	waits = e.Due > reached
	m.lanes.Put(e.ID, e.Traits, l, !waits)
	if waits {
		m.wheel.stage(e, m.exactly(e, ahead))
		return true
	}
	m.out[e.ID] = struct{}{}
	if e.Traits.Ordering() != "" {
		m.orders.Let(e)
	}
	m.ready = append(m.ready, e)
	return false
}

// fits reports whether there is room for a task of a lane; nil: of the zero one.
func (m *memory) fits(now, due store.Millis, l *Lane) bool {
	fits := false
	switch {
	case l.Limited():
		fits = m.fitsInside(now, due, l)
	case l != nil:
		fits = l.window.Fits(due, now, l.Wheel, l.Ready)
	default:
		all := m.load()
		fits = m.window.Fits(due, now, all.wheel, all.ready)
	}
	if !fits && due > now {
		m.owe(due)
	}
	return fits
}

// fitsInside is fits of a lane inside another one, or inside the shard's window: half of that
// is for whoever comes first, and the lane has a share of the rest.
func (m *memory) fitsInside(now, due store.Millis, l *Lane) bool {
	outer, all := m.lanes.outer(l, m.load())
	crowded := due <= now && all.ready > outer.Ready/2 && l.Ready >= l.window.Ready
	switch {
	case !crowded && outer.takes(due, now, all):
		return true
	case crowded, l.window.Full, m.reading == l: // it does not follow: the window around it has read on
		l.window.Lower(due)
	default:
		outer.Lower(due)
	}
	return false
}

// owe has the wheel tell in time that a task was left out: by then it may be the only one that
// is due, and nothing else would have it read again.
func (m *memory) owe(due store.Millis) {
	if at := due - m.window.Spare/2; m.owed == 0 || at < m.owed {
		m.owed = at
		m.wheel.LookAt(leftOut, at)
	}
}

// letOut makes a task ready that waited for another one of its key, whatever budgets
// say.
func (m *memory) letOut(e store.Entry) {
	if m.WithTopic(e.ID) {
		return
	}
	m.unwait(e.ID)
	m.out[e.ID] = struct{}{}
	m.lanes.Put(e.ID, e.Traits, m.lanes.Lane(e.Traits, &m.window), true)
	m.ready = append(m.ready, e)
}

// Left learns that a task is with the topic no more: the store said whether it is held,
// or was not asked. It returns what was learned of the task meanwhile, for Unheld; nil:
// nothing.
func (m *memory) Left(id string) (news *store.Entry) {
	if e, learned := m.news[id]; learned {
		news = &e
		delete(m.news, id)
	}
	delete(m.out, id)
	m.lanes.Drop(id)
	return news
}

// unwait takes a task out of the wheel, and forgets its traits.
func (m *memory) unwait(id string) {
	m.wheel.Remove(id)
	m.lanes.Drop(id)
}

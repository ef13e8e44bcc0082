package actors

import (
	"context"
	"math"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

const (
	loadPage  = 5000
	sweepPage = 1000
)

// load reads the next page of pending tasks into the window.
func (s *shard) load() {
	if !s.owned {
		return
	}
	query, ok := s.window.begin(s.now().Add(s.cfg.Horizon), loadPage)
	if !ok {
		return
	}
	s.calls.run(func(ctx context.Context) {
		s.post(&windowLoaded{s.read(ctx, query)})
	})
}

// loaded is a page of pending tasks, and whether more follow.
type loaded struct {
	entries []store.Entry
	more    bool
	err     error
}

func (s *shard) read(ctx context.Context, query store.WindowQuery) (p loaded) {
	_, p.entries, p.err = s.store.Window(ctx, s.id, query)
	p.more = len(p.entries) == query.Limit
	return p
}

// notLoaded takes in that a page of a window could not be read.
func (s *shard) notLoaded(w *window, err error) {
	w.abort()
	s.noteError(err)
	s.later(&loadTick{})
}

// takeIn takes in a page of a window.
func (s *shard) takeIn(w *window, p *loaded) {
	var last store.Entry
	if p.more {
		last = p.entries[len(p.entries)-1]
	}
	w.end(last, p.more)
	for _, e := range p.entries {
		s.keep(e)
	}
	s.metrics.loaded.Add(float64(len(p.entries)))
}

// onLoaded takes a page in. One that was read before the shard was lost is dropped:
// whoever claims it next starts anew.
func (s *shard) onLoaded(m *windowLoaded) {
	if !s.owned {
		s.window.abort()
		return
	}
	if m.err != nil {
		s.notLoaded(&s.window, m.err)
		return
	}
	s.takeIn(&s.window, &m.loaded)
	switch {
	case s.window.full:
		s.scanLanes()
	case m.more:
		s.load()
	}
}

// onClockJump reads the window anew. Nodes tell the owner only what is due soon by
// their clock, so once more when all have noticed that it was set.
func (s *shard) onClockJump() {
	if s.owned {
		s.reread()
		s.load()
		s.later(&reload{from: math.MinInt64})
	}
}

// later posts a message once a failing store may have come back.
func (s *shard) later(m any) {
	s.calls.run(func(ctx context.Context) {
		sleep(ctx, storeRetry)
		s.post(m)
	})
}

// learn takes in that a task is pending. Beyond the window the loader finds it.
func (s *shard) learn(e store.Entry) {
	s.orders.learned(e)
	if s.owned && s.covers(e) {
		s.keep(e)
		return
	}
	s.unwait(e.ID)
}

// keep admits a task that may be in the wheel already, for another time.
func (s *shard) keep(e store.Entry) {
	if _, known := s.out[e.ID]; known {
		s.relane(e)
		return
	}
	if s.orders.moved(e, s.now()) {
		return
	}
	if !s.admit(e) {
		s.unwait(e.ID)
	}
}

// relane puts a ready task into line once more when it has other traits than before.
// Where it stood it stays, and comes to nothing: a task is held once.
func (s *shard) relane(e store.Entry) {
	if s.lanes.of(e.ID).Same(e.Traits) || e.Due > s.now() {
		return
	}
	s.lanes.put(e.ID, e.Traits, s.lanes.lane(e.Traits, &s.window), true)
	s.fresh = append(s.fresh, e)
}

// unwait takes a task out of the wheel.
func (s *shard) unwait(id string) {
	s.insertWaiting()
	s.due.Remove(id)
	s.lanes.drop(id)
}

// insertWaiting puts what was gathered into the wheel.
func (s *shard) insertWaiting() {
	if len(s.waiting) == 0 {
		return
	}
	s.due.InsertAll(s.waiting)
	clear(s.waiting)
	if s.waiting = s.waiting[:0]; cap(s.waiting) > loadPage {
		s.waiting = nil
	}
}

// forgetPending forgets the pending tasks that the shard knows of.
func (s *shard) forgetPending() {
	clear(s.out)
	s.waiting = nil
	s.lanes.clear()
	s.forgetOrders()
	s.due.Close()
	s.due = s.wheel.NewQueue(func(ms int64) { s.post(&slotDue{ms}) })
}

// inWheel is how many tasks wait for their due time.
func (s *shard) inWheel() int { return s.due.Len() + len(s.waiting) }

// admit puts a task where it belongs, and reports whether that is the wheel:
// else it is among the ready ones, or beyond the budgets.
func (s *shard) admit(e store.Entry) (waits bool) {
	now := s.now()
	if e.Due <= now && s.orders.mustWait(e) {
		return false
	}
	w, inWheel, ready := &s.window, s.inWheel()-s.lanes.inWheel, len(s.out)-s.lanes.inReady
	l := s.lanes.lane(e.Traits, w)
	if l != nil {
		w, inWheel, ready = &l.window, l.wheel, l.ready
	}
	if !w.fits(e.Due, now, inWheel, ready) {
		return false
	}
	waits = e.Due > now
	s.lanes.put(e.ID, e.Traits, l, !waits)
	if waits {
		s.waiting = append(s.waiting, timer.Entry{ID: e.ID, Due: int64(e.Due)})
		return true
	}
	s.out[e.ID] = struct{}{}
	if e.Traits.Ordering() != "" {
		s.orders.let(e)
	}
	s.fresh = append(s.fresh, e)
	return false
}

// onSlot makes the tasks of a millisecond ready.
func (s *shard) onSlot(ms int64) {
	for _, e := range s.due.Take(ms) {
		if _, known := s.out[e.ID]; !known {
			t := store.Entry{ID: e.ID, Due: store.Millis(e.Due), Traits: s.lanes.of(e.ID)}
			s.lanes.drop(e.ID)
			s.admit(t)
		}
	}
}

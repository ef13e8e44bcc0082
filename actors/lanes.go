package actors

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// lanes are those of a shard that have tasks, but for the zero one, and the traits of
// the tasks that the shard has in its wheel or ready. They have no clock and no I/O.
//
// The shard's own window goes over the tasks of all lanes in order of their due times.
// While everything due soon fits, nothing else is needed: a lane that is not full
// follows it. With a backlog it stops, and then each lane is read on its own, so that
// a task of a high priority is found behind a million others, and a key's ten tasks
// behind those of another one.
//
// Invariants:
//   - a task that has traits is in tasks as long as it is in the wheel or in out
//   - wheel and ready are sums over byKey
//   - of a lane that is not full, all tasks are known that its window or the shard's covers
type lanes struct {
	byKey map[store.Lane]*lane
	tasks map[string]laned
	wheel int // most tasks of all lanes that wait in the wheel
	ready int // most ready ones

	inWheel, inReady int     // tasks now
	starving         []*lane // those with room for more of their tasks
	loading          int     // pages being read
	scanning         bool    // the store is being asked which lanes there are
}

// lane is one of them.
type lane struct {
	key            store.Lane
	window         window
	wheel, ready   int  // tasks now
	queued, closed bool // in starving; not in byKey any more
}

// laned is a task with traits that waits in the wheel, or is ready.
type laned struct {
	traits *store.Traits
	lane   *lane // nil: the zero one
	ready  bool
}

const (
	leastOfLane  = 64 // tasks of a lane that are kept in memory at least, if it has them
	laneLoads    = 4  // most pages of lanes that are read at a time
	lanesPerPage = 1000
)

// of returns the traits of a task that is in the wheel or ready.
func (s *lanes) of(id string) *store.Traits {
	if len(s.tasks) == 0 {
		return nil
	}
	return s.tasks[id].traits
}

// lane returns the lane of a task, nil for the zero one. A new one has seen what the
// shard's window has.
func (s *lanes) lane(t *store.Traits, base *window) *lane {
	if t == nil {
		return nil
	}
	return s.open(t.Lane(), base)
}

func (s *lanes) open(key store.Lane, base *window) *lane {
	if key == (store.Lane{}) {
		return nil
	}
	l := s.byKey[key]
	if l == nil {
		l = &lane{key: key, window: window{mark: base.mark, full: base.full, spare: base.spare}}
		if s.byKey == nil {
			s.byKey = make(map[store.Lane]*lane)
		}
		s.byKey[key] = l
		s.starve(l)
	}
	l.window.wheel, l.window.ready = s.share(s.wheel), s.share(s.ready)
	return l
}

// share is a lane's part of a budget.
func (s *lanes) share(budget int) int {
	return max(min(leastOfLane, budget), budget/len(s.byKey))
}

// put takes in where a task is now.
func (s *lanes) put(id string, t *store.Traits, l *lane, ready bool) {
	if t == nil {
		s.drop(id)
		return
	}
	if s.tasks == nil {
		s.tasks = make(map[string]laned)
	}
	was, known := s.tasks[id]
	s.tasks[id] = laned{t, l, ready}
	s.count(l, ready, 1)
	if known {
		s.leave(was)
	}
}

// drop forgets a task that is in the wheel or ready no more.
func (s *lanes) drop(id string) {
	if len(s.tasks) == 0 {
		return
	}
	t, ok := s.tasks[id]
	if !ok {
		return
	}
	delete(s.tasks, id)
	s.leave(t)
}

func (s *lanes) leave(t laned) {
	s.count(t.lane, t.ready, -1)
	if t.lane != nil {
		s.tidy(t.lane)
	}
}

func (s *lanes) count(l *lane, ready bool, n int) {
	switch {
	case l == nil:
	case ready:
		l.ready += n
		s.inReady += n
	default:
		l.wheel += n
		s.inWheel += n
	}
}

// tidy forgets a lane that has nothing, and notes one that has room for more.
func (s *lanes) tidy(l *lane) {
	if l.wheel+l.ready == 0 && !l.window.full && !l.window.loading && !l.closed {
		delete(s.byKey, l.key)
		l.closed = true
		return
	}
	s.starve(l)
}

func (s *lanes) starve(l *lane) {
	if !l.queued && l.window.hungry(l.wheel, l.ready) {
		l.queued = true
		s.starving = append(s.starving, l)
	}
}

// look notes every lane that has room for more, also those that nothing of is left that
// could go: they could not be read before.
func (s *lanes) look() {
	for _, l := range inOrder(s.byKey, compareLaneKeys) {
		s.starve(l)
	}
}

// clear forgets every task and lane. Pages that are being read come to nothing.
func (s *lanes) clear() {
	for _, l := range s.byKey {
		l.closed = true
	}
	s.byKey, s.tasks, s.starving, s.inWheel, s.inReady = nil, nil, nil, 0, 0
}

// lower puts the watermarks of lanes that do not follow the shard's before everything
// due at due or later; behind says that none does.
func (s *lanes) lower(due store.Millis, behind bool) {
	for _, l := range inOrder(s.byKey, compareLaneKeys) {
		if behind || l.window.full {
			l.window.lower(due)
			s.starve(l)
		} else if l.window.mark.Due > due {
			l.window.mark = store.Entry{Due: due}
		}
	}
}

// takeStarving returns lanes to read, the highest priorities first, as many as may be
// read at a time.
func (s *lanes) takeStarving() (next []*lane) {
	for len(s.starving) > 0 && s.loading+len(next) < laneLoads {
		best := 0
		for i, l := range s.starving {
			if l.key.Priority > s.starving[best].key.Priority {
				best = i
			}
		}
		l := s.starving[best]
		s.starving = append(s.starving[:best], s.starving[best+1:]...)
		if l.queued = false; !l.closed && !l.window.loading {
			next = append(next, l)
		}
	}
	return next
}

func compareLaneKeys(a, b store.Lane) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Key, b.Key))
}

// covers reports whether a task that became pending must be taken in. A lane that the
// shard knows nothing of is read, if the window stopped before the task.
func (s *shard) covers(e store.Entry) bool {
	key := e.Traits.Lane()
	l := s.lanes.byKey[key]
	switch {
	case key == store.Lane{}, l == nil && (!s.window.full || e.Due > s.now().Add(s.cfg.Horizon)):
		return s.window.covers(e.Due)
	case l == nil:
		l = s.lanes.open(key, &s.window)
	}
	return !l.window.full && s.window.covers(e.Due) || l.window.covers(e.Due)
}

// lower reads again what is due at due or later.
func (s *shard) lower(due store.Millis) {
	s.lanes.lower(due, s.window.full)
	s.window.lower(due)
}

// reread reads everything again.
func (s *shard) reread() {
	s.lanes.lower(math.MinInt64, s.window.full)
	s.window.reset()
}

// loadLanes reads lanes that have room for more of their tasks.
func (s *shard) loadLanes() {
	for next := s.lanes.takeStarving(); len(next) > 0; next = s.lanes.takeStarving() {
		for _, l := range next {
			s.loadLane(l)
		}
	}
}

func (s *shard) loadLane(l *lane) {
	query, ok := l.window.begin(s.now().Add(s.cfg.Horizon), min(loadPage, max(leastOfLane, l.window.ready)))
	if !ok {
		l.window.full = false
		return
	}
	query.Lane = &l.key
	s.lanes.loading++
	s.calls.run(func(ctx context.Context) {
		s.post(&laneLoaded{l, s.read(ctx, query)})
	})
}

// onLaneLoaded takes a page of a lane in.
func (s *shard) onLaneLoaded(m *laneLoaded) {
	s.lanes.loading--
	l := m.lane
	switch {
	case l.closed || !s.owned:
		return
	case m.err != nil:
		l.window.full = true
		s.notLoaded(&l.window, m.err)
		return
	}
	l.window.full = l.window.full || m.more
	s.takeIn(&l.window, &m.loaded)
	s.lanes.tidy(l)
}

// scanLanes asks which lanes there are beyond the window: of these nobody told, or it
// was when this node did not own the shard.
func (s *shard) scanLanes() {
	if s.lanes.scanning || !s.owned {
		return
	}
	s.lanes.scanning = true
	s.calls.run(func(ctx context.Context) {
		m := &lanesFound{}
		for after := (*store.Lane)(nil); m.err == nil; {
			var page []store.LaneHead
			page, m.err = s.store.Lanes(ctx, s.id, after, lanesPerPage)
			m.heads = append(m.heads, page...)
			if len(page) < lanesPerPage {
				break
			}
			after = &page[len(page)-1].Lane
		}
		s.post(m)
	})
}

// onLanesFound has those read that have tasks due soon.
func (s *shard) onLanesFound(m *lanesFound) {
	s.lanes.scanning = false
	if m.err != nil || !s.owned || !s.window.full {
		s.noteError(m.err) // the next tick scans again
		return
	}
	goal := s.now().Add(s.cfg.Horizon)
	for _, h := range m.heads {
		if h.Due > goal {
			continue
		}
		l := s.lanes.open(h.Lane, &s.window)
		if l.window.mark.Due <= goal {
			l.window.full = true
		}
		s.lanes.starve(l)
	}
}

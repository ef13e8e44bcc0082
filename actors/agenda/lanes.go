package agenda

import (
	"github.com/ddq-io/ddq/actors/ordered"
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
//   - wheel and ready are sums over ByKey
//   - of a lane that is not full, all tasks are known that its window or the shard's covers
type lanes struct {
	ByKey map[store.Lane]*Lane
	tasks map[string]laned
	Wheel int // most tasks of all lanes that wait in the wheel
	Ready int // most ready ones

	InWheel, InReady int          // tasks now
	Soon             store.Millis // see window.Soon
	Starving         []*Lane      // those with room for more of their tasks
	Loading          int          // pages being read
	Scanning         bool         // the store is being asked which lanes there are
}

// Lane is one of them.
type Lane struct {
	Key            store.Lane
	window         window
	Wheel, Ready   int  // tasks now
	queued, Closed bool // in starving; not in ByKey any more
}

// laned is a task with traits that waits in the wheel, or is ready.
type laned struct {
	traits *store.Traits
	lane   *Lane // nil: the zero one
	ready  bool
}

const (
	LeastOfLane  = 64 // tasks of a lane that are kept in memory at least, if it has them
	laneLoads    = 4  // most pages of lanes that are read at a time
	LanesPerPage = 1000
)

// Of returns the traits of a task that is in the wheel or ready.
func (s *lanes) Of(id string) *store.Traits {
	if len(s.tasks) == 0 {
		return nil
	}
	return s.tasks[id].traits
}

// Lane returns the lane of a task, nil for the zero one. A new one has seen what the
// shard's window has.
func (s *lanes) Lane(t *store.Traits, base *window) *Lane {
	if t == nil {
		return nil
	}
	return s.Open(t.Lane(), base)
}

// Open returns the lane of a key, nil for the zero one; it is made on first use.
func (s *lanes) Open(key store.Lane, base *window) *Lane {
	if key == (store.Lane{}) {
		return nil
	}
	l := s.ByKey[key]
	if l == nil {
		l = &Lane{Key: key, window: window{Mark: base.Mark, Full: base.Full, Spare: base.Spare}}
		if s.ByKey == nil {
			s.ByKey = make(map[store.Lane]*Lane)
		}
		s.ByKey[key] = l
		s.Starve(l)
	}
	l.window.Wheel, l.window.Ready = s.share(s.Wheel), s.share(s.Ready)
	return l
}

// share is a lane's part of a budget.
func (s *lanes) share(budget int) int {
	return max(min(LeastOfLane, budget), budget/len(s.ByKey))
}

// Put records where a task is now.
func (s *lanes) Put(id string, t *store.Traits, l *Lane, ready bool) {
	if t == nil {
		s.Drop(id)
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

// Drop forgets a task that is in the wheel or ready no more.
func (s *lanes) Drop(id string) {
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
		s.Tidy(t.lane)
	}
}

func (s *lanes) count(l *Lane, ready bool, n int) {
	switch {
	case l == nil:
	case ready:
		l.Ready += n
		s.InReady += n
	default:
		l.Wheel += n
		s.InWheel += n
	}
}

// Tidy forgets a lane that has nothing, and notes one that has room for more.
func (s *lanes) Tidy(l *Lane) {
	if l.Wheel+l.Ready == 0 && !l.window.Full && !l.window.loading && !l.Closed {
		delete(s.ByKey, l.Key)
		l.Closed = true
		return
	}
	s.Starve(l)
}

// Starve notes a lane that has room for more of its tasks.
func (s *lanes) Starve(l *Lane) {
	if !l.queued && (l.window.Hungry(l.Wheel, l.Ready) || l.window.Owes(s.Soon, l.Ready)) {
		l.queued = true
		s.Starving = append(s.Starving, l)
	}
}

// Look notes every lane that has room for more, also those without a task left that
// could go: they could not be read before.
func (s *lanes) Look() {
	for _, l := range ordered.All(s.ByKey, store.Lane.Compare) {
		s.Starve(l)
	}
}

// Clear forgets every task and lane. Pages that are being read come to nothing.
func (s *lanes) Clear() {
	for _, l := range s.ByKey {
		l.Closed = true
	}
	s.ByKey, s.tasks, s.Starving, s.InWheel, s.InReady = nil, nil, nil, 0, 0
}

// Lower puts the watermarks of lanes that do not follow the shard's before everything
// due at due or later; behind says that none does.
func (s *lanes) Lower(due store.Millis, behind bool) {
	for _, l := range ordered.All(s.ByKey, store.Lane.Compare) {
		if behind || l.window.Full {
			l.window.Lower(due)
			s.Starve(l)
		} else if l.window.Mark.Due > due {
			l.window.Mark = store.Entry{Due: due}
		}
	}
}

// TakeStarving returns lanes to read, the highest priorities first, as many as may be
// read at a time.
func (s *lanes) TakeStarving() (next []*Lane) {
	for len(s.Starving) > 0 && s.Loading+len(next) < laneLoads {
		best := 0
		for i, l := range s.Starving {
			if l.Key.Priority > s.Starving[best].Key.Priority {
				best = i
			}
		}
		l := s.Starving[best]
		s.Starving = append(s.Starving[:best], s.Starving[best+1:]...)
		if l.queued = false; !l.Closed && !l.window.loading {
			next = append(next, l)
		}
	}
	return next
}

package agenda

import (
	"cmp"

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
// The tasks of a key that a limit applies to may not go while others may. So those of each
// rate key and concurrency key are a lane inside that of their priority and fairness key, or
// inside the shard's window. The store knows no such lane. It follows the one around it: half
// of the budget there is for whoever comes first, and of the other half it has its share. What
// does not fit into that is left out of this lane alone, and read again later, see
// loader.admitInside.
//
// Invariants:
//   - a task that has traits is in tasks as long as it is in the wheel or in out
//   - wheel and ready are sums over those lanes of ByKey that the store knows
//   - of a lane that is not full, all tasks are known that its window covers, or that of
//     what it is inside of, or the shard's
type lanes struct {
	ByKey map[laneKey]*Lane
	tasks map[string]laned
	Wheel int // most tasks of all lanes that wait in the wheel
	Ready int // most ready ones

	limits           limitsApplied
	stored           int          // lanes of ByKey that the store knows
	InWheel, InReady int          // tasks of these now
	limited          int          // ready tasks of lanes inside the shard's window
	around           *window      // the shard's
	shard            load         // tasks that count for it, as of the last Settle
	Soon             store.Millis // see window.Soon
	Starving         []*Lane      // those with room for more of their tasks
	Loading          int          // pages being read
	Scanning         bool         // the store is being asked which lanes there are
}

// laneKey is a lane that the store knows, or one inside it.
type laneKey struct {
	store.Lane
	limitKeys
}

// limitKeys are keys that a limit of the topic applies to; empty: none.
type limitKeys struct{ rate, cap string }

// limitsApplied is to which keys of tasks the topic has limits.
type limitsApplied struct{ rate, cap bool }

func (k laneKey) compare(o laneKey) int {
	return cmp.Or(k.Lane.Compare(o.Lane), cmp.Compare(k.rate, o.rate), cmp.Compare(k.cap, o.cap))
}

// load is how many tasks wait in the wheel, and are ready.
type load struct{ wheel, ready int }

// Lane is one of them.
type Lane struct {
	Key            laneKey
	within         *Lane // the one that it is inside of; nil: the shard's window, or the store knows it
	inside         int   // lanes
	window         window
	Wheel, Ready   int         // tasks now, with those of lanes inside
	limited        int         // ready ones of lanes inside
	after          store.Entry // where the page begins that is being read
	queued, Closed bool        // in starving; not in ByKey any more
}

// Limited reports whether the lane is that of a key with a limit, inside another one. The store knows none of these.
func (l *Lane) Limited() bool { return l != nil && l.Key.limitKeys != limitKeys{} }

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

	// leastLimited is the first share of a lane inside another one. It doubles each time that
	// the lane is read on, up to a page: so a key whose tasks go is read in pages, and one whose
	// tasks do not keeps few.
	leastLimited = 16
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
	return s.Open(s.key(t), base)
}

// key is that of the lane of a task with these traits.
func (s *lanes) key(t *store.Traits) laneKey {
	k := laneKey{Lane: t.Lane()}
	if t != nil && s.limits.rate {
		k.rate = t.RateKey
	}
	if t != nil && s.limits.cap {
		k.cap = t.ConcurrencyKey
	}
	return k
}

// Open returns the lane of a key, nil for the zero one; it is made on first use.
func (s *lanes) Open(key laneKey, base *window) *Lane {
	if key == (laneKey{}) {
		return nil
	}
	l, known := s.ByKey[key]
	if !known {
		l = s.open(key, base)
	}
	if !l.Limited() {
		l.window.Wheel, l.window.Ready = s.share(s.Wheel), s.share(s.Ready)
	}
	if !known {
		s.Starve(l)
	}
	return l
}

func (s *lanes) open(key laneKey, base *window) *Lane {
	if s.ByKey == nil {
		s.ByKey = make(map[laneKey]*Lane)
	}
	l := &Lane{Key: key}
	if l.Limited() {
		if l.within = s.Open(laneKey{Lane: key.Lane}, base); l.within != nil {
			l.within.inside++
			base = &l.within.window
		}
		l.window = window{Mark: base.Mark, Spare: base.Spare, Wheel: s.Wheel, Ready: min(leastLimited, s.Ready/64+1)}
	} else {
		l.window = window{Mark: base.Mark, Full: base.Full, Spare: base.Spare}
		s.stored++
	}
	s.ByKey[key] = l
	return l
}

// outer is the window that a lane is inside of, and what counts for it, or for the shard's.
func (s *lanes) outer(l *Lane, shard load) (*window, load) {
	if l.within != nil {
		return &l.within.window, load{l.within.Wheel, l.within.Ready}
	}
	return s.around, shard
}

// share is a lane's part of a budget.
func (s *lanes) share(budget int) int {
	return max(min(LeastOfLane, budget), budget/s.stored)
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
	s.Tidy(t.lane)
}

func (s *lanes) count(l *Lane, ready bool, n int) {
	if l == nil {
		return
	}
	more := load{wheel: n}
	if ready {
		more = load{ready: n}
	}
	switch {
	case !l.Limited():
	case l.within != nil:
		l.within.limited += more.ready
	default:
		s.limited += more.ready
	}
	if l.Key.Lane != (store.Lane{}) {
		s.InWheel, s.InReady = s.InWheel+more.wheel, s.InReady+more.ready
	}
	for ; l != nil; l = l.within {
		l.Wheel, l.Ready = l.Wheel+more.wheel, l.Ready+more.ready
	}
}

// Tidy forgets a lane that has nothing, and notes one that has room for more; nil: nothing.
// So it does with the one that it is inside of.
func (s *lanes) Tidy(l *Lane) {
	for ; l != nil; l = l.within {
		if l.Wheel+l.Ready+l.inside > 0 || l.window.Full || l.window.loading || l.Closed {
			s.Starve(l)
			continue
		}
		delete(s.ByKey, l.Key)
		l.Closed = true
		switch {
		case !l.Limited():
			s.stored--
		case l.within != nil:
			l.within.inside--
		}
	}
}

// Starve notes a lane that has room for more of its tasks.
func (s *lanes) Starve(l *Lane) {
	if !l.queued && s.hungry(l) {
		l.queued = true
		s.Starving = append(s.Starving, l)
	}
}

// hungry reports whether a lane has room for more of its tasks.
func (s *lanes) hungry(l *Lane) bool {
	has := load{l.Wheel, l.Ready}
	if !l.Limited() {
		return l.window.Wants(s.Soon, has, l.limited)
	}
	if outer, all := s.outer(l, s.shard); l.window.Full && !l.window.loading && all.ready <= outer.Ready/4 {
		return true
	}
	return l.window.Wants(s.Soon, has, 0)
}

// mayRead reports whether what a lane reads would fit into what it is inside of.
func (s *lanes) mayRead(l *Lane) bool {
	if !l.Limited() {
		return true
	}
	outer, all := s.outer(l, s.shard)
	return outer.hasRoom(all) || l.window.Mark.Due <= s.Soon && outer.mayBeReady(all)
}

// Look notes every lane that has room for more, also those without a task left that
// could go: they could not be read before.
func (s *lanes) Look() {
	for _, l := range ordered.All(s.ByKey, laneKey.compare) {
		s.Starve(l)
	}
}

// Clear forgets every task and lane. Pages that are being read come to nothing.
func (s *lanes) Clear() {
	for _, l := range s.ByKey {
		l.Closed = true
	}
	s.ByKey, s.tasks, s.Starving, s.stored, s.InWheel, s.InReady, s.limited = nil, nil, nil, 0, 0, 0, 0
}

// Lower puts the watermarks of lanes that do not follow the shard's before everything
// due at due or later; behind says that none does which the store knows.
func (s *lanes) Lower(due store.Millis, behind bool) {
	for _, l := range ordered.All(s.ByKey, laneKey.compare) {
		if behind && !l.Limited() || l.window.Full {
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
	for s.Loading+len(next) < laneLoads {
		best := -1
		for i, l := range s.Starving {
			if (best < 0 || l.Key.Priority > s.Starving[best].Key.Priority) && s.mayRead(l) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		l := s.Starving[best]
		s.Starving = append(s.Starving[:best], s.Starving[best+1:]...)
		if l.queued = false; !l.Closed && !l.window.loading && (!l.Limited() || s.hungry(l)) {
			next = append(next, l)
		}
	}
	return next
}

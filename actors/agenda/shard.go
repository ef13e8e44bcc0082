package agenda

import (
	"iter"
	"maps"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Shard is what the owner of a shard knows of its pending tasks: which are due soon,
// which are ready, and which wait for another one of their ordering key. It has no clock,
// no goroutine and no I/O: the shard actor tells it what happened and carries out its
// effects. A node that does not own the shard has one that knows nothing.
//
// Invariants:
//   - a pending task inside the window is in the wheel, in out, or waits in orders, and
//     in one of them only
//   - a task is in Ready once for each time it came into out, and once more for each
//     change of its traits there
//   - a task that is left out for want of room lowers the watermark of its window, so
//     it is read again
//   - at most one page of the window is being read, and one of each lane
//   - after Lose it learns of no task until Own
type Shard struct {
	cfg     Config
	owned   bool
	window  window
	lanes   lanes
	orders  orderKeys
	out     map[string]struct{} // ready or being held: with the topic
	wheel   Wheel
	waiting []store.Entry // to be inserted into the wheel
	exact   []store.Entry // and such as are not held ahead
	ahead   ahead
	ready   []store.Entry // see TakeReady
	effects Effects
}

// Config is how much a Shard knows.
type Config struct {
	Horizon time.Duration // how far ahead of now the window reaches
	Wheel   int           // most tasks in the wheel
	Ready   int           // most ready ones, and most that wait for their ordering key
	Page    int           // most tasks of a page
	Spare   time.Duration // tasks due this soon are admitted above the wheel's budget
}

// Wheel holds tasks until they are due, and the moments to look at ordering keys. It has
// the only index of the tasks, as there may be millions: the Shard asks it how many there
// are, and changes it at once.
type Wheel interface {
	Len() int                             // of the tasks
	Due(id string) (store.Millis, bool)   // when a task is due that is there
	InsertAll(es []store.Entry)           // moves those that are there; keeps nothing of es
	InsertExact(es []store.Entry)         // InsertAll of tasks that it tells of when they are due, and not ahead
	Remove(id string)                     // a task that may not be there
	At(due store.Millis) int              // how many tasks it tells of ahead are due then
	Crowd(due, when store.Millis)         // Shard.Crowd then; the last one counts for a due time
	LookAt(key string, when store.Millis) // LookAtKey then
	Clear()
}

// Effects are what the owner of a Shard is to do, in this order.
type Effects struct {
	Ask       [][]string         // ordering keys to ask the store about, each slice in one call
	Load      *store.WindowQuery // a page of the window to read; nil: none
	LoadLanes []LaneLoad         // and pages of lanes
	ScanLanes bool               // the store is to be asked which lanes there are
}

// LaneLoad is a page of a lane to read.
type LaneLoad struct {
	Lane  *Lane
	Query store.WindowQuery
}

// NewShard returns a Shard that nobody owns yet.
func NewShard(c Config, w Wheel) *Shard {
	return &Shard{
		cfg:    c,
		window: window{Wheel: c.Wheel, Ready: c.Ready, Spare: store.Millis(c.Spare.Milliseconds())},
		lanes:  lanes{Wheel: c.Wheel, Ready: c.Ready},
		orders: orderKeys{Most: c.Ready},
		out:    make(map[string]struct{}),
		wheel:  w,
	}
}

// Effects returns what is to be done and was not reset yet. The actor carries it out,
// then resets it.
func (s *Shard) Effects() *Effects { return &s.effects }

// Reset forgets effects that were carried out. The slices are used again, but not those
// in Ask.
func (e *Effects) Reset() {
	clear(e.Ask)
	clear(e.LoadLanes)
	*e = Effects{Ask: e.Ask[:0], LoadLanes: e.LoadLanes[:0]}
}

// TakeReady returns the tasks that became ready since it was last called, in order. They
// are the caller's.
func (s *Shard) TakeReady() []store.Entry {
	ready := s.ready
	s.ready = nil
	return ready
}

// Own begins ownership. Reread and Load follow.
func (s *Shard) Own() { s.owned = true }

// Lose ends ownership: everything is forgotten, and would be read again.
func (s *Shard) Lose() {
	s.owned = false
	s.Forget()
	s.Reread()
}

// Forget forgets the tasks that are known.
func (s *Shard) Forget() {
	clear(s.out)
	s.waiting, s.exact, s.ready = nil, nil, nil
	s.ahead.crowds = nil
	s.lanes.Clear()
	s.orders = orderKeys{Most: s.orders.Most}
	s.wheel.Clear()
}

// Empty reports whether no task is known.
func (s *Shard) Empty() bool { return s.wheel.Len()+len(s.out)+len(s.orders.ByKey) == 0 }

// WithTopic reports whether a task is ready, or being held.
func (s *Shard) WithTopic(id string) bool {
	_, known := s.out[id]
	return known
}

// AllWithTopic are the tasks that are ready or being held, in no order.
func (s *Shard) AllWithTopic() iter.Seq[string] { return maps.Keys(s.out) }

// ReadyLen is how many tasks are ready, those included that wait for another one of their
// ordering key.
func (s *Shard) ReadyLen() int { return len(s.out) + len(s.orders.Waiting) }

// Behind is how many tasks wait for another one of their ordering key.
func (s *Shard) Behind() int { return len(s.orders.Waiting) }

// Settle ends a step, which is what the actor does with one message.
func (s *Shard) Settle(now store.Millis) {
	s.settleOrders(now)
	s.insertWaiting()
	ready := len(s.out) - s.lanes.InReady
	if s.window.Hungry(s.wheel.Len()-s.lanes.InWheel, ready) || s.window.Owes(now, ready) {
		s.Load(now)
	}
	s.loadLanes(now)
}

// Pending learns that tasks are pending. Beyond the window the loader finds them.
func (s *Shard) Pending(now store.Millis, es ...store.Entry) {
	s.window.Advance(now.Add(s.cfg.Horizon))
	for _, e := range es {
		s.orders.Learned(e)
		if s.owned && s.covers(now, e) {
			s.keep(now, e)
		} else {
			s.window.Later(e.Due)
			s.unwait(e.ID)
		}
	}
}

// WerePending learns that tasks were pending, before calls of which is known what they did:
// they may have been changed since. So it makes no task later: one that is told of too early
// is asked for in vain, and one that is told of too late is late.
func (s *Shard) WerePending(now store.Millis, es ...store.Entry) {
	for _, e := range es {
		if !s.knownSooner(now, e) {
			s.Pending(now, e)
		}
	}
}

// knownSooner reports whether a task is known to be due before e says.
func (s *Shard) knownSooner(now store.Millis, e store.Entry) bool {
	s.insertWaiting()
	due, there := s.wheel.Due(e.ID)
	return there && due < e.Due || s.orders.Waiting[e.ID] != nil && e.Due > now
}

// Found learns of pending tasks that nothing in memory may know, wherever the window
// ends. After Lose it does not: a task in out would not become ready with the next claim.
func (s *Shard) Found(now store.Millis, es ...store.Entry) {
	if !s.owned {
		return
	}
	for _, e := range es {
		s.keep(now, e)
	}
}

// Removed learns that tasks were deleted.
func (s *Shard) Removed(ids []string) {
	for _, id := range ids {
		s.unwait(id)
		s.orders.Removed(id)
	}
}

// keep admits a task that may be in the wheel already, for another time.
func (s *Shard) keep(now store.Millis, e store.Entry) {
	switch {
	case s.WithTopic(e.ID):
		s.relane(now, e)
	case s.orders.Moved(e, now):
	case s.admit(now, e, s.ahead.most):
	case s.WithTopic(e.ID):
		s.unwheel(e.ID) // its traits are those of a ready task
	default:
		s.unwait(e.ID)
	}
}

// relane makes a ready task ready once more when it has other traits than before. Its
// first place in the ready queue stays and comes to nothing: a task is held once.
func (s *Shard) relane(now store.Millis, e store.Entry) {
	if s.lanes.Of(e.ID).Same(e.Traits) || e.Due > now+s.reach(e, s.ahead.most) {
		return
	}
	s.lanes.Put(e.ID, e.Traits, s.lanes.Lane(e.Traits, &s.window), true)
	s.ready = append(s.ready, e)
}

// admit puts a task where it belongs, and reports whether that is the wheel: else it is
// among the ready ones, or beyond the budgets. Ahead is how long before its due time it
// may be ready.
func (s *Shard) admit(now store.Millis, e store.Entry, ahead store.Millis) (waits bool) {
	if e.Due <= now && s.orders.MustWait(e) {
		return false
	}
	l, reached := s.lanes.Lane(e.Traits, &s.window), now+s.reach(e, ahead)
	if !s.fits(reached, e.Due, l) {
		return false
	}
	waits = e.Due > reached
	s.lanes.Put(e.ID, e.Traits, l, !waits)
	if waits {
		s.wait(e, s.tellExactly(e, ahead))
		return true
	}
	s.out[e.ID] = struct{}{}
	if e.Traits.Ordering() != "" {
		s.orders.Let(e)
	}
	s.ready = append(s.ready, e)
	return false
}

// fits reports whether there is room for a task of a lane; nil: of the zero one.
func (s *Shard) fits(now, due store.Millis, l *Lane) bool {
	if l != nil {
		return l.window.Fits(due, now, l.Wheel, l.Ready)
	}
	inWheel := s.wheel.Len() + len(s.waiting) + len(s.exact) - s.lanes.InWheel
	return s.window.Fits(due, now, inWheel, len(s.out)-s.lanes.InReady)
}

// unwait takes a task out of the wheel, and forgets its traits.
func (s *Shard) unwait(id string) {
	s.unwheel(id)
	s.lanes.Drop(id)
}

// unwheel takes a task out of the wheel alone.
func (s *Shard) unwheel(id string) {
	s.insertWaiting()
	s.wheel.Remove(id)
}

// insertWaiting puts what was gathered into the wheel.
func (s *Shard) insertWaiting() {
	if len(s.exact) > 0 {
		s.wheel.InsertExact(s.exact)
		clear(s.exact)
		s.exact = s.exact[:0]
	}
	if len(s.waiting) == 0 {
		return
	}
	s.wheel.InsertAll(s.waiting)
	s.expectCrowds(s.waiting)
	clear(s.waiting)
	if s.waiting = s.waiting[:0]; cap(s.waiting) > s.cfg.Page {
		s.waiting = nil
	}
}

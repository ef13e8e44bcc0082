package agenda

import (
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
//
// It is built in layers, each of which knows those below: ahead, memory, loader.
type Shard struct{ loader }

// Config is how much a Shard knows.
type Config struct {
	Horizon time.Duration // how far ahead of now the window reaches
	Wheel   int           // most tasks in the wheel
	Ready   int           // most ready ones, and most that wait for their ordering key
	Page    int           // most tasks of a page
	Spare   time.Duration // tasks due this soon are admitted above the wheel's budget
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
	s := &Shard{loader{page: c.Page, memory: memory{
		ahead:   ahead{slots: w},
		horizon: c.Horizon,
		window:  window{Wheel: c.Wheel, Ready: c.Ready, Spare: store.Millis(c.Spare.Milliseconds())},
		lanes:   lanes{Wheel: c.Wheel, Ready: c.Ready},
		orders:  orderKeys{Most: c.Ready},
		out:     make(map[string]struct{}),
	}}}
	s.wheel = stagedWheel{Wheel: w, ahead: &s.ahead, page: c.Page}
	s.lanes.around = &s.window
	return s
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

// Own begins ownership. Reread and Load follow.
func (s *Shard) Own() { s.owned = true }

// Lose ends ownership: everything is forgotten, and would be read again.
func (s *Shard) Lose() {
	s.owned = false
	s.Forget()
	s.Reread()
}

// Settle ends a step, which is what the actor does with one message.
func (s *Shard) Settle(now store.Millis) {
	s.settleOrders(now)
	s.wheel.insert()
	soon := s.window.Soon(now)
	was, all := s.lanes.shard, s.load()
	s.lanes.Soon, s.lanes.shard = soon, all
	if quarter := s.window.Ready / 4; was.ready > quarter && all.ready <= quarter && len(s.lanes.ByKey) > s.lanes.stored {
		s.lanes.Look() // of those inside, more may be read
	}
	if s.owed == store.MaxDue {
		s.lookAtLeftOut(soon)
	}
	if s.window.Wants(soon, s.lanes.shard, s.lanes.limited) {
		s.Load(now)
	}
	s.loadLanes(now)
}

// lookAtLeftOut has lanes read that left something out which is due soon, and has the wheel
// tell of what is due later.
func (s *Shard) lookAtLeftOut(soon store.Millis) {
	s.owed = 0
	s.lanes.Look()
	next := store.MaxDue
	for _, l := range s.lanes.ByKey {
		next = l.window.leftOut(soon, next)
	}
	if next = s.window.leftOut(soon, next); next < store.MaxDue {
		s.owe(next)
	}
}

// Pending learns that tasks are pending. Beyond the window the loader finds them.
func (s *Shard) Pending(now store.Millis, es ...store.Entry) {
	s.window.Advance(now.Add(s.horizon))
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
		delete(s.news, id)
		s.orders.Removed(id)
	}
}

// WereRemoved learns that tasks were deleted, before calls of which is known what they did: they
// may be there again. So it forgets none, and the hold finds out; of one with an ordering key, which
// may keep others from theirs, the store is asked.
func (s *Shard) WereRemoved(ids []string) {
	for _, id := range ids {
		s.orders.Doubt(id)
	}
}

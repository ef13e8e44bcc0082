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

// dueWheel are the timer queues of a shard's pending tasks and ordering keys, as its
// agenda uses them.
type dueWheel struct {
	s       *shard
	entries []timer.Entry // reused
}

// Len returns how many tasks are in the queue.
func (w *dueWheel) Len() int { return w.s.due.Len() }

// InsertAll puts tasks into the queue, or moves them there.
func (w *dueWheel) InsertAll(es []store.Entry) {
	for _, e := range es {
		w.entries = append(w.entries, timer.Entry{ID: e.ID, Due: int64(e.Due)})
	}
	w.s.due.InsertAll(w.entries)
	clear(w.entries)
	if w.entries = w.entries[:0]; cap(w.entries) > loadPage {
		w.entries = nil
	}
}

// Remove takes a task out of the queue.
func (w *dueWheel) Remove(id string) { w.s.due.Remove(id) }

// LookAt has an ordering key looked at.
func (w *dueWheel) LookAt(key string, when store.Millis) {
	if w.s.looks == nil {
		w.s.looks = w.s.newQueue(func(ms int64) { w.s.post(&orderLook{ms}) })
	}
	w.s.looks.Insert(key, int64(when))
}

// Clear empties the queues.
func (w *dueWheel) Clear() {
	w.s.due.Close()
	if w.s.looks != nil {
		w.s.looks.Close()
		w.s.looks = nil
	}
	w.s.due = w.s.newQueue(func(ms int64) { w.s.post(&slotDue{ms}) })
}

// onSlot makes the tasks of a millisecond ready.
func (s *shard) onSlot(ms int64) {
	s.tooEarly(ms)
	taken := s.due.Take(ms)
	es := make([]store.Entry, len(taken))
	for i, e := range taken {
		es[i] = store.Entry{ID: e.ID, Due: store.Millis(e.Due)}
	}
	s.tasks.Due(s.now(), es)
}

// carryOut starts what the agenda asks for.
func (s *shard) carryOut() {
	e := s.tasks.Effects()
	for _, keys := range e.Ask {
		s.askOrders(keys)
	}
	if e.Load != nil {
		query := *e.Load
		s.calls.Run(func(ctx context.Context) {
			s.done(&windowLoaded{s.read(ctx, query)})
		})
	}
	for _, l := range e.LoadLanes {
		s.calls.Run(func(ctx context.Context) {
			s.done(&laneLoaded{l.Lane, s.read(ctx, l.Query)})
		})
	}
	if e.ScanLanes {
		s.scanLanes()
	}
	e.Reset()
}

// load reads the next page of pending tasks into the window.
func (s *shard) load() {
	s.tasks.Load(s.now())
	s.carryOut()
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

func (s *shard) onLoaded(m *windowLoaded) {
	if m.err != nil {
		s.notLoaded(s.tasks.NotLoaded(), m.err)
		return
	}
	if s.claim.Owned() {
		s.followClock()
	}
	s.countLoaded(s.tasks.Loaded(s.now(), m.entries, m.more), &m.loaded)
	s.carryOut()
}

func (s *shard) onLaneLoaded(m *laneLoaded) {
	if m.err != nil {
		s.notLoaded(s.tasks.LaneNotLoaded(m.lane), m.err)
		return
	}
	s.countLoaded(s.tasks.LaneLoaded(s.now(), m.lane, m.entries, m.more), &m.loaded)
}

func (s *shard) countLoaded(counts bool, p *loaded) {
	if counts {
		s.metrics.loaded.Add(float64(len(p.entries)))
	}
}

// notLoaded acts on a page that could not be read, unless it does not matter any more.
func (s *shard) notLoaded(matters bool, err error) {
	if matters {
		s.noteError(err)
		s.reloadLater(math.MaxInt64)
	}
}

// reloadLater has what is due at from or later read again once a failing store may have come
// back. At most one such reading is pending.
func (s *shard) reloadLater(from store.Millis) {
	if s.reloadFrom != nil {
		*s.reloadFrom = min(*s.reloadFrom, from)
		return
	}
	s.reloadFrom = &from
	s.calls.Run(func(ctx context.Context) {
		sleep(ctx, storeRetry)
		s.post(&reload{})
	})
}

// reload does what later was asked for.
func (s *shard) reload() {
	if s.reloadFrom == nil { // it was asked of an earlier incarnation
		return
	}
	s.tasks.Lower(*s.reloadFrom)
	s.reloadFrom = nil
	s.tasks.Refresh(s.now())
	s.carryOut()
}

// refresh goes on with the window, and looks for lanes behind a backlog.
func (s *shard) refresh() {
	s.tasks.Refresh(s.now())
	s.tasks.ScanBehind()
	s.carryOut()
}

package agenda

import (
	"math"

	"github.com/ddq-io/ddq/store"
)

// Load begins the next page of the window, unless one is being read or all is known.
func (s *Shard) Load(now store.Millis) {
	if !s.owned {
		return
	}
	if query, ok := s.window.Begin(now.Add(s.cfg.Horizon), s.cfg.Page); ok {
		s.effects.Load = &query
	}
}

// Loaded learns a page of the window, and whether more follow, and reports whether it
// counts: one that was read before the shard was lost does not, as whoever claims it next
// starts anew.
func (s *Shard) Loaded(now store.Millis, page []store.Entry, more bool) bool {
	if !s.owned {
		s.window.Abort()
		return false
	}
	if s.window.peeking {
		s.peeked(page)
		return false
	}
	s.admitPage(now, &s.window, page, more)
	switch {
	case s.window.Full:
		s.ScanLanes()
	case more:
		s.Load(now)
	case len(page) == 0 && s.Empty():
		s.peek()
	}
	return true
}

// peek has the first task behind the window looked up: until it comes near, there is
// nothing to read.
func (s *Shard) peek() {
	if query, ok := s.window.Peek(); ok {
		s.effects.Load = &query
	}
}

func (s *Shard) peeked(page []store.Entry) {
	if len(page) == 0 {
		s.window.Peeked(nil)
		return
	}
	s.window.Peeked(&page[0])
}

// Doubt learns that tasks may be pending of which nobody told. The window is read on as if
// nothing was known of what lies behind it.
func (s *Shard) Doubt() { s.window.Doubt() }

// Doze reports whether no task is known and the store has none for the shard to read, as far
// as is known, and until when.
func (s *Shard) Doze() (until store.Millis, dozes bool) {
	if !s.owned || s.window.loading || s.window.Full || !s.Empty() || len(s.lanes.ByKey) > 0 || s.lanes.Scanning {
		return 0, false
	}
	return s.window.Clear.Add(-s.cfg.Horizon), s.window.Clear > s.window.Mark.Due
}

// NotLoaded learns that a page of the window could not be read, and reports whether it
// is to be read later.
func (s *Shard) NotLoaded() bool {
	s.window.Abort()
	return s.owned
}

func (s *Shard) admitPage(now store.Millis, w *window, page []store.Entry, more bool) {
	var last store.Entry
	if more {
		last = page[len(page)-1]
	}
	w.End(last, more)
	for _, e := range page {
		s.keep(now, e)
	}
}

// Lower has what is due at from or later read again.
func (s *Shard) Lower(from store.Millis) {
	s.lanes.Lower(from, s.window.Full)
	s.window.Lower(from)
}

// Reread has everything read again.
func (s *Shard) Reread() {
	s.lanes.Lower(math.MinInt64, s.window.Full)
	s.window.Reset()
}

// Refresh goes on with the window and the lanes. Tasks left out may fit by now, and a
// lane of which nothing is in memory has no task that could go and have it read.
func (s *Shard) Refresh(now store.Millis) {
	s.Load(now)
	s.lanes.Look()
}

// covers reports whether a task that became pending must be kept. A lane that is not
// known is read, if the window stopped before the task.
func (s *Shard) covers(now store.Millis, e store.Entry) bool {
	key := e.Traits.Lane()
	l := s.lanes.ByKey[key]
	switch {
	case key == store.Lane{}, l == nil && (!s.window.Full || e.Due > now.Add(s.cfg.Horizon)):
		return s.window.Covers(e.Due)
	case l == nil:
		l = s.lanes.Open(key, &s.window)
	}
	return !l.window.Full && s.window.Covers(e.Due) || l.window.Covers(e.Due)
}

// loadLanes begins pages of lanes that have room for more of their tasks.
func (s *Shard) loadLanes(now store.Millis) {
	for next := s.lanes.TakeStarving(); len(next) > 0; next = s.lanes.TakeStarving() {
		for _, l := range next {
			s.loadLane(now, l)
		}
	}
}

func (s *Shard) loadLane(now store.Millis, l *Lane) {
	query, ok := l.window.Begin(now.Add(s.cfg.Horizon), min(s.cfg.Page, max(LeastOfLane, l.window.Ready)))
	if !ok {
		l.window.Full = false
		return
	}
	query.Lane = &l.Key
	s.lanes.Loading++
	s.effects.LoadLanes = append(s.effects.LoadLanes, LaneLoad{l, query})
}

// LaneLoaded learns a page of a lane, and whether more follow, and reports whether it
// counts.
func (s *Shard) LaneLoaded(now store.Millis, l *Lane, page []store.Entry, more bool) bool {
	s.lanes.Loading--
	if l.Closed || !s.owned {
		return false
	}
	l.window.Full = l.window.Full || more
	s.admitPage(now, &l.window, page, more)
	s.lanes.Tidy(l)
	return true
}

// LaneNotLoaded learns that a page of a lane could not be read, and reports whether it
// is to be read later.
func (s *Shard) LaneNotLoaded(l *Lane) bool {
	s.lanes.Loading--
	if l.Closed || !s.owned {
		return false
	}
	l.window.Full = true
	l.window.Abort()
	return true
}

// ScanBehind asks which lanes there are if the window stopped at a backlog.
func (s *Shard) ScanBehind() {
	if s.window.Full {
		s.ScanLanes()
	}
}

// ScanLanes asks which lanes there are beyond the window: of these nobody told, or it
// was when this node did not own the shard.
func (s *Shard) ScanLanes() {
	if s.lanes.Scanning || !s.owned {
		return
	}
	s.lanes.Scanning, s.effects.ScanLanes = true, true
}

// LanesFound learns which lanes there are, and has those read that have tasks due soon.
func (s *Shard) LanesFound(now store.Millis, heads []store.LaneHead) {
	s.lanes.Scanning = false
	if !s.owned || !s.window.Full {
		return
	}
	goal := now.Add(s.cfg.Horizon)
	for _, h := range heads {
		if h.Due > goal {
			continue
		}
		l := s.lanes.Open(h.Lane, &s.window)
		if l.window.Mark.Due <= goal {
			l.window.Full = true
		}
		s.lanes.Starve(l)
	}
}

// LanesNotFound learns that the store did not say which lanes there are, and reports
// whether it is to be asked again.
func (s *Shard) LanesNotFound() bool {
	s.lanes.Scanning = false
	return s.owned && s.window.Full
}

package agenda

import (
	"math"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// loader reads the window and the lanes, a page at a time, and has what it finds kept in
// memory.
type loader struct {
	memory
	page    int // most tasks of one
	effects Effects
}

// Load begins the next page of the window, unless one is being read or all is known.
func (l *loader) Load(now store.Millis) {
	if !l.owned {
		return
	}
	if query, ok := l.window.Begin(now.Add(l.horizon), l.page); ok {
		l.effects.Load = &query
	}
}

// Loaded learns a page of the window, and whether more follow, and reports whether it
// counts: one that was read before the shard was lost does not, as whoever claims it next
// starts anew.
func (l *loader) Loaded(now store.Millis, page []store.Entry, more bool) bool {
	if !l.owned {
		l.window.Abort()
		return false
	}
	if l.window.peeking {
		l.peeked(page)
		return false
	}
	l.admitPage(now, &l.window, page, more)
	switch {
	case l.window.Full:
		l.ScanLanes()
	case more:
		l.Load(now)
	case len(page) == 0 && l.Empty():
		l.peek()
	}
	return true
}

// peek has the first task behind the window looked up: until it comes near, there is
// nothing to read.
func (l *loader) peek() {
	if query, ok := l.window.Peek(); ok {
		l.effects.Load = &query
	}
}

func (l *loader) peeked(page []store.Entry) {
	if len(page) == 0 {
		l.window.Peeked(nil)
		return
	}
	l.window.Peeked(&page[0])
}

// Doubt learns that tasks may be pending of which nobody told. The window is read on as if
// nothing was known of what lies behind it.
func (l *loader) Doubt() { l.window.Doubt() }

// Unheard learns that the store has made calls of which nobody has told yet. It doubts, and
// reads at once where nobody has looked for long: what they made pending may be due soon.
func (l *loader) Unheard(now store.Millis) {
	if l.Doubt(); l.window.Mark.Due <= now.Add(l.horizon/2) {
		l.Load(now)
	}
}

// Doze reports whether no task is known and the store has none for the shard to read, as far
// as is known, and until when.
func (l *loader) Doze() (until store.Millis, dozes bool) {
	if !l.owned || l.window.loading || l.window.Full || !l.Empty() || len(l.lanes.ByKey) > 0 || l.lanes.Scanning {
		return 0, false
	}
	return l.window.Clear.Add(-l.horizon), l.window.Clear > l.window.Mark.Due
}

// NotLoaded learns that a page of the window could not be read, and reports whether it
// is to be read later.
func (l *loader) NotLoaded() bool {
	l.window.Abort()
	return l.owned
}

func (l *loader) admitPage(now store.Millis, w *window, page []store.Entry, more bool) {
	w.end(page, more)
	// What is known to be due sooner may have been moved since the page was read.
	page = slices.DeleteFunc(page, func(e store.Entry) bool { return l.knownSooner(now, e) })
	for _, e := range page {
		l.keep(now, e)
	}
}

// Lower has what is due at from or later read again.
func (l *loader) Lower(from store.Millis) {
	l.lanes.Lower(from, l.window.Full)
	l.window.Lower(from)
}

// Reread has everything read again.
func (l *loader) Reread() {
	l.lanes.Lower(math.MinInt64, l.window.Full)
	l.window.Reset()
}

// LimitKeys sets to which keys of tasks the topic has limits, and reports whether that changed:
// then everything has to be read again, as lanes are others.
func (l *loader) LimitKeys(rate, cap bool) (changed bool) {
	was := l.lanes.limits
	l.lanes.limits = limitsApplied{rate, cap}
	return was != l.lanes.limits
}

// Refresh goes on with the window and the lanes. Tasks left out may fit by now, and a
// lane of which nothing is in memory has no task that could go and have it read.
func (l *loader) Refresh(now store.Millis) {
	l.Load(now)
	l.lanes.Look()
}

// loadLanes begins pages of lanes that have room for more of their tasks.
func (l *loader) loadLanes(now store.Millis) {
	for next := l.lanes.TakeStarving(); len(next) > 0; next = l.lanes.TakeStarving() {
		for _, lane := range next {
			l.loadLane(now, lane)
		}
	}
}

func (l *loader) loadLane(now store.Millis, lane *Lane) {
	query, ok := lane.window.Begin(now.Add(l.horizon), min(l.page, max(LeastOfLane, lane.window.Ready)))
	if !ok {
		lane.window.Full = false
		return
	}
	if lane.Limited() {
		// Most of it may be of others. A lane that finds little doubles its share, and so the next page.
		query.Limit = min(l.page, max(LeastOfLane, 4*lane.window.Ready))
		lane.window.Ready = max(lane.window.Ready, min(2*lane.window.Ready, l.page, l.lanes.Ready/4))
	}
	if lane.Key.Lane != (store.Lane{}) {
		query.Lane = &lane.Key.Lane
	}
	lane.after = query.After
	l.lanes.Loading++
	l.effects.LoadLanes = append(l.effects.LoadLanes, LaneLoad{lane, query})
}

// LaneLoaded learns a page of a lane, and whether more follow, and reports whether it
// counts.
func (l *loader) LaneLoaded(now store.Millis, lane *Lane, page []store.Entry, more bool) bool {
	l.lanes.Loading--
	if lane.Closed || !l.owned {
		return false
	}
	lane.window.Full = lane.window.Full || more
	if lane.Limited() {
		l.admitInside(now, lane, page, more)
	} else {
		l.admitPage(now, &lane.window, page, more)
	}
	l.lanes.Tidy(lane)
	return true
}

// admitInside takes in the tasks of a lane from a page of the window around it, and on the
// way those of other lanes there that have left some out.
func (l *loader) admitInside(now store.Millis, lane *Lane, page []store.Entry, more bool) {
	lane.window.end(page, more)
	defer func() { l.reading = nil }()
	var stopped []*Lane // of those passed by, where one did not fit: what comes later must not move their marks
	for _, e := range page {
		of := l.lanes.ByKey[l.lanes.key(e.Traits)]
		if l.reading = of; of == lane {
			if !l.knownSooner(now, e) {
				l.keep(now, e)
			}
		} else if of.Limited() && of.within == lane.within && !slices.Contains(stopped, of) && !l.passBy(now, of, lane.after, e) {
			stopped = append(stopped, of)
		}
	}
}

// passBy takes in a task of a lane that was left out there, from a page that was read for
// another one and begins at after: where lanes have tasks among each other, each would read
// those of all. All of its tasks between its mark and this one were on the page before. It reports
// whether the lane may have more of the page.
func (l *loader) passBy(now store.Millis, lane *Lane, after, e store.Entry) bool {
	mark := lane.window.Mark
	if !lane.window.Full || lane.window.loading || after.Due >= mark.Due {
		return false
	}
	if e.Due < mark.Due {
		return true
	}
	if !l.knownSooner(now, e) {
		l.keep(now, e)
	}
	_, waits := l.wheel.Due(e.ID)
	if lane.window.Mark != mark || !waits && !l.WithTopic(e.ID) && l.orders.Waiting[e.ID] == nil {
		return false
	}
	lane.window.Mark = e
	return true
}

// LaneNotLoaded learns that a page of a lane could not be read, and reports whether it
// is to be read later.
func (l *loader) LaneNotLoaded(lane *Lane) bool {
	l.lanes.Loading--
	if lane.Closed || !l.owned {
		return false
	}
	lane.window.Full = true
	lane.window.Abort()
	return true
}

// ScanBehind asks which lanes there are if the window stopped at a backlog.
func (l *loader) ScanBehind() {
	if l.window.Full {
		l.ScanLanes()
	}
}

// ScanLanes asks which lanes there are beyond the window: of these nobody told, or it
// was when this node did not own the shard.
func (l *loader) ScanLanes() {
	if l.lanes.Scanning || !l.owned {
		return
	}
	l.lanes.Scanning, l.effects.ScanLanes = true, true
}

// LanesFound learns which lanes there are, and has those read that have tasks due soon.
func (l *loader) LanesFound(now store.Millis, heads []store.LaneHead) {
	l.lanes.Scanning = false
	if !l.owned || !l.window.Full {
		return
	}
	goal := now.Add(l.horizon)
	for _, h := range heads {
		if h.Due > goal {
			continue
		}
		lane := l.lanes.Open(laneKey{Lane: h.Lane}, &l.window)
		if lane.window.Mark.Due <= goal {
			lane.window.Full = true
		}
		l.lanes.Starve(lane)
	}
}

// LanesNotFound learns that the store did not say which lanes there are, and reports
// whether it is to be asked again.
func (l *loader) LanesNotFound() bool {
	l.lanes.Scanning = false
	return l.owned && l.window.Full
}

package limit

import (
	"maps"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// line is the nodes that lack something of one limit, and whose turn it is. The zero line is empty.
type line struct {
	places []place        // the first in turn first
	turn   time.Time      // since when something is there for the first; zero: nothing is
	began  time.Time      // of the time that got is about
	got    map[string]int // by name: of what was given while others were in line
	aside  []aside        // tokens of nodes in line, that callers' tokens come behind; by moment
}

// place is that of a node, or of a topic at a node.
type place struct {
	name string
	seen time.Time // when it was refused last
}

// aside is a token of a rate for the line.
type aside struct {
	at   int64 // its moment, microseconds
	slot int64 // of a window: the end of its slot
}

// forget drops those that did not ask again in time, and what was written down by a clock that was set back since: its
// moments are to come.
func (l *line) forget(now time.Time) {
	l.places = slices.DeleteFunc(l.places, func(p place) bool { return p.seen.After(now) || now.Sub(p.seen) >= store.WaitLife })
	if l.turn.After(now) {
		l.turn = time.Time{}
	}
	if l.began.After(now) {
		l.began, l.got = time.Time{}, nil
	}
}

// place is the index of a name, or -1.
func (l *line) place(name string) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.name == name })
}

// before is how many are before a name, which may have no place.
func (l *line) before(name string) int {
	if i := l.place(name); i >= 0 {
		return i
	}
	return len(l.places)
}

// join gives a name the last place.
func (l *line) join(name string, now time.Time) { l.places = append(l.places, place{name, now}) }

// leave ends the place of a name, and reports whether it had one.
func (l *line) leave(name string) bool {
	i := l.place(name)
	if i >= 0 {
		l.places = slices.Delete(l.places, i, i+1)
	}
	return i >= 0
}

// idle reports whether there is nothing to know of it.
func (l *line) idle() bool { return len(l.places)+len(l.aside) == 0 }

// lapse forgets tokens that were set aside and not taken in their time. Those of a window go back; it reports whether
// there were any.
func (l *line) lapse(r store.Rate, s *State, now int64) (back bool) {
	for len(l.aside) > 0 && l.aside[0].before(r) <= now {
		if r.Kind == store.SlidingWindow {
			back = s.back(store.TokenMark{Kind: r.Kind, To: l.aside[0].slot}, r, now) || back
		}
		l.aside = l.aside[1:]
	}
	return back
}

// setAside takes a token of a rate for each that is in line and has none.
func (l *line) setAside(s *State, q store.Reservation, now time.Time) {
	n := len(l.places) - len(l.aside)
	if n <= 0 {
		return
	}
	got := s.Reserve(store.Reservation{Rate: q.Rate, N: n, Ahead: q.Ahead, Life: q.Life}, now)
	for i := range got.N {
		a := aside{at: got.At(i, q.Rate).UnixMicro()}
		if q.Rate.Kind == store.SlidingWindow {
			a.slot = s.Used[len(s.Used)-1].End
		}
		l.aside = append(l.aside, a)
	}
}

// before is when a token ends.
func (a aside) before(r store.Rate) int64 {
	if r.Kind == store.SlidingWindow {
		return a.slot
	}
	return r.Before(time.UnixMicro(a.at)).UnixMicro()
}

func (l *line) clone() line {
	c := *l
	c.places, c.got, c.aside = slices.Clone(l.places), maps.Clone(l.got), slices.Clone(l.aside)
	return c
}

// view is a line as one step sees it for one name: how much of what is there the name may have.
type view struct {
	*line
	limit   store.Limit
	name    string
	there   int
	place   int // how many are before it
	others  int // in line
	passed  int // turns
	share   int // that it may still take in this step
	took    int
	asked   bool // a want needed it
	refused bool // a want lacked it
	tell    bool // others are told although they know when to ask
}

// noShare is the share of one that is alone.
const noShare = 1 << 30

// open looks at the line. Something may be there.
func (v *view) open(now time.Time) {
	v.forget(now)
	v.place, v.others = v.before(v.name), len(v.places)
	if v.place < len(v.places) {
		v.others--
	}
	if len(v.places) == 0 {
		v.began, v.got = time.Time{}, nil
	}
	switch {
	case v.there <= 0 || len(v.places) == 0:
		v.turn = time.Time{}
	case v.turn.IsZero():
		v.turn = now
	}
	if !v.turn.IsZero() {
		v.passed = int(now.Sub(v.turn) / store.LineTurn)
	}
	if now.Sub(v.began) > store.SharePeriod {
		v.began, v.got = now, nil
	}
	v.share = noShare
	if v.others > 0 && v.passed < 2 {
		all := v.there + v.got[v.name]
		for _, p := range v.places {
			if p.name != v.name {
				all += v.got[p.name]
			}
		}
		v.share = (all+v.others)/(v.others+1) - v.got[v.name]
	}
}

// has reports whether the name may have one more. Each of those before it has one kept for it: for a turn those, for one
// more all but the first of them, then nobody.
func (v *view) has() bool {
	kept := 0
	if v.passed < 2 {
		kept = max(0, v.place-v.passed)
	}
	return v.there > kept && v.share > 0
}

// take gives the name one. It is behind the others then, and the first of them has a turn.
func (v *view) take() {
	v.there--
	v.share--
	v.took++
	v.place, v.passed = v.others, 0
}

// close gives the name its place, and returns whom to tell.
func (v *view) close(now time.Time, topic string, notices []store.Notice) []store.Notice {
	switch i := v.line.place(v.name); {
	case v.refused && v.took > 0:
		v.leave(v.name)
		v.join(v.name, now)
	case v.refused && i >= 0:
		v.places[i].seen = now
	case v.refused:
		v.join(v.name, now)
	case v.asked && i >= 0:
		v.leave(v.name)
		v.turn = time.Time{}
		v.tell = v.tell || v.took == 0
	}
	if v.took > 0 || v.there <= 0 || len(v.places) == 0 {
		v.turn = time.Time{}
	}
	if len(v.places) == 0 {
		v.began, v.got = time.Time{}, nil
	}
	if v.there > 0 && len(v.places) > 0 && v.turn.IsZero() {
		v.turn = now
	}
	if v.took > 0 && v.others > 0 && len(v.places) > 0 {
		if v.got == nil {
			v.got = make(map[string]int)
		}
		v.got[v.name] += v.took
	}
	if v.there <= 0 || v.limit.Rate && !v.tell {
		return notices
	}
	for i, p := range v.places {
		if p.name != v.name {
			n := store.Notice{Limit: v.limit, After: time.Duration(min(2, max(0, i+1-v.there))) * store.LineTurn}
			n.Node, n.Topic = store.FromLine(p.name, topic)
			notices = append(notices, n)
		}
	}
	return notices
}

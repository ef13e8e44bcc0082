package audience

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Phase is where a walk is in its life.
type Phase uint8

const (
	Walking Phase = iota + 1
	Undoing       // cancelled: what is pending is taken back
	Waiting       // all tasks are made; not all have ended
	Over
)

// Walk is the way of a run through one shard of an audience, in the order of places. All
// that was made lies before it, and nothing behind.
type Walk struct {
	RunKey
	Shard  int // of the audience
	Shards int
	Taker
	Spread
	Local   bool // the occurrence is a wall time, and comes in each zone at its own instant
	Tracked bool // the ends of tasks are told

	Phase  Phase
	Began  int64   // the version of the directory; 0: it has not begun
	Tracks []Track // one for all recipients; Local: one for each zone

	Verdicts [verdicts]int64 // recipients by what became of them
	Ended    int64           // tasks that ended for good, and were told
}

// Track is how far a walk has come with some of the recipients.
type Track struct {
	Zone  string       // whose they are; empty: all
	Begin store.Millis // when the first place is
	Next  Position     // turned: who stands before it is done
	Bound Position     // of Undoing: what was made lies before it; 0 for all there are
	Done  bool
}

// Zones finds zones by name; nil when there is none.
type Zones func(name string) *time.Location

// Begin sets a walk off that began at a version of the shard, or of later.
func (w *Walk) Begin(version int64, dir *Directory, zones Zones) {
	w.Phase, w.Began = Walking, version
	if !w.Local {
		w.Tracks = []Track{{Begin: w.At}}
		return
	}
	for _, z := range dir.Zones {
		zone := zones(z.Name)
		if zone == nil {
			zone = time.UTC
		}
		at, there := timetable.Instant(w.At.Time(), zone)
		if !there {
			w.Verdicts[NoTime] += z.Recipients
			continue
		}
		w.Tracks = append(w.Tracks, Track{Zone: z.Name, Begin: store.Millis(at.UnixMilli())})
	}
}

// Pace is how a walk goes.
type Pace struct {
	Lead  time.Duration // how far ahead of their places tasks are made
	Batch int           // about how many recipients a step looks at
}

// Stretch is what a step of a walk looks at next.
type Stretch struct {
	track int
	from  Position // turned
	last  Position // turned; is part of it
}

// Next returns what the walk looks at now. Otherwise it says when there will be
// something, and 0 when there will be nothing more.
func (w *Walk) Next(dir *Directory, now store.Millis, pace Pace) (s Stretch, ok bool, wake store.Millis) {
	track := w.first()
	if track < 0 {
		return Stretch{}, false, 0
	}
	t := &w.Tracks[track]
	s = Stretch{track: track, from: t.Next, last: t.last(dir, pace.Batch)}
	if w.Phase == Undoing {
		return s, true, 0
	}
	if at := w.placeAt(t).Add(-pace.Lead); at > now {
		return Stretch{}, false, at
	}
	if end, bounded := w.until(now.Add(pace.Lead).Sub(t.Begin)); bounded {
		s.last = min(s.last, end-1)
	}
	return s, true, 0
}

// first is the track whose next place comes first; negative when all are done.
func (w *Walk) first() int {
	first := -1
	for i := range w.Tracks {
		t := &w.Tracks[i]
		if !t.Done && (first < 0 || w.placeAt(t) < w.placeAt(&w.Tracks[first])) {
			first = i
		}
	}
	return first
}

// placeAt is when the next place of a track is.
func (w *Walk) placeAt(t *Track) store.Millis { return t.Begin.Add(w.placeOf(t.Next)) }

// last is the turned position up to which there are about so many recipients.
func (t *Track) last(dir *Directory, batch int) Position {
	last := ^Position(0)
	if t.Bound > 0 {
		last = t.Bound - 1
	}
	n := uint64(0)
	for _, z := range dir.Zones {
		if t.Zone == "" || t.Zone == z.Name {
			n += uint64(z.Recipients)
		}
	}
	if n <= uint64(batch) {
		return last
	}
	width := Position(math.MaxUint64 / n * uint64(batch))
	if t.Next > last-min(width, last) {
		return last
	}
	return t.Next + width
}

// Leaves returns the leaves in which the recipients of a stretch lie.
func (w *Walk) Leaves(s Stretch, dir *Directory) (leaves []store.CellID) {
	first, last := s.from-w.Turn, s.last-w.Turn
	for _, z := range dir.Zones {
		if zone := w.Tracks[s.track].Zone; zone != "" && zone != z.Name {
			continue
		}
		for _, p := range z.around(first, last) {
			leaves = append(leaves, p.id(z.Name))
		}
	}
	return leaves
}

// around returns the leaves that have positions from one up to and including another,
// which may be on the other side of the end of the circle.
func (z *Zone) around(first, last Position) []prefix {
	if first <= last {
		return z.leaves.within(first, last)
	}
	start, end := z.leaves.within(0, last), z.leaves.within(first, ^Position(0))
	if start[len(start)-1] == end[0] { // both ends are in one leaf
		end = end[1:]
	}
	return slices.Concat(start, end)
}

// Order is a task that a step makes, or takes back.
type Order struct {
	ID        string // of the task
	Recipient *Recipient
	Due       store.Millis
}

// Take looks at the recipients of a stretch, which lie in the leaves, goes on behind
// them, and returns the tasks that are to be made; of Undoing, those that are to go.
func (w *Walk) Take(s Stretch, leaves []*Leaf, pace Pace, zones Zones) []Order {
	t := &w.Tracks[s.track]
	all := w.entries(s, leaves)
	t.Next, t.Done = s.last+1, s.last == ^Position(0) || t.Bound > 0 && s.last == t.Bound-1
	if cut := w.cut(all, pace.Batch); cut < len(all) {
		t.Next, t.Done = w.turned(all[cut].At), false
		all = all[:cut]
	}
	var orders []Order
	for _, e := range all {
		if w.Phase == Undoing {
			orders = append(orders, Order{ID: w.ID(w.Shard, e.ID), Recipient: &e.Recipient})
			continue
		}
		if o, ok := w.order(t, e, zones); ok {
			orders = append(orders, o)
		}
	}
	return orders
}

// entries are those of a stretch that count for the run, in the order of the walk.
func (w *Walk) entries(s Stretch, leaves []*Leaf) (all []*Entry) {
	for _, l := range leaves {
		for i := range l.Entries {
			e := &l.Entries[i]
			if p := w.turned(e.At); s.from <= p && p <= s.last && e.counts(w.Began) {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return cmp.Compare(w.turned(a.At), w.turned(b.At)) })
	return all
}

// cut is how many of the entries a step takes: those of one position together.
func (w *Walk) cut(all []*Entry, batch int) int {
	cut := min(batch, len(all))
	for 0 < cut && cut < len(all) && all[cut].At == all[cut-1].At {
		cut++
	}
	return cut
}

// order is the task of a recipient, if it gets one.
func (w *Walk) order(t *Track, e *Entry, zones Zones) (Order, bool) {
	zone := zones(e.Zone)
	if zone == nil {
		zone = time.UTC
	}
	verdict, due := w.Judge(&e.Preferences, t.Begin.Add(w.Place(e.At)), zone)
	w.Verdicts[verdict]++
	if verdict != Taken && verdict != Deferred {
		return Order{}, false
	}
	return Order{ID: w.ID(w.Shard, e.ID), Recipient: &e.Recipient, Due: due}, true
}

// Made is how many tasks the walk has made.
func (w *Walk) Made() int64 { return w.Verdicts[Taken] + w.Verdicts[Deferred] }

// Settle says whether the walk is over: all is made, and, if they are told, all has ended.
func (w *Walk) Settle() bool {
	if w.Phase == Over || w.first() >= 0 || w.Began == 0 {
		return w.Phase == Over
	}
	if w.Phase = Waiting; !w.Tracked || w.Ended >= w.Made() {
		w.Phase = Over
	}
	return w.Phase == Over
}

// Cancel ends a walk before its end. With undo, what it made and is pending is taken back.
func (w *Walk) Cancel(undo bool) {
	switch {
	case w.Phase == Undoing || w.Phase == Over:
		return
	case w.Began == 0:
		w.Phase = Over
		return
	case undo:
		w.Phase = Undoing
	}
	for i := range w.Tracks {
		w.Tracks[i].end(undo)
	}
}

// end makes nothing more; with undo the track begins again, for what was made.
func (t *Track) end(undo bool) {
	made := t.Done || t.Next > 0
	if t.Bound = t.Next; t.Done {
		t.Bound = 0
	}
	t.Next, t.Done = 0, !undo || !made
}

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
	Ordered Phase = iota // it has not begun
	Walking
	Undoing // cancelled: what is pending is taken back
	Waiting // all tasks are made; not all have ended
	Over
)

// Walk is the way of a run through an audience: through each of its shards, in the order of
// places. All that was made lies before it, and nothing behind.
type Walk struct {
	Order
	Phase     Phase
	Cancelled bool
	Life      uint64 // of the audience
	Paths     []Path // one for each shard of the audience

	Taker
	Verdicts [verdicts]int64 // recipients by what became of them
	Ends     [3]int64        // of tasks that told it: done, failed, removed
	Taken    int64           // number of the last parcel that was taken
}

// Order is what a schedule asks for: one task for each recipient.
type Order struct {
	Run        string       // its id, which is that of the walk
	Schedule   string       // whose run it is: all tasks lie in its shard
	At         store.Millis // when the first place is
	Occurrence store.Millis // that it is a run of
	Audience   string
	Kind       string // empty: all recipients get it
	Quiet      QuietPolicy
	Spread
	SpreadFrom int64 // fewer recipients go at once
	Rotate     bool  // another one is the first in each run
	Local      bool  // the occurrence is a wall time, and comes in each zone at its own instant
	Tracked    bool  // the ends of tasks are told
}

// Path is how far a walk has come in one shard.
type Path struct {
	Began  int64   // the version of the directory; 0: it has not begun
	Tracks []Track // one for all recipients; Local: one for each zone
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

// Begin sets a walk off through an audience. The kind is one that the audience has, or
// none. Recipients is how many there are.
func (w *Walk) Begin(a *Audience, kind Kind, recipients int64) {
	w.Phase, w.Life = Walking, a.Life
	w.Taker = Taker{Kind: kind, Quiet: w.Order.Quiet}
	if w.Rotate {
		w.Turn = rotation(w.Run)
	}
	if recipients < w.SpreadFrom {
		w.Window = 0
	}
	w.Paths = make([]Path, a.Shards)
}

// BeginShard sets it off through a shard, where it began at a version of the directory, or at
// an earlier one.
func (w *Walk) BeginShard(n int, version int64, dir *Directory, zones Zones) {
	p := &w.Paths[n]
	p.Began = version
	if !w.Local {
		p.Tracks = []Track{{Begin: w.At}}
		return
	}
	for _, z := range dir.Zones {
		at, there := timetable.Instant(w.At.Time(), zones.orUTC(z.Name))
		if !there {
			w.Verdicts[NoTime] += z.Recipients
			continue
		}
		p.Tracks = append(p.Tracks, Track{Zone: z.Name, Begin: store.Millis(at.UnixMilli())})
	}
}

// orUTC is a zone, and UTC for one that this node does not know.
func (z Zones) orUTC(name string) *time.Location {
	if zone := z(name); zone != nil {
		return zone
	}
	return time.UTC
}

// Pace is how a walk goes.
type Pace struct {
	Lead  time.Duration // how far ahead of their places tasks are made
	Batch int           // about how many recipients a step looks at
}

// Stretch is what a step of a walk looks at.
type Stretch struct {
	Shard int
	track int
	from  Position // turned
	last  Position // turned; is part of it
}

// Due returns the shard through which the walk goes on next, and when; false when it is at
// the end of all of them.
func (w *Walk) Due(pace Pace) (n int, at store.Millis, ok bool) {
	n, track := w.first()
	switch {
	case n < 0:
		return 0, 0, false
	case w.Phase == Undoing:
		return n, 0, true
	}
	return n, w.placeAt(&w.Paths[n].Tracks[track]).Add(-pace.Lead), true
}

// Next returns what the walk looks at next in the shard that is Due, with its directory.
func (w *Walk) Next(dir *Directory, now store.Millis, pace Pace) Stretch {
	n, track := w.first()
	t := &w.Paths[n].Tracks[track]
	s := Stretch{Shard: n, track: track, from: t.Next, last: t.last(dir, pace.Batch)}
	if w.Phase == Undoing {
		return s
	}
	if end, bounded := w.until(now.Add(pace.Lead).Sub(t.Begin)); bounded {
		s.last = min(s.last, end-1)
	}
	return s
}

// first is the track whose next place comes first; the shard is negative when all are done.
func (w *Walk) first() (shard, track int) {
	shard = -1
	var first store.Millis
	for n := range w.Paths {
		for i := range w.Paths[n].Tracks {
			t := &w.Paths[n].Tracks[i]
			if at := w.placeAt(t); !t.Done && (shard < 0 || at < first) {
				shard, track, first = n, i, at
			}
		}
	}
	return shard, track
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
		if zone := w.Paths[s.Shard].Tracks[s.track].Zone; zone != "" && zone != z.Name {
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

// Ticket is a task that a step makes, or takes back.
type Ticket struct {
	ID        string // of the task
	Recipient *Recipient
	Due       store.Millis
}

// Take looks at the recipients of a stretch, which lie in the leaves, goes on behind
// them, and returns the tasks that are to be made; of Undoing, those that are to go.
func (w *Walk) Take(s Stretch, leaves []*Leaf, pace Pace, zones Zones) []Ticket {
	t := &w.Paths[s.Shard].Tracks[s.track]
	all := w.entries(s, leaves)
	t.Next, t.Done = s.last+1, s.last == ^Position(0) || t.Bound > 0 && s.last == t.Bound-1
	if cut := w.cut(all, pace.Batch); cut < len(all) {
		t.Next, t.Done = w.turned(all[cut].At), false
		all = all[:cut]
	}
	var tickets []Ticket
	for _, e := range all {
		if w.Phase == Undoing {
			tickets = append(tickets, Ticket{ID: w.ID(e.ID), Recipient: &e.Recipient})
			continue
		}
		if o, ok := w.ticket(t, e, zones); ok {
			tickets = append(tickets, o)
		}
	}
	return tickets
}

// entries are those of a stretch that count for the run, in the order of the walk.
func (w *Walk) entries(s Stretch, leaves []*Leaf) (all []*Entry) {
	for _, l := range leaves {
		for i := range l.Entries {
			e := &l.Entries[i]
			if p := w.turned(e.At); s.from <= p && p <= s.last && e.counts(w.Paths[s.Shard].Began) {
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

// ticket is the task of a recipient, if it gets one.
func (w *Walk) ticket(t *Track, e *Entry, zones Zones) (Ticket, bool) {
	verdict, due := w.Judge(&e.Preferences, t.Begin.Add(w.Place(e.At)), zones.orUTC(e.Zone))
	w.Verdicts[verdict]++
	if verdict != Taken && verdict != Deferred {
		return Ticket{}, false
	}
	return Ticket{ID: w.ID(e.ID), Recipient: &e.Recipient, Due: due}, true
}

// Made is how many tasks the walk has made.
func (w *Walk) Made() int64 { return w.Verdicts[Taken] + w.Verdicts[Deferred] }

// Ended is how many of them have ended for good, and were told.
func (w *Walk) Ended() int64 { return w.Ends[0] + w.Ends[1] + w.Ends[2] }

// Settle says whether the walk is over: all is made, and, if they are told, all has ended.
func (w *Walk) Settle() bool {
	if w.Phase == Over || w.Phase == Ordered {
		return w.Phase == Over
	}
	if n, _ := w.first(); n >= 0 {
		return false
	}
	if w.Phase = Waiting; !w.Tracked || w.Ended() >= w.Made() {
		w.Phase = Over
	}
	return w.Phase == Over
}

// Cancel ends a walk before its end. With undo, what it made and is pending is taken back.
func (w *Walk) Cancel(undo bool) {
	switch {
	case w.Cancelled || w.Phase == Over:
		return
	case w.Phase == Ordered:
		w.Phase, w.Cancelled = Over, true
		return
	case undo:
		w.Phase = Undoing
	}
	w.Cancelled = true
	for n := range w.Paths {
		for i := range w.Paths[n].Tracks {
			w.Paths[n].Tracks[i].end(undo)
		}
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

package audience

import (
	"cmp"
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
	Undo      bool    // of one that is cancelled: what was made and is pending goes
	Planned   int64   // recipients when it began
	Life      uint64  // of the audience
	Paths     []Path  // one for each shard of the audience
	Starts    []Start // of a local run

	Taker
	Verdicts [Verdicts]int64 // recipients by what became of them
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
	Local      bool  // the occurrence is that of the first clock on earth, and comes in each zone when its clock shows the same
	Tracked    bool  // the ends of tasks are told
}

// Start is when the occurrence of a local run is in some zones.
type Start struct {
	At    store.Millis
	Zones []string
}

// Path is how far a walk has come in one shard.
type Path struct {
	Began  int64   // the version of the directory; 0: it has not begun
	Tracks []Track // one for all recipients; Local: one for each of the first of the Starts
}

// Track is how far a walk has come with some of the recipients.
type Track struct {
	Next  Position // turned: who stands before it is done
	Bound Position // of Undoing: what was made lies before it; 0 for all there are
	Done  bool
}

// Zones finds zones by name; nil when there is none.
type Zones func(name string) *time.Location

// Begin sets a walk off through an audience. The kind is one that the audience has, or
// none. Recipients is how many there are.
func (w *Walk) Begin(a *Audience, kind Kind, recipients int64) {
	w.Phase, w.Life, w.Planned = Walking, a.Life, recipients
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
		p.Tracks = []Track{{}}
		return
	}
	there := make(map[int]bool)
	wall := timetable.Wall(w.Occurrence.Time(), timetable.FirstZone)
	for _, z := range dir.Zones {
		at, exists := timetable.Instant(wall, zones.orUTC(z.Name))
		if !exists {
			w.Verdicts[NoTime] += z.Recipients
			continue
		}
		there[w.startOf(store.Millis(at.UnixMilli()), z.Name)] = true
	}
	p.Tracks = make([]Track, len(w.Starts))
	for i := range p.Tracks {
		p.Tracks[i].Done = !there[i]
	}
}

// startOf returns which of the Starts is at an instant. A zone is of it from then on.
func (w *Walk) startOf(at store.Millis, zone string) int {
	i := slices.IndexFunc(w.Starts, func(s Start) bool { return s.At == at })
	if i < 0 {
		i, w.Starts = len(w.Starts), append(w.Starts, Start{At: at})
	}
	if s := &w.Starts[i]; !slices.Contains(s.Zones, zone) {
		s.Zones = append(s.Zones, zone)
	}
	return i
}

// occurs is when the occurrence is for the recipients of a track, and begin when its first
// place is: no earlier than that of the run.
func (w *Walk) occurs(track int) store.Millis {
	if w.Local {
		return w.Starts[track].At
	}
	return w.Occurrence
}

func (w *Walk) begin(track int) store.Millis {
	if w.Local {
		return max(w.Starts[track].At, w.At)
	}
	return w.At
}

// walksIn reports whether the recipients of a zone are those of a track.
func (w *Walk) walksIn(track int, zone string) bool {
	return !w.Local || slices.Contains(w.Starts[track].Zones, zone)
}

// orUTC is a zone, and UTC for one that this node does not know.
func (z Zones) orUTC(name string) *time.Location {
	if zone := z(name); zone != nil {
		return zone
	}
	return time.UTC
}

// Leaves returns the leaves in which the recipients of a stretch lie.
func (w *Walk) Leaves(s Stretch, dir *Directory) (leaves []store.CellID) {
	first, last := s.from-w.Turn, s.last-w.Turn
	for _, z := range dir.Zones {
		if !w.walksIn(s.track, z.Name) {
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
	Occurs    store.Millis // when the occurrence is for the recipient
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
		if e.Left {
			continue
		}
		if o, ok := w.ticket(s.track, e, zones); ok {
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
func (w *Walk) ticket(track int, e *Entry, zones Zones) (Ticket, bool) {
	verdict, t := w.judge(track, e, zones)
	w.Verdicts[verdict]++
	return t, t.Due != 0
}

// judge says what becomes of a recipient, and which task it gets: one that is due at 0 is none.
func (w *Walk) judge(track int, e *Entry, zones Zones) (Verdict, Ticket) {
	verdict, due := w.Judge(&e.Preferences, w.begin(track).Add(w.Place(e.At)), zones.orUTC(e.Zone))
	if verdict != Taken && verdict != Deferred {
		return verdict, Ticket{}
	}
	return verdict, Ticket{ID: w.ID(e.ID), Recipient: &e.Recipient, Due: due, Occurs: w.occurs(track)}
}

// trackOf is the track of the recipients of a zone; false when they have none.
func (w *Walk) trackOf(zone string) (int, bool) {
	if !w.Local {
		return 0, true
	}
	i := slices.IndexFunc(w.Starts, func(s Start) bool { return slices.Contains(s.Zones, zone) })
	return i, i >= 0
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
	if _, ok := w.first(); ok {
		return false
	}
	if w.Phase = Waiting; !w.Tracked || w.Ended() >= w.Made() {
		w.Phase = Over
	}
	return w.Phase == Over
}

// Cancel ends a walk before its end: nothing more is made. With undo, what it made and is
// pending is taken back, also by a walk that was cancelled without.
func (w *Walk) Cancel(undo bool) {
	undo = undo && !w.Undo
	switch {
	case w.Phase == Over || w.Cancelled && !undo:
		return
	case w.Phase == Ordered:
		w.Phase, w.Cancelled = Over, true
		return
	case undo:
		w.Phase, w.Undo = Undoing, true
	}
	for n := range w.Paths {
		for i := range w.Paths[n].Tracks {
			w.Paths[n].Tracks[i].end(undo, w.Cancelled)
		}
	}
	w.Cancelled = true
}

// end makes nothing more; with undo the track begins again, for what was made. Of one that
// has ended before, Bound says what that is.
func (t *Track) end(undo, ended bool) {
	if ended {
		t.Done = false
		return
	}
	made := t.Done || t.Next > 0
	if t.Bound = t.Next; t.Done {
		t.Bound = 0
	}
	t.Next, t.Done = 0, !undo || !made
}

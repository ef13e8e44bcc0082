package audience

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Pace is how a walk goes.
type Pace struct {
	Lead   time.Duration // how far ahead of their places tasks are made at most
	Gather time.Duration // and how much less at least: the places of a step are gathered for so long
	Batch  int           // about how many recipients a step looks at

	// CatchUp is how far ahead of their places tasks are made of a shard that is late; 0: as
	// far as those of others.
	CatchUp time.Duration
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
	first, ok := w.first()
	if !ok || w.Phase == Undoing {
		return first.shard, 0, ok
	}
	return first.shard, first.place.Add(pace.Gather - pace.Lead), true
}

// Shards returns the shards through which a step goes: that which is Due, and others whose
// turn comes soon, in order of their next places. There are at most so many, and no more than
// it takes for a batch of recipients, about.
func (w *Walk) Shards(now store.Millis, pace Pace, most int) (shards []int) {
	var next []turn
	for n := range w.Paths {
		if t, ok := w.turnOf(n); ok && (w.Phase == Undoing || t.place <= now.Add(pace.Lead-pace.Gather/2)) {
			next = append(next, t)
		}
	}
	slices.SortStableFunc(next, func(a, b turn) int { return cmp.Compare(a.place, b.place) })
	expected := 0
	for _, t := range next {
		if len(shards) == most || expected >= pace.Batch {
			break
		}
		shards = append(shards, t.shard)
		expected += w.expected(t, now, pace)
	}
	return shards
}

// expected is about how many recipients the next stretch of a shard has, by how many there were
// when the run began.
func (w *Walk) expected(t turn, now store.Millis, pace Pace) int {
	next := w.Paths[t.shard].Tracks[t.track].Next
	there, _ := bits.Mul64(uint64(w.end(t, now, pace)-next), uint64(w.Planned)/uint64(len(w.Paths)))
	return int(there) / max(1, len(w.Starts))
}

// Next returns what the walk looks at next in one of the Shards, with its directory.
func (w *Walk) Next(n int, dir *Directory, now store.Millis, pace Pace) Stretch {
	t, _ := w.turnOf(n)
	return Stretch{
		Shard: n, track: t.track, from: w.Paths[n].Tracks[t.track].Next,
		last: min(w.last(n, t.track, dir, pace.Batch), w.end(t, now, pace)),
	}
}

// end is the turned position up to which the next stretch of a shard goes, by time: what is
// due within the lead. A walk that is late for a place takes only what comes next from each
// shard, so that the others are not later still.
func (w *Walk) end(t turn, now store.Millis, pace Pace) Position {
	if w.Phase == Undoing {
		return ^Position(0)
	}
	lead := pace.Lead
	if pace.CatchUp > 0 && t.place < now {
		lead = pace.CatchUp
	}
	if end, bounded := w.until(now.Add(lead).Sub(w.begin(t.track))); bounded {
		return end - 1
	}
	return ^Position(0)
}

// turn is the track of a shard whose next place comes first.
type turn struct {
	shard, track int
	place        store.Millis
}

// first is that whose next place comes first of all; false when all are done.
func (w *Walk) first() (first turn, ok bool) {
	for n := range w.Paths {
		if t, there := w.turnOf(n); there && (!ok || t.place < first.place) {
			first, ok = t, true
		}
	}
	return first, ok
}

// turnOf is that of one shard.
func (w *Walk) turnOf(n int) (t turn, ok bool) {
	for i := range w.Paths[n].Tracks {
		if w.Paths[n].Tracks[i].Done {
			continue
		}
		if at := w.placeAt(n, i); !ok || at < t.place {
			t, ok = turn{n, i, at}, true
		}
	}
	return t, ok
}

// placeAt is when the next place of a track is.
func (w *Walk) placeAt(n, track int) store.Millis {
	return w.begin(track).Add(w.placeOf(w.Paths[n].Tracks[track].Next))
}

// last is the turned position up to which there are about so many recipients.
func (w *Walk) last(n, track int, dir *Directory, batch int) Position {
	t, last := &w.Paths[n].Tracks[track], ^Position(0)
	if t.Bound > 0 {
		last = t.Bound - 1
	}
	there := uint64(0)
	for _, z := range dir.Zones {
		if w.walksIn(track, z.Name) {
			there += uint64(z.Recipients)
		}
	}
	if there <= uint64(batch) {
		return last
	}
	width := Position(math.MaxUint64 / there * uint64(batch))
	if t.Next > last-min(width, last) {
		return last
	}
	return t.Next + width
}

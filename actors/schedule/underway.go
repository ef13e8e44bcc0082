package schedule

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

// A run stays in the shard in which it began when its schedule moves. That it has ended is told there
// first, and reaches the schedule a little later. An occurrence that comes in between is decided by what
// is on its way.

// Formers are the shards of a topic in which runs of a schedule may have begun that is in shard n now,
// the oldest last.
func Formers(t *store.Topic, name string, n int) []store.Shard {
	return slices.DeleteFunc(Shards(t, name), func(s store.Shard) bool { return s.N >= n })
}

// EndsOf returns how open runs have ended, by parcels that are on their way, or were until now: what
// arrives later says so once more, which changes nothing. Runs that were removed are not among them. One
// that was taken back is made anew under the same id, and what it left is on its way all the same.
func (s *Schedule) EndsOf(underWay []store.Parcel) (ends []Event) {
	last := make(map[string]Ended)
	for i := range underWay {
		switch e := Told(&underWay[i]).(type) {
		case Ended:
			last[e.ID] = e
		case Requeued:
			delete(last, e.ID)
		}
	}
	for _, r := range s.Open {
		if e, ended := last[s.ID(r.Occurrence)]; ended && e.Outcome != Removed {
			ends = append(ends, e)
		}
	}
	return ends
}

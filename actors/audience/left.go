package audience

import (
	"math"

	"github.com/ddq-io/ddq/store"
)

// Left says about what share of the recipients is not looked at yet, and when the places of
// the first and behind the last of them are: zones count as if as many were in each. Tasks
// that are to be taken back are none.
func (w *Walk) Left() (from, to store.Millis, share float64) {
	switch w.Phase {
	case Ordered:
		return w.At, w.At.Add(w.Window), 1
	case Walking:
	default:
		return 0, 0, 0
	}
	starts := 1
	if w.Local {
		starts = len(w.Starts)
	}
	for n := range w.Paths {
		for track := range starts {
			part, at := w.leftOf(n, track)
			if part == 0 {
				continue
			}
			share += part
			if from == 0 || at < from {
				from = at
			}
			to = max(to, w.begin(track).Add(w.Window))
		}
	}
	return from, to, share / float64(max(1, starts*len(w.Paths)))
}

// leftOf is what share of a track is left, and when its next place is.
func (w *Walk) leftOf(n, track int) (share float64, at store.Millis) {
	tracks := w.Paths[n].Tracks
	switch {
	case track >= len(tracks):
		return 1, w.begin(track)
	case tracks[track].Done:
		return 0, 0
	}
	return 1 - float64(tracks[track].Next)/math.MaxUint64, w.placeAt(n, track)
}

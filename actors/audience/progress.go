package audience

import (
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/audience/cell"
	"github.com/ddq-io/ddq/store"
)

// Behind is how late the next place of a walk is: what stands there is not made. 0 while
// the walk is ahead of its places, and when it makes nothing more.
func (w *Walk) Behind(now store.Millis) (late store.Millis) {
	switch w.Phase {
	case Ordered:
		return max(0, now-w.At)
	case Walking:
		if at, ok := w.NextPlace(); ok {
			return max(0, now-at)
		}
	}
	return 0
}

// NextPlace is the time of the first place for which nothing is made; false when there is
// none.
func (w *Walk) NextPlace() (store.Millis, bool) {
	first, ok := w.first()
	return first.place, ok && w.Phase == Walking
}

// Outcome is how a run ended: removed when it was cancelled, failed when none of its tasks is
// done and one is dead, and done when none is known to be anything else than done.
func (w *Walk) Outcome() store.ChangeKind {
	done, failed, removed := w.Ends[0], w.Ends[1], w.Ends[2]
	switch {
	case w.Cancelled:
		return store.ChangeDeleted
	case done == 0 && failed > 0:
		return store.ChangeDead
	case done == 0 && removed > 0:
		return store.ChangeDeleted
	}
	return store.ChangeDone
}

// PastRun is a run that has ended.
type PastRun struct {
	Topic string
	Ended store.Millis
	Walk  // without Paths
}

// keepRuns is how many runs that have ended an audience remembers.
const keepRuns = 20

// PastRunsID is the cell of the runs of an audience that have ended, in its first shard.
const PastRunsID = store.CellID("Hruns")

// Remember adds a run to those that have ended, and returns the change of their cell as
// it is.
func Remember(c store.Cell, run PastRun) (store.Put, error) {
	past, err := DecodePastRuns(c)
	if err != nil {
		return store.Put{}, err
	}
	past = slices.DeleteFunc(past, func(p PastRun) bool { return p.Run == run.Run })
	past = append([]PastRun{run}, past...)
	r := new(cell.PastRuns)
	for i := range past[:min(len(past), keepRuns)] {
		p := &past[i]
		p.Paths, p.Starts = nil, nil
		r.Runs = append(r.Runs, &cell.PastRun{Topic: p.Topic, EndedMs: int64(p.Ended), Walk: p.record()})
	}
	return store.Put{Cell: store.Cell{ID: PastRunsID, Body: encode(r)}, If: c.Version}, nil
}

// DecodePastRuns reads the runs that have ended, the latest first.
func DecodePastRuns(c store.Cell) (past []PastRun, err error) {
	var r cell.PastRuns
	if err := r.UnmarshalVT(c.Body); err != nil {
		return nil, fmt.Errorf("decode past runs: %w", err)
	}
	for _, p := range r.Runs {
		w, err := walkOf(p.GetWalk())
		if err != nil {
			return nil, err
		}
		past = append(past, PastRun{Topic: p.Topic, Ended: store.Millis(p.EndedMs), Walk: *w})
	}
	return past, nil
}

package cells

import (
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
)

const (
	walkLate = 10 * time.Second // behind its places a run is reported
	warnEach = time.Minute      // while it is
)

// beginStep records where a walk is when a step begins.
func (w *walker) beginStep(now store.Millis) {
	w.verdicts = w.walk.Verdicts
	w.behind = time.Duration(w.walk.Behind(now)) * time.Millisecond
}

// countStep counts a step that was made, and reports a walk that does not keep up.
func (w *walker) countStep() {
	moved := false
	for v, n := range w.walk.Verdicts {
		if n -= w.verdicts[v]; n > 0 {
			w.Metrics.CountRecipients(audience.Verdict(v).String(), n)
			moved = true
		}
	}
	if moved {
		w.Metrics.CountStep(w.behind)
	}
	if w.walk.Phase == audience.Over {
		delete(w.warned, w.cell.ID)
		return
	}
	w.warn()
}

// warn logs that a walk is behind its places, once in a while.
func (w *walker) warn() {
	now := w.Now()
	if at, known := w.warned[w.cell.ID]; w.behind < walkLate || known && now < at.Add(warnEach) {
		return
	}
	w.warned[w.cell.ID] = now
	w.Log.Warn("run of an audience is behind", "topic", w.ID.Topic, "shard", w.ID.N, "schedule", w.walk.Schedule,
		"audience", w.walk.Audience, "run", w.walk.Run, "behind", w.behind)
}

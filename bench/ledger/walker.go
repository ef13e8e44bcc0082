package ledger

import (
	"fmt"
	"slices"
)

// The states of a task, as its changes have it.
const (
	gone    = "gone"
	waiting = "waiting"
	held    = "held"
	done    = "done"
	dead    = "dead"
)

// steps are the states before and after each change.
var steps = map[string]struct {
	from []string
	to   string
}{
	"enqueued":         {[]string{gone, done, dead}, waiting},
	"updated":          {[]string{waiting}, waiting},
	"held":             {[]string{waiting}, held},
	"released":         {[]string{held}, waiting},
	"retrying":         {[]string{held}, waiting},
	"done":             {[]string{held}, done},
	"dead":             {[]string{held, waiting}, dead},
	"deleted":          {[]string{waiting, dead}, gone},
	"requeued":         {[]string{dead}, waiting},
	"cancel_requested": {[]string{held}, held},
}

// walker goes along a life.
type walker struct {
	state    string
	attempts int
	due      int64
	version  int64
	asked    bool // the cancellation of the attempt that is held
}

// step applies a change and returns what is wrong with it.
func (w *walker) step(x *Change) string {
	if by, ok := steps[x.What]; !ok || !slices.Contains(by.from, w.state) {
		return fmt.Sprintf("%s while the task was %s", x.What, w.state)
	}
	want, version, due := w.attempts, w.version, w.due
	switch x.What {
	case "enqueued":
		want, version, due = 0, 1, x.Due
	case "updated":
		want, version, due = x.Attempt, w.version+1, x.Due
	case "held":
		want++
	case "released":
		want, due = want-1, x.Due
	case "retrying":
		due = x.Due
	case "requeued":
		want, due = 0, x.Due
	case "dead":
		if w.asked && x.Attempt == want-1 {
			want-- // a release makes a cancelled task dead, and does not count the attempt
		}
	}
	before := w.version
	w.asked = x.What == "cancel_requested" // every other change but an end needs another hold
	w.state, w.attempts, w.version, w.due = steps[x.What].to, want, version, due
	switch {
	case x.Attempt != want && x.What != "deleted":
		return fmt.Sprintf("%s with attempt %d, not %d", x.What, x.Attempt, want)
	case x.Version != 0 && x.Version != version:
		return fmt.Sprintf("%s with version %d after version %d", x.What, x.Version, before)
	case x.What == "held" && x.Due != 0 && x.Due != due:
		return fmt.Sprintf("held as due at %d, which was %d", x.Due, due)
	case x.What == "held" && x.At/1000 < due-heldAhead:
		return fmt.Sprintf("held %d ms before it was due", due-x.At/1000)
	}
	return ""
}

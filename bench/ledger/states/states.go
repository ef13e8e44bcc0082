// Package states knows which states a task goes through, as the changes of a log have it.
package states

import (
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
)

// HeldAhead is how many ms before it is due a task may be held at most, which is not to say
// that a worker may have it.
const HeldAhead = 250

// The states of a task, as its changes have it.
const (
	Gone    = "gone"
	Waiting = "waiting"
	Held    = "held"
	Done    = "done"
	Dead    = "dead"
)

// steps are the states before and after each change.
var steps = map[string]struct {
	from []string
	to   string
}{
	"enqueued":         {[]string{Gone, Done, Dead}, Waiting},
	"updated":          {[]string{Waiting}, Waiting},
	"held":             {[]string{Waiting}, Held},
	"released":         {[]string{Held}, Waiting},
	"retrying":         {[]string{Held}, Waiting},
	"done":             {[]string{Held}, Done},
	"dead":             {[]string{Held, Waiting}, Dead},
	"deleted":          {[]string{Waiting, Dead}, Gone},
	"requeued":         {[]string{Dead}, Waiting},
	"cancel_requested": {[]string{Held}, Held},
}

// Walker goes along the changes of a task. It begins with New.
type Walker struct {
	State   string
	Due     int64 // in ms
	Version int64

	attempts int
	asked    bool // the cancellation of the attempt that is held
}

// New is before the first change.
func New() *Walker { return &Walker{State: Gone} }

// Step applies a change and returns what is wrong with it.
func (w *Walker) Step(x *ledger.Change) string {
	if by, ok := steps[x.What]; !ok || !slices.Contains(by.from, w.State) {
		return fmt.Sprintf("%s while the task was %s", x.What, w.State)
	}
	want, version, due := w.attempts, w.Version, w.Due
	switch x.What {
	case "enqueued":
		want, version, due = 0, 1, x.Due
	case "updated":
		want, version, due = x.Attempt, w.Version+1, x.Due
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
			want-- // a release makes a cancelled task Dead, and does not count the attempt
		}
	}
	before := w.Version
	w.asked = x.What == "cancel_requested" // every other change but an end needs another hold
	w.State, w.attempts, w.Version, w.Due = steps[x.What].to, want, version, due
	switch {
	case x.Attempt != want && x.What != "deleted":
		return fmt.Sprintf("%s with attempt %d, not %d", x.What, x.Attempt, want)
	case x.Version != 0 && x.Version != version:
		return fmt.Sprintf("%s with version %d after version %d", x.What, x.Version, before)
	case x.What == "held" && x.Due != 0 && x.Due != due:
		return fmt.Sprintf("held as due at %d, which was %d", x.Due, due)
	case x.What == "held" && x.At/1000 < due-HeldAhead:
		return fmt.Sprintf("held %d ms before it was due", due-x.At/1000)
	}
	return ""
}

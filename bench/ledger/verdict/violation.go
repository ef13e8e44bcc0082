package verdict

import "github.com/ddq-io/ddq/bench/ledger"

// Violation is the name of a broken promise.
type Violation string

// The violations, each a promise of ddq that did not hold for one task. All are
// certain: what a lost answer, a late frame or a paused client could explain is none.
const (
	Lost        Violation = "lost"        // acknowledged, and neither settled, dead, deleted nor stored
	Phantom     Violation = "phantom"     // delivered or stored, though no enqueue was accepted
	Garbled     Violation = "garbled"     // delivered with another payload
	Early       Violation = "early"       // delivered before it was due on the store's clock
	Overlap     Violation = "overlap"     // delivered while an earlier hold was alive and unsettled
	Repeated    Violation = "repeated"    // the same attempt twice
	Skipped     Violation = "skipped"     // an attempt is missing that had no time to happen
	Stale       Violation = "stale"       // a settlement was accepted for a hold that was over
	Resurrected Violation = "resurrected" // delivered or stored after it was acked or deleted
	Twinned     Violation = "twinned"     // two tasks of one idempotency key
	Outdated    Violation = "outdated"    // delivered or stored as it was before an edit that was accepted
	Crowded     Violation = "crowded"     // held with more others at a time than a cap or an ordering key allows
	Rushed      Violation = "rushed"      // delivered sooner than a rate allows
	Overtaken   Violation = "overtaken"   // a later task of its ordering key went first
	Paused      Violation = "paused"      // delivered although deliveries were paused
	Missed      Violation = "missed"      // it happened, and the log or a watcher was not told
	Mistold     Violation = "mistold"     // the log or a watcher was told twice, out of order, or what did not happen
	Wrong       Violation = "wrong"       // an answer, or a cause of death, that is not true
	Forgotten   Violation = "forgotten"   // a name ran again after its checkpoint was answered
	Stuck       Violation = "stuck"       // due for long at the end, and still not delivered
	Idle        Violation = "idle"        // it waited beside a worker with room, and had all that it needs

	// Of schedules; the task of an offence is the schedule, or a recipient of its audience.
	Doubled      Violation = "doubled"      // an occurrence had two runs, or a run and a reason, or a recipient two tasks
	Vanished     Violation = "vanished"     // it had neither a run nor a reason, or a recipient no task
	Unreasonable Violation = "unreasonable" // there was no run for a reason that was not so
	Premature    Violation = "premature"    // a worker had its run before its time
	Strayed      Violation = "strayed"      // it had a run after an answered pause or edit that it should not have had, or somebody a task who had opted out
	Misplaced    Violation = "misplaced"    // due elsewhere than at the place of its recipient

	// Of workflows and acks that enqueue; the task of an offence is the workflow or the task.
	Half     Violation = "half"     // acked without what the ack adds, or the other way
	Untimely Violation = "untimely" // a step began before what it waits for had come about
	Redone   Violation = "redone"   // two tasks of one making of a step, or of one that an ack enqueued
	Stranded Violation = "stranded" // a workflow is open at the end, or gone
	Misled   Violation = "misled"   // a task was told of the steps before it what they did not return
	Unwound  Violation = "unwound"  // an undo is missing, came early, or out of order
	Zombie   Violation = "zombie"   // a step began after a cancel of its workflow was answered
)

// Violations lists all kinds, in the order of reports.
func Violations() []Violation {
	return []Violation{Lost, Phantom, Garbled, Early, Overlap, Repeated, Skipped, Stale, Resurrected, Twinned, Outdated, Crowded, Rushed, Overtaken, Paused, Missed, Mistold, Wrong, Forgotten, Stuck, Idle,
		Doubled, Vanished, Unreasonable, Premature, Strayed, Misplaced,
		Half, Untimely, Redone, Stranded, Misled, Unwound, Zombie}
}

// Offence is a violation by one task, with all that is known about the task.
type Offence struct {
	Violation Violation       `json:"violation"`
	Topic     string          `json:"topic"`
	Task      string          `json:"task"`
	Why       string          `json:"why"`
	Timeline  []*ledger.Event `json:"timeline"`
}

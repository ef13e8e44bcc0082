package ledger

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
	Stuck       Violation = "stuck"       // due for long at the end, and still not delivered
)

// Violations lists all kinds, in the order of reports.
func Violations() []Violation {
	return []Violation{Lost, Phantom, Garbled, Early, Overlap, Repeated, Skipped, Stale, Resurrected, Twinned, Outdated, Crowded, Rushed, Overtaken, Paused, Missed, Mistold, Wrong, Stuck}
}

// Offence is a violation by one task, with all that is known about the task.
type Offence struct {
	Violation Violation `json:"violation"`
	Topic     string    `json:"topic"`
	Task      string    `json:"task"`
	Why       string    `json:"why"`
	Timeline  []*Event  `json:"timeline"`
}

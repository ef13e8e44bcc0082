package store

// MaxAttempts is how many attempts of a task a store keeps: the last ones.
const MaxAttempts = 20

// Outcome is how an attempt ended.
type Outcome uint8

const (
	OutcomeNone        Outcome = iota // of a Nack: the attempt is not to be kept
	OutcomeAcked                      // the task was done
	OutcomeFailed                     // the worker said that it failed
	OutcomeReleased                   // the worker gave the task back; the attempt is not counted
	OutcomeHoldExpired                // the worker did not settle it in time
	OutcomeCancelled                  // it ended without success after its cancellation was asked for
)

// Attempt is one delivery of a task that is over.
type Attempt struct {
	Number  int
	Worker  string
	Node    string // that took the task for the worker
	Due     Millis // when the task was due by then; 0: not known, of attempts from before it was kept
	Started Millis // 0: not known, of holds from before it was kept
	Ended   Millis
	Outcome Outcome
	Error   string
	Trace   TraceID // in which the worker recorded it; zero: in none
}

// History is what a task's attempts left behind.
type History struct {
	Attempts []Attempt // the last MaxAttempts, in the order in which they ended
	Result   []byte    // of a done task
}

// Remember appends an attempt, and drops the oldest beyond MaxAttempts.
func (h *History) Remember(a Attempt) {
	h.Attempts = append(h.Attempts, a)
	if over := len(h.Attempts) - MaxAttempts; over > 0 {
		h.Attempts = append(h.Attempts[:0], h.Attempts[over:]...)
	}
}

// Empty reports whether there is nothing to keep.
func (h *History) Empty() bool { return len(h.Attempts) == 0 && len(h.Result) == 0 }

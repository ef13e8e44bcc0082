package store

import "fmt"

// Status is the outcome of one item of a batch. Scripts of stores know the numbers by
// these names. They are not stored.
type Status uint8

const (
	OK         Status = iota + 1
	Added             // Add: stored, pending
	Held              // HoldNew: stored and held
	Duplicate         // Add: the same request was stored before
	Conflict          // Add: another request lives under the id
	Taken             // AddKeyed: another task has the key
	Replaced          // AddKeyed: in the place of the pending task that had the key
	Passed            // AddKeyed: stored, pending; the key was that of a task that is not pending any more
	Closed            // AddKeyed, Requeue: the shard is sealed, and takes no such task
	Already           // Ack: this token acked before; Checkpoint: the name has an entry
	NotDue            // Hold: due later; Recover: deadline later
	Stale             // Ack, Nack, Extend, Recover: running under another token; Edit, Remove: in another version
	WrongState        // not in a state that allows it
	NotFound          // no such task
	Corrupt           // Hold: unreadable, and dead-lettered now
	Expired           // Hold: past its expiry, and dead-lettered now; Edit: it would be due past it
	Late              // Hold: at or past its Before
	Behind            // Hold: of an ordering key, and not the head of its line
	LeftOut           // Hold: not looked at, the bodies of those before it fill the answer
	HoldLost          // Commit: a task is not held under the token
	NoCell            // Ack, Commit: the ack says something, and its task tells no cell

	JournalFull // Checkpoint: the journal of the task has no room for the entry
	Received    // Commit: some of the messages are settled
	WindowFull  // Commit: the receipt of the queue has no room above its floor
)

var statusNames = [...]string{
	"none", "OK", "Added", "Held", "Duplicate", "Conflict", "Taken", "Replaced", "Passed", "Closed", "Already", "NotDue", "Stale", "WrongState",
	"NotFound", "Corrupt", "Expired", "Late", "Behind", "LeftOut", "HoldLost", "NoCell", "JournalFull", "Received", "WindowFull",
}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// Statuses returns every status.
func Statuses() []Status {
	all := make([]Status, 0, len(statusNames)-1)
	for s := OK; int(s) < len(statusNames); s++ {
		all = append(all, s)
	}
	return all
}

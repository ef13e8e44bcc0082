package checker

// The outcomes of cancels, and of an enqueue that took the place of another one of its key.
const (
	replaced  = "replaced"
	requested = "requested"
	tooLate   = "too_late"
	confirmed = "confirmed"
	dropped   = "deleted" // nobody held it
)

// The reason of a cancel that was refused.
const notRunning = "TASK_NOT_RUNNING"

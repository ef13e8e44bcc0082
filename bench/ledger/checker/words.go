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

// The words of overlaps, catch-ups, origins and reasons that the rules know.
const (
	overlapSkip  = "skip"
	cancelOther  = "cancel_other"
	catchUpLast  = "last"
	catchUpAll   = "all"
	byTimetable  = "timetable"
	byTrigger    = "trigger"
	finished     = "finished"
	runOpen      = "RUN_OPEN"
	skipOverlap  = "overlap"
	skipFull     = "buffer_full"
	skipReplaced = "superseded"
	skipMissed   = "missed"
	skipPaused   = "paused"
	skipRefused  = "refused"
)

// The words of the states of workflows and steps that the rules know.
const (
	stepDone       = "done"
	stepUndoing    = "undoing"
	stepUndone     = "undone"
	stepUndoFailed = "undo_failed"
	flowDone       = "done"
	flowRunning    = "running"
	flowFailed     = "failed"
	flowCancelled  = "cancelled"
)

package ledger

// The words of overlaps, catch-ups, origins and reasons that the rules know.
const (
	OverlapSkip  = "skip"
	CancelOther  = "cancel_other"
	CatchUpLast  = "last"
	CatchUpAll   = "all"
	ByTimetable  = "timetable"
	ByTrigger    = "trigger"
	RunFinished  = "finished"
	RunOpen      = "RUN_OPEN"
	SkipOverlap  = "overlap"
	SkipFull     = "buffer_full"
	SkipReplaced = "superseded"
	SkipMissed   = "missed"
	SkipPaused   = "paused"
	SkipRefused  = "refused"
)

// The words of the states of workflows and steps that the rules know.
const (
	StepDone       = "done"
	StepUndoing    = "undoing"
	StepUndone     = "undone"
	StepUndoFailed = "undo_failed"
	FlowDone       = "done"
	FlowRunning    = "running"
	FlowFailed     = "failed"
	FlowCancelled  = "cancelled"
)

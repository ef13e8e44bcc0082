package store

import (
	"context"
	"time"
)

// Log keeps what happens to the tasks of shards whose topics are watched. Each call
// that changes the state of tasks appends one Change a task, in the step that makes
// the change: it is in the log if and only if it was made. Repeated calls append
// nothing, and what a retention ends (Trim, TrimDead, DropShard) is not told. The
// changes of one task are in order, and those of a shard have positions that rise by
// one, from 1, as long as the topic's name lives.
type Log interface {
	// Watch makes a shard keep a log from when it returns, or changes how much it
	// keeps. Without a retention it ends the log: what was in it is forgotten, and a
	// position is left out, so that a reader who comes back to a later log finds a gap.
	// The same again does nothing.
	Watch(ctx context.Context, s Shard, w Watching) error

	// Changes reads logs, one page for each of reads.
	Changes(ctx context.Context, reads []LogRead) ([]LogPage, error)
}

// Watching says how much of a shard's log is kept.
type Watching struct {
	// Retention is how long changes are kept, if not longer. Up to the millisecond; 0:
	// there is no log.
	Retention time.Duration
	// Max is how many changes are kept at least, if they are not too old, and about how
	// many at most. Above 0.
	Max int
}

// FromOldest is the After of a read that begins with the oldest change that is kept.
const FromOldest = -1

// LogRead asks for changes behind a position.
type LogRead struct {
	Shard Shard
	After int64 // position of the last change that is known; 0: of none yet; or FromOldest
	Limit int   // 0: only what else a page says
}

// LogPage is what a log has behind a position.
type LogPage struct {
	Watched bool
	Changes []Change
	Next    int64 // the position up to which it was read: After of the next read
	Last    int64 // position of the latest change

	// Gap says that a change behind After is not kept any more, or that After is of
	// another log than this one. There are no Changes then, and Next is Last.
	Gap bool
}

// ChangeKind is what happened to a task.
type ChangeKind uint8

const (
	ChangeEnqueued        ChangeKind = iota + 1 // stored, pending
	ChangeUpdated                               // pending as before, edited or replaced
	ChangeHeld                                  // running
	ChangeReleased                              // pending: its worker gave it back, the attempt is not counted
	ChangeRetrying                              // pending: the attempt failed, or its hold ran out
	ChangeDone                                  // acked
	ChangeDead                                  // dead letter, see Reason
	ChangeDeleted                               // gone
	ChangeRequeued                              // pending, after it was dead
	ChangeCancelRequested                       // running as before, to be ended
)

var changeNames = [...]string{
	"unknown", "enqueued", "updated", "held", "released", "retrying", "done", "dead", "deleted", "requeued", "cancel_requested",
}

func (k ChangeKind) String() string {
	if int(k) < len(changeNames) {
		return changeNames[k]
	}
	return changeNames[0]
}

// Change is one entry of a log: a task as it was right after something happened to it.
type Change struct {
	Position int64
	At       time.Time // the store's clock, to the microsecond
	ID       string
	Kind     ChangeKind
	Due      Millis  // of a task that is pending then, or Held; else 0
	Attempt  int     // counted so far
	Version  int64   // Enqueued, Updated, Held, Requeued; else 0
	Reason   Reason  // Dead
	Outcome  Outcome // how the attempt ended, of a change that ended one; if it was said
	Worker   string  // whose hold began or ended, or is to end

	Attributes []Attribute // of the task, those that are indexed
}

// State is that of the task right after the change; StateUnknown when it was deleted.
func (c *Change) State() State {
	switch c.Kind {
	case ChangeHeld, ChangeCancelRequested:
		return StateRunning
	case ChangeDone:
		return StateDone
	case ChangeDead:
		if c.Reason == ReasonExpired {
			return StateExpired
		}
		return StateDead
	case ChangeEnqueued, ChangeUpdated, ChangeReleased, ChangeRetrying, ChangeRequeued:
		return PendingState(c.Due, Millis(c.At.UnixMilli()), c.Attempt)
	}
	return StateUnknown
}

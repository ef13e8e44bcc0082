package actors

import (
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Kind classes errors by what a caller can do about them. The edge maps each
// kind to one status code.
type Kind uint8

const (
	Internal     Kind = iota // a bug; details are in the log
	Invalid                  // the request can never succeed
	OutOfRange               // beyond a limit of the topic
	NotFound                 // no such task or topic
	Exists                   // taken by something else
	Precondition             // not in this state
	Exhausted                // paused, quota, backlog: again after RetryAfter
	Unavailable              // draining, store unreachable: again after RetryAfter
	Unknown                  // may have happened; repeating with the same id is safe
	Canceled                 // the caller went away
	Deadline                 // the caller's deadline passed
)

// Error is what every method of System returns when it fails.
type Error struct {
	Kind       Kind
	Reason     string // stable, upper snake case: BAD_NAME, HOLD_LOST, NO_TASK
	Field      string // the request field at fault, in wire spelling; may be empty
	Message    string
	RetryAfter time.Duration
	State      store.State // Exists, Precondition: of the task
	cause      error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.cause)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.cause }

package problem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Kind classes errors by what a caller can do about them. The edge maps each
// kind to one status code.
type Kind uint8

const (
	Internal        Kind = iota // a bug; details are in the log
	Invalid                     // the request can never succeed
	OutOfRange                  // beyond a limit of the topic
	NotFound                    // no such task or topic
	Exists                      // taken by something else
	Precondition                // not in this state
	Aborted                     // changed by somebody else since it was read
	Exhausted                   // paused, quota, backlog: again after RetryAfter, unless that is NoRetry
	Unavailable                 // draining, store unreachable: again after RetryAfter
	Unknown                     // may have happened; repeating with the same id is safe
	Canceled                    // the caller went away
	Deadline                    // the caller's deadline passed
	Denied                      // not for this caller
	Unauthenticated             // no credentials, or none that count
)

// Error is what use cases return when they fail.
type Error struct {
	Kind       Kind
	Reason     string // stable, upper snake case: BAD_NAME, HOLD_LOST, NO_TASK
	Field      string // the request field at fault, in wire spelling; may be empty
	Message    string
	RetryAfter time.Duration // NoRetry: repeating does not help
	State      store.State   // Exists, Precondition: of the task
	Version    int64         // Aborted: of the task
	ID         string        // KEY_TAKEN: of the task that has the key
	cause      error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.cause)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.cause }

const (
	NoRetry    = -1              // as RetryAfter: it stays so, however often it is tried
	RetrySoon  = time.Second     // pause suggested when the store or node is away
	retryPause = 5 * time.Second // pause suggested while a topic is paused
)

// BadField is of a request that can never succeed because of a field.
func BadField(field, reason, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Reason: reason, Field: field, Message: fmt.Sprintf(format, args...)}
}

// IDConflict is of an id that a live task of another request has.
func IDConflict(id string, state store.State) *Error {
	return &Error{Kind: Exists, Reason: "ID_CONFLICT", Field: "id", State: state,
		Message: fmt.Sprintf("task %q exists with another request and is %s", id, state)}
}

// HoldLost is of a settlement under a token that is not that of the hold.
func HoldLost(id string) *Error {
	return &Error{Kind: Precondition, Reason: "HOLD_LOST", Field: "hold_token",
		Message: fmt.Sprintf("task %q is not held under this token", id)}
}

// JournalFull is of a checkpoint that the journal of the task has no room for.
func JournalFull(id string) *Error {
	return &Error{Kind: Exhausted, Reason: "JOURNAL_FULL", Field: "value", RetryAfter: NoRetry,
		Message: fmt.Sprintf("the journal of task %q has no room for it: at most %d names, and %d bytes of them and what they returned", id, store.MaxJournalNames, store.MaxJournalBytes)}
}

// NoStep is of an ack that says something to a workflow, of a task that is no step of one.
func NoStep(id string) *Error {
	return &Error{Kind: Precondition, Reason: "NO_STEP", Field: "task_id", Message: fmt.Sprintf("task %q is no step of a workflow", id)}
}

// ReasonStep is that of StepOfWorkflow.
const ReasonStep = "STEP_OF_WORKFLOW"

// StepOfWorkflow is of what is asked for a task that is a workflow's to say; call is whom to ask.
func StepOfWorkflow(id, step, workflow, topic, call string) *Error {
	return &Error{Kind: Precondition, Reason: ReasonStep, Field: "id",
		Message: fmt.Sprintf("task %q is step %q of workflow %q of topic %q: call %s", id, step, workflow, topic, call)}
}

// BadToken is of a token that no delivery carried.
func BadToken() *Error {
	return BadField("hold_token", "BAD_TOKEN", "hold_token is not one that a delivery carried")
}

// NoTask is of an id that no task has.
func NoTask(id string) *Error {
	return &Error{Kind: NotFound, Reason: "NO_TASK", Field: "id", Message: fmt.Sprintf("no task %q", id)}
}

// NoTopic is of a name that no topic has.
func NoTopic(name string) *Error {
	return &Error{Kind: NotFound, Reason: "NO_TOPIC", Field: "topic", Message: fmt.Sprintf("no topic %q", name)}
}

// WrongState is of a task that is running, or finished.
func WrongState(id string, state store.State) *Error {
	reason := "TASK_FINISHED"
	if state == store.StateRunning {
		reason = "TASK_RUNNING"
	}
	return &Error{Kind: Precondition, Reason: reason, Field: "id", State: state,
		Message: fmt.Sprintf("task %q is %s", id, state)}
}

// VersionMismatch is of a task that has another version than was asked for.
func VersionMismatch(id string, version int64) *Error {
	return &Error{Kind: Aborted, Reason: "VERSION_MISMATCH", Field: "if_version", Version: version,
		Message: fmt.Sprintf("task %q is at version %d", id, version)}
}

// Draining is of new work for a node that shuts down.
func Draining() *Error {
	return &Error{Kind: Unavailable, Reason: "DRAINING", Message: "the node is shutting down", RetryAfter: RetrySoon}
}

// ErrClosed is of a call that reached a topic when it was closed here. Another try finds
// the topic, or that there is none.
func ErrClosed() *Error {
	return &Error{Kind: Unavailable, Reason: "TOPIC_CLOSED", Message: "the topic was closed meanwhile", RetryAfter: RetrySoon}
}

// EnqueuePaused is of a topic that takes no tasks for now.
func EnqueuePaused(topic string) *Error {
	return &Error{Kind: Exhausted, Reason: "ENQUEUE_PAUSED", Field: "topic", RetryAfter: retryPause,
		Message: fmt.Sprintf("topic %q is paused for enqueueing", topic)}
}

// BacklogFull is of a topic that has as many tasks waiting as it may.
func BacklogFull(topic string, most int) *Error {
	return &Error{Kind: Exhausted, Reason: "BACKLOG_FULL", Field: "topic", RetryAfter: RetrySoon,
		Message: fmt.Sprintf("topic %q has its %d tasks waiting", topic, most)}
}

// OutboxFull is of a topic of which so many tasks and messages are on their way to other shards that
// it leaves no more.
func OutboxFull(topic string, there int64) *Error {
	return &Error{Kind: Exhausted, Reason: "OUTBOX_FULL", Field: "topic", RetryAfter: retryPause,
		Message: fmt.Sprintf("topic %q has %d parcels on their way to other shards", topic, there)}
}

// TopicVersionMismatch is of a topic that has another version than was asked for.
func TopicVersionMismatch(topic string, version int64) *Error {
	return &Error{Kind: Aborted, Reason: "VERSION_MISMATCH", Field: "if_version",
		Message: fmt.Sprintf("topic %q has not version %d", topic, version)}
}

// Bug is an error of ours; its cause is for the log.
func Bug(cause error) *Error {
	return &Error{Kind: Internal, Reason: "INTERNAL", Message: "internal error", cause: cause}
}

// ReasonSealed is of a task that went to a shard that takes no new one any more.
const ReasonSealed = "SHARD_SEALED"

// Behind is an error as it is told after a try whose answer was lost, when there was one: what
// was asked for may have been done, and no other error leaves that open.
func (e *Error) Behind(lost bool) *Error {
	if e == nil || !lost || e.Kind == Unknown {
		return e
	}
	return FromStore(fmt.Errorf("%w: %s", store.ErrUnknown, e.Message))
}

// FromStore is the only place where a store's error becomes one of ours.
func FromStore(err error) *Error {
	var ours *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, store.ErrUnknown):
		return &Error{Kind: Unknown, Reason: "AMBIGUOUS", Message: "the store did not answer; repeating with the same id is safe", cause: err}
	case errors.Is(err, store.ErrFull):
		return &Error{Kind: Unavailable, Reason: "STORE_FULL", Message: "the store is full", RetryAfter: retryPause, cause: err}
	case errors.Is(err, store.ErrDeleted):
		return &Error{Kind: Unavailable, Reason: "STORE_DOWN", Message: "the data of the store was deleted while the node ran: see to it before the node is restarted", RetryAfter: retryPause, cause: err}
	case errors.Is(err, store.ErrFailed):
		return &Error{Kind: Unavailable, Reason: "STORE_DOWN", Message: "the store has failed, and the node is to be restarted", RetryAfter: retryPause, cause: err}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		return &Error{Kind: Unavailable, Reason: "STORE_DOWN", Message: "the store cannot be reached", RetryAfter: RetrySoon, cause: err}
	case errors.Is(err, store.ErrSealed):
		return &Error{Kind: Unavailable, Reason: ReasonSealed, Message: "the topic is getting other shards", RetryAfter: RetrySoon, cause: err}
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrOwned):
		return &Error{Kind: Unavailable, Reason: "NOT_OWNER", Message: "the shard is moving", RetryAfter: RetrySoon, cause: err}
	case errors.Is(err, store.ErrSessionLost):
		return &Error{Kind: Unavailable, Reason: "SESSION_LOST", Message: "the node has lost its session", RetryAfter: retryPause, cause: err}
	case errors.Is(err, store.ErrTopicNotFound):
		return &Error{Kind: NotFound, Reason: "NO_TOPIC", Field: "topic", Message: "no such topic", cause: err}
	case errors.Is(err, store.ErrTopicExists):
		return &Error{Kind: Exists, Reason: "TOPIC_EXISTS", Field: "name", Message: "the topic exists", cause: err}
	case errors.Is(err, store.ErrVersion):
		return &Error{Kind: Unavailable, Reason: "VERSION_MISMATCH", Message: "the topic was changed meanwhile", RetryAfter: RetrySoon, cause: err}
	case errors.Is(err, store.ErrBadCursor):
		return BadField("page_token", "BAD_CURSOR", "page_token is not one that a listing returned")
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Kind: Deadline, Reason: "DEADLINE", Message: "the deadline passed before the answer", cause: err}
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Canceled, Reason: "CANCELED", Message: "the call was canceled", cause: err}
	}
	return Bug(err)
}

// AsError turns err into an error value: a nil *Error is a nil error.
func AsError(err error) error {
	if e := FromStore(err); e != nil {
		return e
	}
	return nil
}

package client

import (
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// State is where a task is in its life.
type State int32

// The states of a task.
const (
	StateUnknown   State = State(ddqv1.TaskState_TASK_STATE_UNSPECIFIED)
	StateScheduled State = State(ddqv1.TaskState_TASK_STATE_SCHEDULED) // waiting for its due time
	StateReady     State = State(ddqv1.TaskState_TASK_STATE_READY)     // due, waiting for a worker
	StateRunning   State = State(ddqv1.TaskState_TASK_STATE_RUNNING)   // held by a worker
	StateRetrying  State = State(ddqv1.TaskState_TASK_STATE_RETRYING)  // waiting after a failed attempt
	StateDone      State = State(ddqv1.TaskState_TASK_STATE_DONE)      // acked, kept for the topic's retention
	StateDead      State = State(ddqv1.TaskState_TASK_STATE_DEAD)      // in the dead letters
	StateExpired   State = State(ddqv1.TaskState_TASK_STATE_EXPIRED)   // in the dead letters, never delivered in time
)

// String returns the state in lower case, such as "scheduled".
func (s State) String() string { return wire.Word(ddqv1.TaskState(s).String(), "TASK_STATE_") }

// DeadReason says why a task is among the dead letters.
type DeadReason int32

// Why tasks die.
const (
	DeadReasonNone          DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_UNSPECIFIED)
	DeadReasonMaxRetries    DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES)   // the last allowed attempt failed
	DeadReasonPermanent     DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_PERMANENT)     // a worker said that repeating is useless
	DeadReasonExpired       DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_EXPIRED)       // not delivered before its expiry
	DeadReasonCorrupt       DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_CORRUPT)       // its record could not be read
	DeadReasonHoldExpired   DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_HOLD_EXPIRED)  // the worker of its last attempt fell silent
	DeadReasonRateLimited   DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_RATE_LIMITED)  // a rate had no token left, see Policy.OverLimit
	DeadReasonCancelled     DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_CANCELLED)     // its cancellation was asked for while it ran
	DeadReasonUndeliverable DeadReason = DeadReason(ddqv1.DeadReason_DEAD_REASON_UNDELIVERABLE) // an ack enqueued it, and its topic refuses it
)

// String returns the reason in lower case, such as "max_retries", and "" for none.
func (r DeadReason) String() string {
	return wire.WordOr(ddqv1.DeadReason(r).String(), "DEAD_REASON_", "")
}

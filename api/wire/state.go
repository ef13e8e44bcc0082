package wire

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// The states have the same numbers on the wire and in the store; the table is what is
// true if one of them ever moves.
var states = [...]ddqv1.TaskState{
	store.StateUnknown:   ddqv1.TaskState_TASK_STATE_UNSPECIFIED,
	store.StateScheduled: ddqv1.TaskState_TASK_STATE_SCHEDULED,
	store.StateReady:     ddqv1.TaskState_TASK_STATE_READY,
	store.StateRunning:   ddqv1.TaskState_TASK_STATE_RUNNING,
	store.StateRetrying:  ddqv1.TaskState_TASK_STATE_RETRYING,
	store.StateDone:      ddqv1.TaskState_TASK_STATE_DONE,
	store.StateDead:      ddqv1.TaskState_TASK_STATE_DEAD,
	store.StateExpired:   ddqv1.TaskState_TASK_STATE_EXPIRED,
}

// State converts a task's state.
func State(s store.State) ddqv1.TaskState { return Enum(states[:], s) }

// ReadState is the opposite of State.
func ReadState(s ddqv1.TaskState, field string) (store.State, *problem.Error) {
	return ReadEnum[store.State](states[:], s, field)
}

// RetryCount is the number of deliveries before the one that a task is at: the
// one to come while it waits, else the last one.
func RetryCount(s store.State, attempt int) int32 {
	if s.Pending() || s == store.StateExpired || attempt == 0 {
		return int32(attempt)
	}
	return int32(attempt - 1)
}

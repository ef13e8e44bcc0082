package server

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// The enums of the wire and of the store have the same numbers where the store
// has them too; the tables are what is true if one of them ever moves.
var (
	stateToWire = [...]ddqv1.TaskState{
		store.StateUnknown:   ddqv1.TaskState_TASK_STATE_UNSPECIFIED,
		store.StateScheduled: ddqv1.TaskState_TASK_STATE_SCHEDULED,
		store.StateReady:     ddqv1.TaskState_TASK_STATE_READY,
		store.StateRunning:   ddqv1.TaskState_TASK_STATE_RUNNING,
		store.StateRetrying:  ddqv1.TaskState_TASK_STATE_RETRYING,
		store.StateDone:      ddqv1.TaskState_TASK_STATE_DONE,
		store.StateDead:      ddqv1.TaskState_TASK_STATE_DEAD,
		store.StateExpired:   ddqv1.TaskState_TASK_STATE_EXPIRED,
	}
	reasonToWire = [...]ddqv1.DeadReason{
		store.ReasonNone:        ddqv1.DeadReason_DEAD_REASON_UNSPECIFIED,
		store.ReasonMaxRetries:  ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES,
		store.ReasonPermanent:   ddqv1.DeadReason_DEAD_REASON_PERMANENT,
		store.ReasonExpired:     ddqv1.DeadReason_DEAD_REASON_EXPIRED,
		store.ReasonCorrupt:     ddqv1.DeadReason_DEAD_REASON_CORRUPT,
		store.ReasonHoldExpired: ddqv1.DeadReason_DEAD_REASON_HOLD_EXPIRED,
		store.ReasonRateLimited: ddqv1.DeadReason_DEAD_REASON_RATE_LIMITED,
		store.ReasonCancelled:   ddqv1.DeadReason_DEAD_REASON_CANCELLED,
	}
	outcomeToWire = [...]ddqv1.AttemptOutcome{
		store.OutcomeNone:        ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_UNSPECIFIED,
		store.OutcomeAcked:       ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_ACKED,
		store.OutcomeFailed:      ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_FAILED,
		store.OutcomeReleased:    ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_RELEASED,
		store.OutcomeHoldExpired: ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_HOLD_EXPIRED,
		store.OutcomeCancelled:   ddqv1.AttemptOutcome_ATTEMPT_OUTCOME_CANCELLED,
	}
	cancelToWire = [...]ddqv1.CancelOutcome{
		service.CancelRequested: ddqv1.CancelOutcome_CANCEL_OUTCOME_REQUESTED,
		service.CancelTooLate:   ddqv1.CancelOutcome_CANCEL_OUTCOME_TOO_LATE,
		service.CancelConfirmed: ddqv1.CancelOutcome_CANCEL_OUTCOME_CONFIRMED,
		service.CancelDeleted:   ddqv1.CancelOutcome_CANCEL_OUTCOME_DELETED,
	}
	backoffToWire = [...]ddqv1.BackoffKind{
		store.BackoffFixed:       ddqv1.BackoffKind_BACKOFF_KIND_FIXED,
		store.BackoffLinear:      ddqv1.BackoffKind_BACKOFF_KIND_LINEAR,
		store.BackoffQuadratic:   ddqv1.BackoffKind_BACKOFF_KIND_QUADRATIC,
		store.BackoffExponential: ddqv1.BackoffKind_BACKOFF_KIND_EXPONENTIAL,
	}
)

func stateOf(s ddqv1.TaskState, field string) (store.State, *problem.Error) {
	for i, wire := range stateToWire {
		if wire == s {
			return store.State(i), nil
		}
	}
	return 0, invalid("BAD_ENUM", field, "has no value %d", s)
}

func deadReasonOf(r ddqv1.DeadReason, field string) (store.Reason, *problem.Error) {
	for i, wire := range reasonToWire {
		if wire == r {
			return store.Reason(i), nil
		}
	}
	return 0, invalid("BAD_ENUM", field, "has no value %d", r)
}

func backoffKindOf(k ddqv1.BackoffKind, field string) (store.BackoffKind, *problem.Error) {
	if k == ddqv1.BackoffKind_BACKOFF_KIND_UNSPECIFIED {
		return 0, invalid("BAD_ENUM", field, "is required in a backoff")
	}
	for i, wire := range backoffToWire {
		if wire == k {
			return store.BackoffKind(i), nil
		}
	}
	return 0, invalid("BAD_ENUM", field, "has no value %d", k)
}

// wireOf looks up v in one of the tables; a value this version does not know is
// unspecified.
func wireOf[W ~int32, V ~uint8](table []W, v V) W {
	if int(v) < len(table) {
		return table[v]
	}
	return 0
}

func stateWire(s store.State) ddqv1.TaskState { return wireOf(stateToWire[:], s) }

// backoffOf converts a backoff that may be unset.
func backoffOf(b *ddqv1.Backoff, field string) (*store.Backoff, *problem.Error) {
	if b == nil {
		return nil, nil
	}
	kind, e := backoffKindOf(b.Kind, field+".kind")
	if e != nil {
		return nil, e
	}
	base, e := spanOf(b.BaseMs, field+".base_ms")
	if e != nil {
		return nil, e
	}
	most, e := spanOf(b.MaxMs, field+".max_ms")
	if e != nil {
		return nil, e
	}
	return &store.Backoff{Kind: kind, Base: base, Max: most, Jitter: int(b.JitterPercent)}, nil
}

func backoffWire(b *store.Backoff) *ddqv1.Backoff {
	if b == nil {
		return nil
	}
	return &ddqv1.Backoff{
		Kind:          wireOf(backoffToWire[:], b.Kind),
		BaseMs:        store.CeilMillis(b.Base),
		MaxMs:         store.CeilMillis(b.Max),
		JitterPercent: int32(b.Jitter),
	}
}

package server

import (
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// The enums of the wire and of the store have the same numbers where the store
// has them too; the tables are what is true if one of them ever moves.
var (
	reasonToWire = [...]ddqv1.DeadReason{
		store.ReasonNone:          ddqv1.DeadReason_DEAD_REASON_UNSPECIFIED,
		store.ReasonMaxRetries:    ddqv1.DeadReason_DEAD_REASON_MAX_RETRIES,
		store.ReasonPermanent:     ddqv1.DeadReason_DEAD_REASON_PERMANENT,
		store.ReasonExpired:       ddqv1.DeadReason_DEAD_REASON_EXPIRED,
		store.ReasonCorrupt:       ddqv1.DeadReason_DEAD_REASON_CORRUPT,
		store.ReasonHoldExpired:   ddqv1.DeadReason_DEAD_REASON_HOLD_EXPIRED,
		store.ReasonRateLimited:   ddqv1.DeadReason_DEAD_REASON_RATE_LIMITED,
		store.ReasonCancelled:     ddqv1.DeadReason_DEAD_REASON_CANCELLED,
		store.ReasonUndeliverable: ddqv1.DeadReason_DEAD_REASON_UNDELIVERABLE,
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
	rateToWire = [...]ddqv1.RateKind{
		store.TokenBucket:   ddqv1.RateKind_RATE_KIND_TOKEN_BUCKET,
		store.SlidingWindow: ddqv1.RateKind_RATE_KIND_SLIDING_WINDOW,
	}
	waitingToWire = [...]ddqv1.WaitingFor{
		service.WaitsForWorker:      ddqv1.WaitingFor_WAITING_FOR_UNSPECIFIED,
		service.WaitsForRate:        ddqv1.WaitingFor_WAITING_FOR_RATE,
		service.WaitsForConcurrency: ddqv1.WaitingFor_WAITING_FOR_CONCURRENCY,
		service.WaitsForOrder:       ddqv1.WaitingFor_WAITING_FOR_ORDER,
	}
)

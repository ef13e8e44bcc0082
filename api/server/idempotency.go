package server

import (
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
)

var keyOutcomeToWire = [...]ddqv1.IdempotencyOutcome{
	service.KeyNone:     ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_UNSPECIFIED,
	service.KeyTook:     ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_ENQUEUED,
	service.KeyReturned: ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_RETURNED,
	service.KeyReplaced: ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_REPLACED,
	service.KeyPassed:   ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_BESIDE,
}

package newtask

import (
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// readKey converts an idempotency key, nil for none.
func readKey(r *ddqv1.Idempotency) (*store.Key, *problem.Error) {
	if r == nil {
		return nil, nil
	}
	key := &store.Key{Text: r.Key}
	var e *problem.Error
	if key.Window, e = windowOf(r); e != nil {
		return nil, e
	}
	switch r.OnConflict {
	case ddqv1.OnConflict_ON_CONFLICT_UNSPECIFIED, ddqv1.OnConflict_ON_CONFLICT_RETURN:
		key.OnConflict = store.KeyReturn
	case ddqv1.OnConflict_ON_CONFLICT_REJECT:
		key.OnConflict = store.KeyReject
	case ddqv1.OnConflict_ON_CONFLICT_REPLACE:
		key.OnConflict = store.KeyReplace
	default:
		return nil, wire.Invalid("BAD_ENUM", "idempotency.on_conflict", "has no value %d", r.OnConflict)
	}
	return key, nil
}

// windowOf returns 0 for a key that is taken while its task lives.
func windowOf(r *ddqv1.Idempotency) (time.Duration, *problem.Error) {
	switch {
	case r.Scope < ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_UNSPECIFIED || r.Scope > ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_WINDOW:
		return 0, wire.Invalid("BAD_ENUM", "idempotency.scope", "has no value %d", r.Scope)
	case r.Scope == ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_LIVE && r.WindowMs != 0:
		return 0, wire.Invalid("OUT_OF_RANGE_FIELD", "idempotency.window_ms", "is for the scope WINDOW only")
	case r.Scope == ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_WINDOW && r.WindowMs == 0:
		return 0, wire.Invalid("OUT_OF_RANGE_FIELD", "idempotency.window_ms", "is required with the scope WINDOW")
	}
	return wire.Span(r.WindowMs, "idempotency.window_ms")
}

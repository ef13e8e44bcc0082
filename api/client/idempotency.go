package client

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Idempotency gives a task a key that one task of the topic has at a time.
type Idempotency struct {
	// Key is 1 to 128 bytes of printable text. The task's ID has to be empty: it is
	// made for the key.
	Key string

	// Window is how long the key is taken from when its first task was enqueued,
	// whatever becomes of that: up to 366 days. With 0 it is taken while its task is
	// live, that is scheduled, ready, retrying or running: one that is done or dead
	// never has a key.
	Window time.Duration

	// OnConflict says what becomes of the task when the key is taken. Defaults to
	// ConflictReturn.
	OnConflict OnConflict
}

// OnConflict says what becomes of a task whose idempotency key is taken.
type OnConflict int32

const (
	// ConflictReturn answers with the receipt of the task that has the key.
	ConflictReturn OnConflict = OnConflict(ddqv1.OnConflict_ON_CONFLICT_RETURN)
	// ConflictReject is ErrExists; Error.ID is that of the task that has the key.
	ConflictReject OnConflict = OnConflict(ddqv1.OnConflict_ON_CONFLICT_REJECT)
	// ConflictReplace gives the task that has the key this one's payload, attributes,
	// times and policy while it is pending. One that runs, or is over within a window,
	// is left alone: the new task is enqueued beside it and has the key from then on.
	ConflictReplace OnConflict = OnConflict(ddqv1.OnConflict_ON_CONFLICT_REPLACE)
)

// String returns the rule in lower case, such as "replace".
func (r OnConflict) String() string { return wire.Word(ddqv1.OnConflict(r).String(), "ON_CONFLICT_") }

// KeyOutcome is what became of a task with an idempotency key.
type KeyOutcome int32

// The zero KeyOutcome is that of a task without a key.
const (
	KeyEnqueued KeyOutcome = KeyOutcome(ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_ENQUEUED) // the key was free
	KeyReturned KeyOutcome = KeyOutcome(ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_RETURNED) // the receipt is another task's
	KeyReplaced KeyOutcome = KeyOutcome(ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_REPLACED) // in the place of the pending one
	KeyBeside   KeyOutcome = KeyOutcome(ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_BESIDE)   // beside one that runs or is over
)

// String returns the outcome in lower case, such as "replaced", and "none" for a task
// without a key.
func (o KeyOutcome) String() string {
	return wire.WordOr(ddqv1.IdempotencyOutcome(o).String(), "IDEMPOTENCY_OUTCOME_", "none")
}

func (i *Idempotency) wire() *ddqv1.Idempotency {
	if i == nil {
		return nil
	}
	w := &ddqv1.Idempotency{Key: i.Key, WindowMs: wire.Millis(i.Window), OnConflict: ddqv1.OnConflict(i.OnConflict)}
	if i.Window > 0 {
		w.Scope = ddqv1.IdempotencyScope_IDEMPOTENCY_SCOPE_WINDOW
	}
	return w
}

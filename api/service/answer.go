package service

import (
	"fmt"
	"sync/atomic"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// answer is an outcome as the shards fill it in.
type answer Enqueued

// Added translates what the store says.
func (a *answer) Added(t *store.Task, r store.AddResult) {
	defer atomic.StoreUint32(&a.decided, 1)
	a.Due = r.Due
	if t.Key != nil {
		a.keyed(t, r)
		return
	}
	switch r.Status {
	case store.Added:
		a.State, a.Replaced = store.StateScheduled, r.Replaced
	case store.Held:
		a.State, a.Replaced = store.StateRunning, r.Replaced
	case store.Duplicate:
		a.State, a.Deduplicated = r.State, true
	default:
		a.Err = problem.IDConflict(t.ID, r.State)
	}
}

// keyed answers a task with a key.
func (a *answer) keyed(t *store.Task, r store.AddResult) {
	a.ID = r.ID
	switch r.Status {
	case store.Added:
		a.State, a.Replaced, a.Key = store.StateScheduled, r.Replaced, KeyTook
	case store.Passed:
		a.State, a.Key = store.StateScheduled, KeyPassed
	case store.Replaced:
		a.State, a.Key = store.StateScheduled, KeyReplaced
	case store.Duplicate:
		a.State, a.Deduplicated, a.Key = r.State, true, KeyReturned
	case store.Closed:
		a.Err = problem.FromStore(store.ErrSealed)
	case store.Taken:
		a.Err = errKeyTaken(t.Key.Text, r.ID, r.State)
	default:
		a.Err = problem.IDConflict(t.ID, r.State)
	}
}

// Refused says why nothing was stored.
func (a *answer) Refused(err *problem.Error) {
	a.Err = err
	atomic.StoreUint32(&a.decided, 1)
}

func errKeyTaken(key, id string, state store.State) *problem.Error {
	what := "is " + state.String()
	if state == store.StateUnknown {
		what = "is done"
	}
	return &problem.Error{Kind: problem.Exists, Reason: "KEY_TAKEN", Field: "idempotency.key", State: state, ID: id,
		Message: fmt.Sprintf("idempotency key %q is that of task %q, which %s", key, id, what)}
}

package life

import "github.com/ddq-io/ddq/store"

// Change is what becomes of a request to delete or edit a pending task. One that cannot
// be read is left alone until it is held.
func Change(p Phase) store.Status {
	switch p {
	case Absent:
		return store.NotFound
	case Pending:
		return store.OK
	}
	return store.WrongState
}

// Untouched reports whether a task waits for its first attempt at the time at which it was to. That no attempt
// counts is not enough: a worker that released it, or sleeps in it, has had it, and moved when it is due.
func Untouched(p Phase, attempts int, due, was store.Millis) bool {
	return p == Pending && attempts == 0 && due == was
}

// Edited is what an edit makes of a task.
type Edited struct {
	Status store.Status // OK, WrongState, NotFound, Stale, Expired
	Due    store.Millis // OK
	Moves  bool         // OK: Due is another one than before
}

// Edit is what becomes of an edit of a task that has a version and a fingerprint. It
// leaves no task due at or past its expiry, where no worker would get it; one that is there
// already, for a retry that comes too late, may be changed in other ways.
func Edit(t *Task, e *store.Edit, version int64, fingerprint uint64, now store.Millis) Edited {
	if status := Change(t.Phase); status != store.OK {
		return Edited{Status: status}
	}
	if !e.Takes(version, fingerprint) {
		return Edited{Status: store.Stale}
	}
	due, moves := e.DueAfter(t.Due, now)
	expires := t.Expires
	if e.Task != nil {
		expires = e.Task.Expires
	}
	if expires != 0 && expires <= due && (moves || expires != t.Expires) {
		return Edited{Status: store.Expired}
	}
	return Edited{Status: store.OK, Due: due, Moves: moves}
}

// Requeue is what becomes of a request to requeue or delete a dead task.
func Requeue(p Phase) store.Status {
	if p == Dead {
		return store.OK
	}
	return store.NotFound
}

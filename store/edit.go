package store

// Edit changes one pending task in place.
type Edit struct {
	ID        string
	IfVersion int64  // the version that the task must have; 0 takes any
	Due       Millis // when it is due from now on; 0 leaves that as it is
	Now       bool   // it is due now, unless it is already; Due is 0 then

	// Task has the payload, attributes, expiry, visibility timeout, retries, backoff
	// and traits that the task gets; nil leaves them as they are. It is what Get
	// returned, with changes: only the very task in that version is edited, whatever
	// IfVersion says. The ordering key stays.
	Task *Task
}

// EditResult is the outcome of one Edit.
type EditResult struct {
	Status  Status // OK, Stale, WrongState, NotFound, Expired
	State   State  // WrongState: the task's
	Due     Millis // OK: of the task as it is now
	Version int64  // OK: as it is now; Stale: the one that is in the way

	Traits *Traits // OK: of the task as it is now
	Moved  bool    // OK: it is due at another time, or has other traits, than before
}

// Version is 1 when a task is added, and rises by one with every edit.
func (t *Task) Version() int64 { return t.Edits + 1 }

// Wants returns the version that the task must have; 0 takes any.
func (e *Edit) Wants() int64 {
	if e.Task != nil {
		return e.Task.Version()
	}
	return e.IfVersion
}

// Takes reports whether the edit is about a task of that version and fingerprint.
func (e *Edit) Takes(version int64, fingerprint uint64) bool {
	if e.Task != nil && e.Task.Fingerprint != fingerprint {
		return false
	}
	return e.Wants() == 0 || e.Wants() == version
}

// Same reports whether t and other say the same.
func (t *Traits) Same(other *Traits) bool {
	return t == other || t != nil && other != nil && *t == *other
}

// DueAfter returns when a task that was due at a moment is due after the edit, and
// whether the edit moves it.
func (e *Edit) DueAfter(due, now Millis) (after Millis, moves bool) {
	switch {
	case e.Due != 0:
		return e.Due, true
	case e.Now && due > now:
		return now, true
	}
	return due, false
}

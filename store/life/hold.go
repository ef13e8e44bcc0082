package life

import "github.com/ddq-io/ddq/store"

// Hold is what becomes of a request to hold a task: OK when it is to be held, unless it
// stands behind another of its ordering key or comes Late; Held when it is, by this very
// request. Expired and Corrupt make it a dead letter.
func Hold(t *Task, h *store.Hold, now store.Millis) store.Status {
	switch {
	case t.Phase == Absent:
		return store.NotFound
	case t.Phase == Running && t.Token == h.Token:
		return store.Held
	case t.Phase == Unreadable:
		return store.Corrupt
	case t.Phase != Pending:
		return store.WrongState
	case t.expired(now):
		return store.Expired
	case t.Due > now && !ahead(t, h, now):
		return store.NotDue
	}
	return store.OK
}

// ahead reports whether a task that is due later may be held now. Nothing else may decide
// about it until then.
func ahead(t *Task, h *store.Hold, now store.Millis) bool {
	reach := now + store.Millis(min(h.Ahead, store.MaxHoldAhead).Milliseconds())
	return t.Due <= reach && !t.Ordered && !t.expired(t.Due) && !Late(h, t.Due) && (h.Until == 0 || h.Until > t.Due)
}

// Late reports whether a hold comes too late for who asked for it.
func Late(h *store.Hold, now store.Millis) bool { return h.Before != 0 && h.Before <= now }

// HoldsNew reports whether HoldNew holds the task that it adds. One that is expired
// already is dead-lettered by the Hold that follows.
func HoldsNew(t *store.Task, now store.Millis) bool {
	fresh := Task{Phase: Pending, Due: t.Due, Expires: t.Expires}
	return t.Traits.Ordering() == "" && Hold(&fresh, &store.Hold{}, now) == store.OK
}

// holder is OK for a task that is running under a token.
func holder(t *Task, token store.Token) store.Status {
	switch {
	case t.Phase == Absent:
		return store.NotFound
	case t.Phase != Running:
		return store.WrongState
	case t.Token != token:
		return store.Stale
	}
	return store.OK
}

// Extend is what becomes of a request to extend a hold. With Until a hold whose deadline
// has passed is over, as if it had been recovered.
func Extend(t *Task, x *store.Extend, now store.Millis) store.Status {
	status := holder(t, x.Token)
	if status == store.OK && x.Until != 0 && t.Deadline <= now {
		return store.Stale
	}
	return status
}

// Cancel is what becomes of a request to end a running task.
func Cancel(p Phase) store.Status {
	switch p {
	case Absent:
		return store.NotFound
	case Running:
		return store.OK
	}
	return store.WrongState
}

package life

import "github.com/ddq-io/ddq/store"

// Ack is what becomes of an ack.
func Ack(t *Task, token store.Token) store.Status {
	if t.Phase == Done && t.Token == token {
		return store.Already
	}
	return holder(t, token)
}

// Says is what becomes of an ack, of a held task, that says something: there must be a cell
// that hears it.
func Says(a *store.Ack, tells store.CellID) store.Status {
	if len(a.Say) > 0 && tells == "" {
		return store.NoCell
	}
	return store.OK
}

// Nack is what becomes of a nack.
func Nack(t *Task, token store.Token) store.Status { return holder(t, token) }

// Recover is what becomes of a nack that counts only once the deadline has passed.
func Recover(t *Task, token store.Token, now store.Millis) store.Status {
	status := holder(t, token)
	if status == store.OK && t.Deadline > now {
		return store.NotDue
	}
	return status
}

// Failure is what a nack leaves behind.
type Failure struct {
	Attempt int              // counted so far
	Reason  store.Reason     // ReasonNone: pending again
	Outcome store.Outcome    // for the history; OutcomeNone: nothing is kept
	Kind    store.ChangeKind // for the log
}

// Fail is what a nack makes of a task whose attempt ended. One whose cancellation was
// asked for is dead, whatever the nack says, and one that cannot be read is, too.
func Fail(n *store.Nack, attempt int, cancelled, unreadable bool) Failure {
	f := Failure{Attempt: attempt, Reason: n.Reason, Outcome: n.Outcome, Kind: store.ChangeRetrying}
	if cancelled {
		f.Reason = store.ReasonCancelled
		if f.Outcome != store.OutcomeNone {
			f.Outcome = store.OutcomeCancelled
		}
	}
	if unreadable {
		f.Reason = store.ReasonCorrupt
	}
	if n.Uncount {
		f.Attempt--
	}
	switch {
	case f.Reason != store.ReasonNone:
		f.Kind = store.ChangeDead
	case n.Uncount:
		f.Kind = store.ChangeReleased
	}
	return f
}

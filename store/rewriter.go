package store

import "context"

// Rewriter writes anew what users wrote, in another form of the same. Nothing else changes by it: no version,
// no time, no state and no position, and nobody is told. All stores of ddq do it.
type Rewriter interface {
	// Rewrite hands what a shard keeps to r, about limit records of it, and stores what r makes of them. Next is
	// empty at the end. What is there during the whole walk is handed over at least once, and what somebody else
	// changes meanwhile once more. Parcels are left out: they are on their way.
	Rewrite(ctx context.Context, s Shard, r Rewrite, cursor string, limit int) (next string, err error)
}

// Rewrite makes another form of what users wrote. Its methods are called under a lock of the store, which they
// must not call. They leave the memory that they are given as it is.
type Rewrite interface {
	// Task puts other values into Payload, Encrypted, RunOf and StepOf, if it reports so. A task has
	// what a store keeps in its body, and nothing else.
	Task(t *Task) (changed bool)
	// Value returns other bytes for a result, an error text or the body of a cell, if it reports so.
	Value(b []byte) (other []byte, changed bool)
	// Entry puts other values into Value and Encrypted of an entry of a journal, if it reports so.
	Entry(e *JournalEntry) (changed bool)
}

// Rewrite has r write texts and the result of a history anew, in memory of their own, and reports whether it did.
func (h *History) Rewrite(r Rewrite) (changed bool) {
	attempts := make([]Attempt, len(h.Attempts))
	copy(attempts, h.Attempts)
	for i := range attempts {
		if text, other := r.Value([]byte(attempts[i].Error)); other {
			attempts[i].Error, changed = string(text), true
		}
	}
	if result, other := r.Value(h.Result); other {
		h.Result, changed = result, true
	}
	h.Attempts = attempts
	return changed
}

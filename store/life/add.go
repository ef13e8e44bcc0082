package life

import "github.com/ddq-io/ddq/store"

// Add is what becomes of a task whose id another one has: a live one keeps it, and is
// the same request's when the fingerprints are the same; another one is replaced.
func Add(p Phase, same bool) store.Status {
	switch {
	case !p.Live():
		return store.Added
	case same:
		return store.Duplicate
	}
	return store.Conflict
}

// KeyTaken reports whether an idempotency key is not free: until the end of its window,
// or, without one, while its task lives.
func KeyTaken(p Phase, until, now store.Millis) bool {
	if until != 0 {
		return until > now
	}
	return p.Live()
}

// KeyConflict is what becomes of a task whose key is taken: Duplicate or Taken when it is
// not stored, Replaced when it takes the place of the one that has the key, and Passed when
// that cannot be any more, so that the key passes to it. again says that it is the request
// that has the key, or replaced the task that has it; same that it is one like it.
func KeyConflict(k *store.Key, p Phase, again, same bool) store.Status {
	switch {
	case again || k.OnConflict == store.KeyReturn:
		return store.Duplicate
	case k.OnConflict == store.KeyReject && k.SameRepeats && same:
		return store.Duplicate
	case k.OnConflict == store.KeyReject:
		return store.Taken
	case p != Pending:
		return store.Passed
	}
	return store.Replaced
}

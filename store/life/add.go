package life

import (
	"strings"

	"github.com/ddq-io/ddq/store"
)

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
// that has the key, had it before, or replaced the task that has it; same that it is one like it.
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

// Requests are the ids of the last store.KeptRequests requests that had an idempotency key
// before, or replaced the task that has it, oldest first, each but the last with a zero byte
// behind it. One id alone is what stores kept before they remembered several.
type Requests string

// Has reports whether a request is among those that are remembered.
func (r Requests) Has(id string) bool {
	for have := range strings.SplitSeq(string(r), "\x00") {
		if have == id && id != "" {
			return true
		}
	}
	return false
}

// Add remembers one more request, and forgets the oldest where those are too many.
func (r Requests) Add(id string) Requests {
	if r == "" {
		return Requests(id)
	}
	if strings.Count(string(r), "\x00") >= store.KeptRequests-1 {
		_, rest, _ := strings.Cut(string(r), "\x00")
		r = Requests(rest)
	}
	return r + "\x00" + Requests(id)
}

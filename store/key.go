package store

import "time"

// Key is the idempotency key of a task. One task of a shard has it at a time.
type Key struct {
	Text string

	// Window is how long the key is taken from when its first task was added, whatever
	// becomes of that. With 0 it is taken while its task is pending or running.
	Window time.Duration

	OnConflict KeyConflict

	// SameRepeats, with KeyReject, takes a task with the fingerprint of the one that has
	// the key for the same request.
	SameRepeats bool
}

// KeyConflict says what becomes of a task whose key is taken.
type KeyConflict uint8

const (
	KeyReturn  KeyConflict = iota // the task that has the key is the answer
	KeyReject                     // it is refused
	KeyReplace                    // it takes the place of the pending one that has the key
)

// KeptRequests is how many ids of requests an idempotency key remembers beside that of the
// task that has it, so that a late repeat of one of them does not replace what came after it.
const KeptRequests = 32

const (
	keyRest    = 10 * time.Second // how long at least a key is not looked at
	keyRestMax = time.Hour        // and at most, while its task lives
)

// KeyLook is when to look again whether a key is free that is taken for as long as its
// task lives, the task being due at the given moment: a little after that, and then
// after pauses that are each as long as all before, so that looks are few. A task may
// be deleted or moved, so it is within an hour in any case.
func KeyLook(now, due Millis) Millis {
	pause := now.Sub(due)
	if due > now {
		pause = due.Sub(now) + keyRest
	}
	return now.Add(max(keyRest, min(pause, keyRestMax)))
}

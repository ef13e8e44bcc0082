package actors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/store"
)

// Tasks of one idempotency key lie in one shard, so that one script of the store
// decides between them, and so do those of one ordering key. Their ids say where: they
// are version 8 UUIDs, of the time, random bits and a part of the hash of the key, and are
// placed by the latter alone. With both keys it is the ordering key's. So an id finds its task without the key, whatever number of shards the topic has.
// A caller may make such an id, and has a request then that it can repeat.
const (
	keyedMark    = "8ddc" // the third group: the version, and what no other UUID has but by chance
	keyedOrder   = 20     // where digits are that rise within a millisecond
	keyedHash    = 24     // where the hash of the key begins
	keyedHashLen = 8      // hexadecimal digits

	maxKeyBytes = 128
	maxWindow   = 366 * 24 * time.Hour
)

// KeyOutcome is what became of a task with an idempotency key.
type KeyOutcome uint8

const (
	KeyNone     KeyOutcome = iota // the task had no key
	KeyTook                       // it was free, and is this task's now
	KeyReturned                   // another task has it, which is the answer
	KeyReplaced                   // the pending task that has it is this one now
	KeyPassed                     // the task that had it is not pending any more: this one is another, and has the key now
)

// isKeyedID reports whether an id is made for a key. What only looks like one is placed
// by those digits all the same.
func isKeyedID(id string) bool {
	return len(id) == uuidLen && id[uuidVersion:uuidVersion+len(keyedMark)] == keyedMark &&
		id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-'
}

// keyedID makes an id for a task with a key. Those that a node makes for one key rise.
func keyedID(key string) string {
	id := []byte(uuid.Must(uuid.NewV7()).String()) // fails only without entropy
	copy(id[keyedOrder:], id[uuidVersion+1:uuidVersion+len(keyedMark)])
	copy(id[uuidVersion:], keyedMark)
	id[keyedOrder-1] = '8' // the variant; random bits would come before those that rise
	copy(id[keyedHash:], hashOfKey(key))
	return string(id)
}

// hashOfKey is the part of an id that is of its key.
func hashOfKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:keyedHashLen/2])
}

// checkIdempotency allows no key.
func checkIdempotency(t *store.Task) *Error {
	k := t.Key
	switch {
	case k == nil:
		return nil
	case k.Text == "" || len(k.Text) > maxKeyBytes:
		return invalid("idempotency.key", "BAD_KEY", "idempotency.key has %d bytes; 1 to %d are allowed", len(k.Text), maxKeyBytes)
	case !utf8.ValidString(k.Text):
		return invalid("idempotency.key", "BAD_KEY", "idempotency.key must be UTF-8")
	case k.Window < 0 || k.Window > maxWindow:
		return invalid("idempotency.window_ms", "OUT_OF_RANGE_FIELD", "idempotency.window_ms must be 1 to %d", maxWindow.Milliseconds())
	case t.Traits.Ordering() == "" && t.ID != "" && !madeFor(t.ID, k.Text):
		return invalid("id", "BAD_ID", "a task with an idempotency key gets its id from the server, or one that is made for the key: a UUID "+
			"whose third group is %s and whose last one begins with %s", keyedMark, hashOfKey(k.Text))
	}
	for _, r := range k.Text {
		if !unicode.IsPrint(r) {
			return invalid("idempotency.key", "BAD_KEY", "idempotency.key must be printable text")
		}
	}
	return nil
}

// madeFor reports whether an id is one of tasks with the key.
func madeFor(id, key string) bool {
	return isKeyedID(id) && id[keyedHash:keyedHash+keyedHashLen] == hashOfKey(key)
}

// checkOrdering allows no key.
func checkOrdering(t *store.Task) *Error {
	key := t.Traits.Ordering()
	if key == "" || t.ID == "" || madeFor(t.ID, key) {
		return nil
	}
	return invalid("ordering_key", "BAD_ID", "a task with an ordering_key gets its id from the server, or one that is made for the key: a UUID "+
		"whose third group is %s and whose last one begins with %s", keyedMark, hashOfKey(key))
}

func errKeyTaken(key, id string, state store.State) *Error {
	what := "is " + state.String()
	if state == store.StateUnknown {
		what = "is done"
	}
	return &Error{Kind: Exists, Reason: "KEY_TAKEN", Field: "idempotency.key", State: state, ID: id,
		Message: fmt.Sprintf("idempotency key %q is that of task %q, which %s", key, id, what)}
}

// answerKeyed answers a task with a key.
func (a *addition) answerKeyed(r store.AddResult) {
	a.out.ID = r.ID
	switch r.Status {
	case store.Added:
		a.out.State, a.out.Replaced, a.out.Key = store.StateScheduled, r.Replaced, KeyTook
	case store.Passed:
		a.out.State, a.out.Key = store.StateScheduled, KeyPassed
	case store.Replaced:
		a.out.State, a.out.Key = store.StateScheduled, KeyReplaced
	case store.Duplicate:
		a.out.State, a.out.Deduplicated, a.out.Key = r.State, true, KeyReturned
	case store.Closed:
		a.out.Err = storeError(store.ErrSealed)
	case store.Taken:
		a.out.Err = errKeyTaken(a.task.Key.Text, r.ID, r.State)
	default:
		a.out.Err = errIDConflict(a.task.ID, r.State)
	}
}

func (s *shard) storeKeyed(ctx context.Context, items []addition) *added {
	m, tasks := &added{items: items, keyed: true}, tasksOf(items)
	_, m.err = s.resolve(ctx, func() error {
		stamp, results, err := s.store.AddKeyed(ctx, s.id, tasks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

// meetKey looks for the keys of a task in the former shards of its topic, which take no
// new task but those of ordering keys that have unfinished ones there: whatever is to
// become of it there is done in the same step. It reports whether that answers the task.
func (r *router) meetKey(ctx context.Context, t *NewTask, out *Enqueued, batch *enqueue, call *countdown) (met bool, failed *Error) {
	for _, place := range placesOf(batch.topic, t.Task.ID)[1:] {
		var stamp store.Stamp
		var results []store.AddResult
		_, err := r.System.resolve(ctx, func() (err error) {
			stamp, results, err = r.store.AddKeyed(ctx, place, []*store.Task{&t.Task})
			return err
		})
		switch {
		case err != nil:
			return false, storeError(err)
		case results[0].Status == store.Closed:
			continue
		}
		result := results[0]
		a := addition{task: &t.Task, out: out, call: call}
		a.out.ID = t.Task.ID
		a.answer(result)
		if made := result.Status; made == store.Replaced || made == store.Added || made == store.Passed {
			ref, err := r.topic(ctx, t.Topic, false)
			if err == nil {
				r.tell(ref, place.N, &pendingChanged{task: store.Entry{ID: result.ID, Due: result.Due, Traits: t.Task.Traits}, seq: stamp.Seq})
			}
		}
		call.finish(1)
		return true, nil
	}
	return false, nil
}

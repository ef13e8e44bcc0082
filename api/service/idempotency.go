package service

import (
	"context"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
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

// checkIdempotency allows no key.
func checkIdempotency(t *store.Task) *problem.Error {
	k := t.Key
	switch {
	case k == nil:
		return nil
	case k.Text == "" || len(k.Text) > place.MaxKeyBytes:
		return problem.BadField("idempotency.key", "BAD_KEY", "idempotency.key has %d bytes; 1 to %d are allowed", len(k.Text), place.MaxKeyBytes)
	case !utf8.ValidString(k.Text):
		return problem.BadField("idempotency.key", "BAD_KEY", "idempotency.key must be UTF-8")
	case k.Window < 0 || k.Window > place.MaxWindow:
		return problem.BadField("idempotency.window_ms", "OUT_OF_RANGE_FIELD", "idempotency.window_ms must be 1 to %d", place.MaxWindow.Milliseconds())
	case t.Traits.Ordering() == "" && t.ID != "" && !place.MadeFor(t.ID, k.Text):
		return problem.BadField("id", "BAD_ID", "a task with an idempotency key gets its id from the server, or one that is made for the key: a UUID "+
			"whose third group is %s and whose last one begins with %s", place.KeyedMark, place.HashOfKey(k.Text))
	}
	for _, r := range k.Text {
		if !unicode.IsPrint(r) {
			return problem.BadField("idempotency.key", "BAD_KEY", "idempotency.key must be printable text")
		}
	}
	return nil
}

// checkOrdering allows no key.
func checkOrdering(t *store.Task) *problem.Error {
	key := t.Traits.Ordering()
	if key == "" || t.ID == "" || place.MadeFor(t.ID, key) {
		return nil
	}
	return problem.BadField("ordering_key", "BAD_ID", "a task with an ordering_key gets its id from the server, or one that is made for the key: a UUID "+
		"whose third group is %s and whose last one begins with %s", place.KeyedMark, place.HashOfKey(key))
}

func errKeyTaken(key, id string, state store.State) *problem.Error {
	what := "is " + state.String()
	if state == store.StateUnknown {
		what = "is done"
	}
	return &problem.Error{Kind: problem.Exists, Reason: "KEY_TAKEN", Field: "idempotency.key", State: state, ID: id,
		Message: fmt.Sprintf("idempotency key %q is that of task %q, which %s", key, id, what)}
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

// meetKey looks for the keys of a task in the former shards of its topic, which take no
// new task but those of ordering keys that have unfinished ones there: whatever is to
// become of it there is done in the same step. It reports whether that answers the task.
func (r *router) meetKey(ctx context.Context, t *NewTask, out *Enqueued, batch *actors.AddBatch, call *shard.Countdown) (met bool, failed *problem.Error) {
	for _, place := range place.Candidates(batch.Topic, t.Task.ID)[1:] {
		var stamp store.Stamp
		var results []store.AddResult
		_, err := r.node.Resolve(ctx, func() (err error) {
			stamp, results, err = r.store.AddKeyed(ctx, place.For(batch.Topic.Life), []*store.Task{&t.Task})
			return err
		})
		switch {
		case err != nil:
			return false, problem.FromStore(err)
		case results[0].Status == store.Closed:
			continue
		}
		result := results[0]
		out.ID = t.Task.ID
		(*answer)(out).Added(&t.Task, result)
		if made := result.Status; made == store.Replaced || made == store.Added || made == store.Passed {
			ref, err := r.node.Topics().Open(ctx, t.Topic, false)
			if err == nil {
				ref.Pending(place.N, stamp.Seq, store.Entry{ID: result.ID, Due: result.Due, Traits: t.Task.Traits})
			}
		}
		call.Finish(1)
		return true, nil
	}
	return false, nil
}

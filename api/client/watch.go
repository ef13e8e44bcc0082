package client

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// ChangeKind is what happened to a task.
type ChangeKind int32

// What may happen.
const (
	ChangeEnqueued        = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_ENQUEUED)         // stored
	ChangeUpdated         = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_UPDATED)          // edited or moved while it waited
	ChangeHeld            = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_HELD)             // taken for a worker
	ChangeReleased        = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_RELEASED)         // given back, the delivery is not counted
	ChangeRetrying        = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_RETRYING)         // a delivery failed, and it is due again
	ChangeDone            = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_DONE)             // acked
	ChangeDead            = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_DEAD)             // a dead letter
	ChangeDeleted         = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_DELETED)          // gone
	ChangeRequeued        = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_REQUEUED)         // due again after it was dead
	ChangeCancelRequested = ChangeKind(ddqv1.ChangeKind_CHANGE_KIND_CANCEL_REQUESTED) // its worker is asked to stop
)

// String returns the kind in lower case, such as "retrying".
func (k ChangeKind) String() string { return wire.Word(ddqv1.ChangeKind(k).String(), "CHANGE_KIND_") }

// WatchOptions say what to watch, and from where on.
type WatchOptions struct {
	Topic string

	// Cursor is where an earlier watch was, see TaskChange.Cursor. Without one the watch
	// begins with the next change, or with the oldest one that the topic keeps.
	Cursor     []byte
	FromOldest bool

	IDs   []string     // only of these tasks, at most 100
	Kinds []ChangeKind // only of these kinds

	// Attributes are those that the tasks must have. The topic has to index them, see
	// Policy.IndexedAttributes, since before the changes that are looked for.
	Attributes map[string]string

	// Progress, if set, is called about every five seconds without a change that is
	// looked for, with a cursor behind what was not: stored, it keeps a watch that
	// looks for little from falling behind what the topic keeps.
	Progress func(cursor []byte)
}

// TaskChange is a task as it was right after something happened to it.
type TaskChange struct {
	ID       string
	Kind     ChangeKind
	State    State     // StateUnknown when the task was deleted
	Time     time.Time // on the store's clock
	Attempt  int       // deliveries counted so far
	Due      time.Time // of a task that waits, or was taken just now; else zero
	Version  int64     // of such a task, where it is told; else 0
	Reason   DeadReason
	Outcome  AttemptOutcome // how a delivery ended, if one did
	Worker   string         // that took or had the task
	Shard    int
	Position int64 // rises by one within a shard

	Attributes map[string]string // of the task, those that the topic indexes

	frame *watchFrame
	n     int // in the frame
}

// watchFrame is one response with the cursor before it.
type watchFrame struct {
	before []byte
	*ddqv1.WatchTasksResponse
}

// Cursor is where a watch goes on behind this change, in whatever process, at whatever
// node: it misses and repeats nothing for as long as the topic keeps what happens.
func (c *TaskChange) Cursor() []byte {
	switch {
	case c.frame == nil:
		return nil
	case c.n == len(c.frame.Changes)-1:
		return slices.Clone(c.frame.Cursor)
	}
	seen := make(map[int32]int64)
	for _, change := range c.frame.Changes[:c.n+1] {
		seen[change.Shard] = change.Position
	}
	cursor := slices.Clone(c.frame.before)
	for _, shard := range slices.Sorted(maps.Keys(seen)) {
		cursor = binary.AppendUvarint(cursor, uint64(shard))
		cursor = binary.AppendUvarint(cursor, uint64(seen[shard]))
	}
	return cursor
}

// Watch goes through what happens to the tasks of a topic, in order for each task, until
// ctx ends, which ends the sequence with its error. It goes on by itself, and misses and
// repeats nothing, when a server or the way to it fails: for as long as that lasts, since
// the client's timeout does not apply. ErrCursorExpired when the watch fell so far behind
// that the topic does not keep what is next, and ErrPrecondition when it keeps nothing.
//
// A loop that is slow is no burden for the server, and gets everything that the topic keeps.
func (c *Tasks) Watch(ctx context.Context, o WatchOptions) iter.Seq2[TaskChange, error] {
	return func(yield func(TaskChange, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w := &watcher{o: o, cursor: o.Cursor, pause: call.NewBackoff()}
		for {
			stream, err := c.queue.WatchTasks(ctx, w.request())
			for err == nil {
				var r *ddqv1.WatchTasksResponse
				if r, err = stream.Recv(); err == nil && !w.takeIn(r, yield) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // a server that ends a watch says why
			}
			e := fromRPC(err)
			if ctx.Err() != nil {
				e = fromContext(ctx.Err())
			}
			if ctx.Err() != nil || !w.goesOn(ctx, c.caller, e) {
				yield(TaskChange{}, e)
				return
			}
		}
	}
}

// watcher is where a watch is.
type watcher struct {
	o      WatchOptions
	cursor []byte
	pause  *backoff.ExponentialBackOff
}

func (w *watcher) request() *ddqv1.WatchTasksRequest {
	r := &ddqv1.WatchTasksRequest{Topic: w.o.Topic, Cursor: w.cursor, Ids: w.o.IDs, Attributes: wire.Attributes(w.o.Attributes)}
	if w.o.FromOldest && w.cursor == nil {
		r.From = ddqv1.WatchFrom_WATCH_FROM_OLDEST
	}
	for _, kind := range w.o.Kinds {
		r.Kinds = append(r.Kinds, ddqv1.ChangeKind(kind))
	}
	return r
}

// TakeIn hands a response over, and reports whether more is wanted.
func (w *watcher) takeIn(r *ddqv1.WatchTasksResponse, yield func(TaskChange, error) bool) bool {
	w.pause.Reset()
	frame := &watchFrame{w.cursor, r}
	for i, change := range r.Changes {
		if !yield(changeFrom(change, frame, i), nil) {
			return false
		}
	}
	w.cursor = r.Cursor
	if len(r.Changes) == 0 && w.o.Progress != nil {
		w.o.Progress(slices.Clone(w.cursor))
	}
	return true
}

// goesOn reports whether to ask again, once it is time for that.
func (w *watcher) goesOn(ctx context.Context, c *caller, e *Error) bool {
	if c.cfg.MaxElapsed < 0 || !e.repeatable(true) {
		return false
	}
	timer := time.NewTimer(w.pause.NextBackOff())
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return true
}

func changeFrom(c *ddqv1.TaskChange, frame *watchFrame, n int) TaskChange {
	change := TaskChange{
		ID: c.Id, Kind: ChangeKind(c.Kind), State: State(c.State), Time: time.UnixMicro(c.TimeUnixUs).UTC(),
		Attempt: int(c.Attempt), Version: c.Version, Reason: DeadReason(c.Reason), Outcome: AttemptOutcome(c.Outcome), Worker: c.Worker,
		Shard: int(c.Shard), Position: c.Position, Attributes: wire.AttributesFrom(c.Attributes), frame: frame, n: n,
	}
	if c.DueUnixMs != 0 {
		change.Due = time.UnixMilli(c.DueUnixMs).UTC()
	}
	return change
}

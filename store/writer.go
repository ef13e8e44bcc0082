package store

import (
	"context"
	"time"
)

// Writer changes tasks; any node may call it, whoever owns the shard. What ends a hold is
// protected by the token of the hold.
type Writer interface {
	// Add inserts tasks that are absent by id. A live task of that id is left as
	// it is; a done or dead one is replaced. Raises Seq by one when any task
	// became pending. ErrSealed in a shard that belongs to another topic, see ShardLife.
	Add(ctx context.Context, s Shard, tasks []*Task) (Stamp, []AddResult, error)

	// AddKeyed adds tasks that have a Key, one after the other, each in one step with
	// the look whether its key is free. A free key makes it Add, and the key is its task's
	// from then on. A key is taken by another task, or by the same one when the call
	// is repeated (Duplicate); for the rest see KeyConflict. With KeyReplace and a task
	// that is not pending any more the key passes to the new one, until the end of the
	// same window. A task that replaced another has the other's id, and its own
	// payload, times and policy, the version after, and no attempt counted; the call repeated is Duplicate
	// until another one replaces it. In a sealed shard there is no Add, but Closed,
	// unless its ordering key has an unfinished task there. A task without a Key, which
	// may have an ordering key, is added in that way, too.
	// Raises Seq by one when any task became pending or was replaced.
	AddKeyed(ctx context.Context, s Shard, tasks []*Task) (Stamp, []AddResult, error)

	// Ack ends holds: the tasks are done. With retention 0 they are deleted. A hold
	// whose deadline has passed can be acked until Recover takes it. WrongState for
	// a task that is pending, dead, or done under another token. A done task keeps
	// its result and its last attempt, see Reader.History. NoCell for an ack that says
	// something of a task that tells no cell; the hold stays.
	Ack(ctx context.Context, s Shard, acks []Ack, retention time.Duration) (Stamp, []Status, error)

	// Nack ends holds and makes the tasks pending again, or dead. One whose
	// cancellation was asked for is dead for ReasonCancelled, whatever the nack
	// says. Raises Seq by one when any task became pending.
	Nack(ctx context.Context, s Shard, nacks []Nack) (Stamp, []NackResult, error)

	// Extend moves the deadline of holds to Visibility from now.
	Extend(ctx context.Context, s Shard, extends []Extend) (Stamp, []ExtendResult, error)

	// Checkpoint adds entries to the journals of tasks that are held: OK, or Already for a
	// name that has an entry, which stays as it is; Stale, WrongState and NotFound as Extend;
	// JournalFull. A hold whose deadline has passed can checkpoint until Recover takes it.
	// Hold returns the journal with every later attempt. It stays while the task is
	// unfinished or a dead letter, also when that is requeued, and is deleted in the step in
	// which the task is done, deleted, replaced or trimmed. A sealed shard takes
	// checkpoints, a full store does not.
	Checkpoint(ctx context.Context, s Shard, checkpoints []Checkpoint) (Stamp, []Status, error)

	// Cancel asks for running tasks to be ended, which their holds keep until they
	// are over: OK, also when it was asked for before, WrongState or NotFound.
	Cancel(ctx context.Context, s Shard, ids []string) (Stamp, []CancelResult, error)

	// Remove deletes pending tasks: OK, WrongState or NotFound, and Stale where a task has
	// another version than the one that is meant.
	Remove(ctx context.Context, s Shard, removals []Removal) (Stamp, []RemoveResult, error)

	// Edit changes pending tasks in place: OK, WrongState or NotFound, and Stale
	// when the task has another version than the edit takes, and Expired when it would
	// be due at or past its expiry. Each edit raises the
	// task's version by one, and is made as a whole or not at all: a Hold sees the
	// task as it was before, or after. Fingerprint and attempts stay. Raises Seq by
	// one when any task moved (see EditResult).
	Edit(ctx context.Context, s Shard, edits []Edit) (Stamp, []EditResult, error)

	// Requeue makes dead tasks due now with Attempt 0 and no expiry: OK or
	// NotFound (also when the task is not dead), and WrongState for a task whose
	// record cannot be read. In a sealed shard a task with an ordering key is Closed,
	// unless the key has an unfinished task there. Raises Seq by one when any task became pending.
	Requeue(ctx context.Context, s Shard, ids []string) (Stamp, []RemoveResult, error)

	// RemoveDead deletes dead tasks: OK or NotFound.
	RemoveDead(ctx context.Context, s Shard, ids []string) (Stamp, []Status, error)
}

// AddResult is the outcome of adding one task.
type AddResult struct {
	ID       string // AddKeyed: of the task that is stored
	Status   Status // Added, Held, Duplicate, Conflict
	Due      Millis // of the task that is stored now
	State    State  // Duplicate, Conflict: of the task that was there
	Token    Token  // Duplicate of a running task: its hold
	Replaced State  // StateDone, StateDead or StateExpired when such a task was replaced
	Deadline Millis // Held
	Attempt  int    // Held
}

// Ack ends one hold.
type Ack struct {
	ID     string
	Token  Token
	Result []byte  // kept with the done task
	Say    []byte  // for the cell that the task tells, see Ended
	Trace  TraceID // kept with the attempt
}

// Nack ends one hold without success.
type Nack struct {
	ID    string
	Token Token
	// Reason is not ReasonNone: dead-letter the task. Else pending again, due
	// Delay from now, and not before it was due when it was held (see Hold.Ahead).
	Reason Reason
	Delay  time.Duration
	// Uncount takes the attempt back.
	Uncount bool
	Error   string // kept as LastError unless empty
	// Outcome is what the task's history tells of the attempt; OutcomeCancelled in
	// its place when that was asked for.
	Outcome Outcome
	Trace   TraceID // kept with the attempt
	Say     []byte  // for the cell that the task tells, if it is dead then, see Ended; without a cell nobody hears it
}

// NackResult is the outcome of one Nack or Recover.
type NackResult struct {
	Status   Status  // OK, Stale, NotFound, WrongState; Recover also NotDue
	State    State   // WrongState: the task's
	Due      Millis  // OK and pending again; 0 dead
	Attempt  int     // OK: counted so far
	Deadline Millis  // NotDue
	Traits   *Traits // OK and pending again
}

// Extend lengthens one hold.
type Extend struct {
	ID         string
	Token      Token
	Visibility time.Duration

	// Until, when it is not 0, bounds the deadline. A hold whose deadline has passed
	// is Stale then, as if it had been recovered.
	Until Millis
}

// ExtendResult is the outcome of one Extend.
type ExtendResult struct {
	Status    Status // OK, Stale, NotFound, WrongState
	Deadline  Millis // OK
	Cancelled bool   // OK: the task's cancellation was asked for
}

// CancelResult is the outcome of one Cancel.
type CancelResult struct {
	Status Status // OK, WrongState, NotFound
	State  State  // WrongState: the task's
	Token  Token  // OK: the hold
}

// Removal is one pending task to delete.
type Removal struct {
	ID        string
	IfVersion int64 // the version that the task must have; 0 takes any
}

// Removals are those of tasks in any version.
func Removals(ids ...string) []Removal {
	all := make([]Removal, len(ids))
	for i, id := range ids {
		all[i].ID = id
	}
	return all
}

// Takes reports whether the removal is about a task of that version.
func (r *Removal) Takes(version int64) bool { return r.IfVersion == 0 || r.IfVersion == version }

// RemoveResult is the outcome of one Remove or Requeue.
type RemoveResult struct {
	Status Status  // OK, WrongState, NotFound; of Remove also Stale, of Requeue also Closed
	State  State   // WrongState, but of Requeue: the task's
	Due    Millis  // OK, of Requeue
	Traits *Traits // OK, of Requeue
}

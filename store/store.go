package store

import (
	"context"
	"time"
)

// Store keeps tasks. All methods are safe for concurrent use. Slices passed in
// are not kept, and those returned belong to the caller; a batch may have any
// size, an empty one does nothing. Results have one entry per item, in order.
//
// Unless a method says otherwise its errors are ErrUnavailable, ErrUnknown,
// ErrFull, ErrFenced for owner calls, ErrClosed, and the context's.
type Store interface {
	Writer
	Owner
	Reader
	Index
	Catalog
	Limits
	Log

	// Info says what an acknowledgement is worth and what is wrong with the store.
	Info(ctx context.Context) (Info, error)
	// Clock returns the store's clock.
	Clock(ctx context.Context) (time.Time, error)
	// Close ends background work and waits for it. It may be called twice.
	Close() error
}

// Stamp is what every reply about a shard carries.
type Stamp struct {
	Now time.Time // the store's clock, to the microsecond
	Seq int64     // number of calls so far that made tasks of the shard pending
}

// Writer changes tasks; any node may call it.
type Writer interface {
	// Add inserts tasks that are absent by id. A live task of that id is left as
	// it is; a done or dead one is replaced. Raises Seq by one when any task
	// became pending.
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

	// TrimKeys forgets keys that are free again, and returns how many it has looked at,
	// at most limit. AddKeyed does so on the way, too.
	TrimKeys(ctx context.Context, s Shard, limit int) (int, error)

	// Ack ends holds: the tasks are done. With retention 0 they are deleted. A hold
	// whose deadline has passed can be acked until Recover takes it. WrongState for
	// a task that is pending, dead, or done under another token. A done task keeps
	// its result and its last attempt, see Reader.History.
	Ack(ctx context.Context, s Shard, acks []Ack, retention time.Duration) (Stamp, []Status, error)

	// Nack ends holds and makes the tasks pending again, or dead. One whose
	// cancellation was asked for is dead for ReasonCancelled, whatever the nack
	// says. Raises Seq by one when any task became pending.
	Nack(ctx context.Context, s Shard, nacks []Nack) (Stamp, []NackResult, error)

	// Extend moves the deadline of holds to Visibility from now.
	Extend(ctx context.Context, s Shard, extends []Extend) (Stamp, []ExtendResult, error)

	// Cancel asks for running tasks to be ended, which their holds keep until they
	// are over: OK, also when it was asked for before, WrongState or NotFound.
	Cancel(ctx context.Context, s Shard, ids []string) (Stamp, []CancelResult, error)

	// Remove deletes pending tasks: OK, WrongState or NotFound.
	Remove(ctx context.Context, s Shard, ids []string) (Stamp, []RemoveResult, error)

	// Edit changes pending tasks in place: OK, WrongState or NotFound, and Stale
	// when the task has another version than the edit takes. Each edit raises the
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

	// Trim deletes done tasks whose retention has passed, at most limit, and
	// returns how many.
	Trim(ctx context.Context, s Shard, limit int) (int, error)

	// TrimDead deletes dead tasks up to and including a position, in order of (Due,
	// ID), Due being when they finished; at most limit, and returns how many.
	TrimDead(ctx context.Context, s Shard, upTo Entry, limit int) (int, error)

	// Seal makes a shard take no new task: from when it returns, Add and HoldNew
	// answer ErrSealed, a large batch perhaps after a part of it. What the shard
	// has goes on as before. Sealing twice is fine.
	Seal(ctx context.Context, s Shard) error

	// DropShard deletes everything of a shard but its owner record. It is not
	// sealed any more.
	DropShard(ctx context.Context, s Shard) error
}

// Owner is what only the owner of a shard calls, and how one becomes it.
type Owner interface {
	// Hold takes pending, due tasks for workers and returns them. It counts the
	// attempt. Repeated with the same token it returns the same hold. A pending
	// task past its expiry, also before its due time, or with an unreadable record
	// is dead-lettered instead. Of an ordering key only the first task is held (see
	// Ordered), in one step with the look that it is: Behind for the others.
	Hold(ctx context.Context, s Shard, f Fence, holds []Hold) (Stamp, []HoldResult, error)

	// HoldNew is Add and Hold in one step, for tasks that are due at once and
	// have a worker waiting: holds[i] takes tasks[i]. A task that is not due by
	// the store's clock, or past its expiry, is added pending (Added, not Held), and so
	// is one with an ordering key.
	// Raises Seq like Add: not when all tasks were held.
	HoldNew(ctx context.Context, s Shard, f Fence, tasks []*Task, holds []Hold) (Stamp, []AddResult, error)

	// Recover is Nack for holds whose deadline has passed: NotDue, with the
	// deadline, for those that have time left.
	Recover(ctx context.Context, s Shard, f Fence, nacks []Nack) (Stamp, []NackResult, error)

	// Claim makes the node of the session the shard's owner: when there is none,
	// when it is that node itself (also in an earlier life), or when the owner's
	// session has expired. Otherwise ErrOwned; ErrSessionLost when the session is
	// not the node's current one.
	Claim(ctx context.Context, s Shard, session Session) (Stamp, Fence, error)

	// Release ends a claim, so that the next one need not wait. ErrFenced when it
	// is not the current one.
	Release(ctx context.Context, s Shard, f Fence) error

	// RenewSession makes the node's session last for TTL from now, and returns the
	// store's clock. With Begin it
	// replaces whatever session the node's name had; else ErrSessionLost when the
	// session is not the one stored. A session that merely ran out is renewed.
	RenewSession(ctx context.Context, session Session) (time.Time, error)
}

// Reader looks without changing anything, but for Sweep.
type Reader interface {
	// Get returns tasks by id; StateUnknown for those that are not there.
	Get(ctx context.Context, s Shard, ids []string) (Stamp, []Snapshot, error)

	// History returns what the attempts of tasks left behind; nothing for a task
	// that is not there, or whose first attempt is not over. An attempt is kept when
	// a Nack or Recover says how it ended, and the last one of a done task.
	History(ctx context.Context, s Shard, ids []string) ([]History, error)

	// Window returns pending tasks due from the position After up to and
	// including To, in order of (Due, ID), at most Limit.
	Window(ctx context.Context, s Shard, w WindowQuery) (Stamp, []Entry, error)

	// DeadWindow is Window for dead tasks, Due being when they finished.
	DeadWindow(ctx context.Context, s Shard, w WindowQuery) ([]Entry, error)

	// Histogram counts pending tasks by due time at one moment: those due before
	// bounds[0], from there to before bounds[1] and so on, and last those from the
	// last bound on, which is one count more than bounds. Bounds rise.
	Histogram(ctx context.Context, s Shard, bounds []Millis) (Stamp, []int64, error)

	// Lanes returns the lanes, but not the zero one, that have pending tasks, behind
	// the given one (nil: from the first), in an order of the store's own, at most limit.
	Lanes(ctx context.Context, s Shard, after *Lane, limit int) ([]LaneHead, error)

	// InOrder returns the first unfinished tasks of ordering keys, in their order, of
	// each key at most limit.
	InOrder(ctx context.Context, s Shard, keys []string, limit int) (Stamp, [][]Ordered, error)

	// Running pages through holds in no particular order. Next is empty at the
	// end. A hold that is there during the whole walk is returned at least once.
	Running(ctx context.Context, s Shard, cursor string, limit int) (holds []Running, next string, err error)

	// List pages through tasks of a kind: pending by due time, dead and done by
	// time of finishing, running in no particular order. Next is empty at the end.
	List(ctx context.Context, s Shard, kind Kind, cursor string, limit int) (tasks []Snapshot, next string, err error)

	// Stats returns counts and ownership of shards.
	Stats(ctx context.Context, shards []Shard) ([]Stats, error)

	// Sweep checks a slice of a shard's keys for tasks that are in no index, and
	// index entries without a task. The first become pending and due now, or, when
	// their record cannot be read, dead; the others are removed. Next is empty
	// when the walk is complete. ErrFenced like Hold.
	Sweep(ctx context.Context, s Shard, f Fence, cursor string, limit int) (repaired int, next string, err error)
}

// Catalog keeps the topics' configurations.
type Catalog interface {
	// PutTopic stores t when the topic's version is t.Version (0: it must be
	// absent) and returns it with the next version. ErrVersion, also when the topic
	// is gone; ErrTopicExists.
	PutTopic(ctx context.Context, t Topic) (Topic, error)
	// GetTopic returns ErrTopicNotFound for an unknown topic.
	GetTopic(ctx context.Context, name string) (Topic, error)
	// ListTopics returns every topic, by name.
	ListTopics(ctx context.Context) ([]Topic, error)
	// DeleteTopic removes the configuration only. ErrTopicNotFound.
	DeleteTopic(ctx context.Context, name string) error
}

// Status is the outcome of one item of a batch.
type Status uint8

const (
	OK         Status = iota + 1
	Added             // Add: stored, pending
	Held              // HoldNew: stored and held
	Duplicate         // Add: the same request was stored before
	Conflict          // Add: another request lives under the id
	Already           // Ack: this token acked before
	NotDue            // Hold: due later; Recover: deadline later
	Stale             // Ack, Nack, Extend, Recover: running under another token; Edit: in another version
	WrongState        // not in a state that allows it
	NotFound          // no such task
	Corrupt           // Hold: unreadable, and dead-lettered now
	Expired           // Hold: past its expiry, and dead-lettered now
	Late              // Hold: at or past its Before
)

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

// Hold asks for one task. An empty ID is allowed in HoldNew only.
type Hold struct {
	ID         string
	Token      Token
	Visibility time.Duration // used when the task has none of its own
	Worker     string
	Node       string // that asks; at most 255 bytes are kept

	// Before, when it is not 0, is the moment from which the task is not held any
	// more: Late. The hold does not outlast Until then, unless that is 0.
	Before, Until Millis
}

// HoldResult is the outcome of holding one task.
type HoldResult struct {
	Status   Status // OK, NotDue, WrongState, NotFound, Corrupt, Expired, Late, Behind
	Task     *Task  // OK
	Due      Millis // OK, NotDue; Behind: of the task that is before it, 0 when it is held
	Deadline Millis // OK
	Head     string // Behind: the id of the task that is before it
}

// Ack ends one hold.
type Ack struct {
	ID     string
	Token  Token
	Result []byte // kept with the done task
}

// Nack ends one hold without success.
type Nack struct {
	ID    string
	Token Token
	// Reason is not ReasonNone: dead-letter the task. Else pending again, due
	// Delay from now.
	Reason Reason
	Delay  time.Duration
	// Uncount takes the attempt back.
	Uncount bool
	Error   string // kept as LastError unless empty
	// Outcome is what the task's history tells of the attempt; OutcomeCancelled in
	// its place when that was asked for.
	Outcome Outcome
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

// RemoveResult is the outcome of one Remove or Requeue.
type RemoveResult struct {
	Status Status  // OK, WrongState, NotFound; of Requeue also Closed
	State  State   // WrongState, but of Requeue: the task's
	Due    Millis  // OK, of Requeue
	Traits *Traits // OK, of Requeue
}

// Entry is a pending task without its body.
type Entry struct {
	ID     string
	Due    Millis
	Traits *Traits // nil: none. Of no meaning in a position
}

// WindowQuery says which pending tasks to return.
type WindowQuery struct {
	After Entry // the zero Entry starts at the oldest
	To    Millis
	Limit int   // > 0
	Lane  *Lane // only those of this lane, which is not the zero one; nil: all
}

// Running is a hold without the task's body.
type Running struct {
	ID       string
	Token    Token
	Deadline Millis
	Attempt  int
	Worker   string

	Node      string // that took the task for the worker
	Started   Millis // 0: not known
	Cancelled bool   // cancellation was asked for
}

// Kind is a list that tasks are in.
type Kind uint8

const (
	KindPending Kind = iota + 1
	KindRunning
	KindDone
	KindDead
)

// Stats are a shard's numbers.
type Stats struct {
	Stamp
	Pending  int64 // Ready included
	Ready    int64
	Running  int64
	Done     int64
	Dead     int64
	Keys     bool   // some key is taken, or was and is not forgotten
	Logged   bool   // the log has changes, see Log
	Owner    string // empty: released or never claimed
	Epoch    int64
	OldestMs Millis // due time of the oldest pending task, 0 when none
	Index    IndexState
}

// Session is a node's lease.
type Session struct {
	Node  string
	Start Token // random for every start of the process
	TTL   time.Duration
	Addr  string // where other nodes reach it
	Begin bool
}

// Info describes a store.
type Info struct {
	Name       string // embedded, memory, redis-everysec, redis-always, redis-no-fsync, redis-volatile
	Durability string // fast, replicated, synced, none
	Warnings   []string
}

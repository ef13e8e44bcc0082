package store

import (
	"context"
	"time"
)

// Owner is what the owner of a shard calls, under the fence of its claim, and how a node
// becomes one: it keeps a session, and claims shards under it.
type Owner interface {
	// Hold takes pending, due tasks for workers and returns them, with their journals; also tasks
	// that are due soon, where Hold.Ahead says so. It counts the attempt. Repeated with the same token
	// it returns the same hold. A pending task past its expiry, also before its due time,
	// or with an unreadable record is dead-lettered instead. Of an ordering key only the
	// first task is held (see Ordered), in one step with the look that it is: Behind for
	// the others. Once it has looked at MaxBodies bytes of bodies it goes no further:
	// LeftOut for the rest, of which nothing has changed. The first is never left out.
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
	// session is over. Otherwise OwnedError, which is ErrOwned; ErrSessionLost when the
	// session is not the node's current one. A session that ends later than two TTL from now is
	// of a clock that was ahead, and is over, too.
	Claim(ctx context.Context, s Shard, session Session) (Stamp, Fence, error)

	// Release ends a claim, so that the next one need not wait. ErrFenced when it
	// is not the current one.
	Release(ctx context.Context, s Shard, f Fence) error

	// RenewSession makes the node's session last for TTL from now. With Begin it replaces whatever session the node's name had; else
	// ErrSessionLost while one of another start lasts. A session that ran out is renewed,
	// and one that the store has forgotten, as after a restore, begins again.
	RenewSession(ctx context.Context, session Session) (Renewal, error)

	// Sweep checks a slice of a shard's keys for tasks that are in no index, and
	// index entries without a task. The first become pending and due now, or, when
	// their record cannot be read, dead; the others are removed, or dead as well when
	// they show that a record is gone. It reads about MaxBodies bytes at most. Next is empty
	// when the walk is complete. ErrFenced like Hold.
	Sweep(ctx context.Context, s Shard, f Fence, cursor string, limit int) (repaired int, next string, err error)
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

	// Ahead is how long before its due time the task may be held, MaxHoldAhead at most;
	// HoldNew does not look at it. Such a hold begins at the due time, and its deadline
	// counts from then: nobody may see the task before. It is NotDue all the same if it
	// has an ordering key, or if at its due time it would be past its expiry, Late, or at
	// its Until.
	Ahead time.Duration
}

// MaxHoldAhead is the most that a Hold may be ahead of the due time.
const MaxHoldAhead = 250 * time.Millisecond

// HoldResult is the outcome of holding one task.
type HoldResult struct {
	Status   Status // OK, NotDue, WrongState, NotFound, Corrupt, Expired, Late, Behind, LeftOut
	Task     *Task  // OK
	Due      Millis // OK, NotDue; Behind: of the task that is before it, 0 when it is held
	Deadline Millis // OK
	Head     string // Behind: the id of the task that is before it
}

// Session is a node's lease.
type Session struct {
	Node  string
	Start Token // random for every start of the process
	TTL   time.Duration
	Addr  string // where other nodes reach it
	Begin bool

	// Wants has a claim that is refused leave a note for the owner that this node wants
	// the shard: Renewal.Wanted.
	Wants bool
}

// Renewal is what a node learns when it renews its session.
type Renewal struct {
	Now time.Time // by the store's clock

	// Forgot says that the store knew no session of the node: the node is new to it, or the store was
	// emptied or set back since.
	Forgot bool

	// Wanted are shards of the node that others asked for since the renewal before, in any
	// order. It is a hint: of more than MaxWanted some are left out, and others may ask for
	// a shard that is not the node's any more.
	Wanted []Wanted
}

// Wanted is a shard that a node asked its owner for.
type Wanted struct {
	Shard Shard
	By    string // the node
}

// MaxWanted is how many notes for a node are kept until it renews its session.
const MaxWanted = 256

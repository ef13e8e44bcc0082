package store

import "context"

// Reader looks, and changes nothing. Any node may call it.
type Reader interface {
	// Get returns tasks by id; StateUnknown for those that are not there. It goes no
	// further once the tasks have MaxBodies bytes of bodies together: then there are
	// fewer of them than ids, the first. GetAll asks until there are all.
	Get(ctx context.Context, s Shard, ids []string) (Stamp, []Snapshot, error)

	// History returns what the attempts of tasks left behind; nothing for a task
	// that is not there, or whose first attempt is not over. An attempt is kept when
	// a Nack or Recover says how it ended, and the last one of a done task.
	History(ctx context.Context, s Shard, ids []string) ([]History, error)

	// Journal returns the journal of a task, in no particular order; nothing for a task
	// that is not there, is done, or has none. It is bounded by MaxJournalBytes.
	Journal(ctx context.Context, s Shard, id string) ([]JournalEntry, error)

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
	// time of finishing, running in no particular order. Next is empty at the end. A
	// page ends before limit once its tasks have MaxBodies bytes of bodies together.
	List(ctx context.Context, s Shard, kind Kind, cursor string, limit int) (tasks []Snapshot, next string, err error)

	// Stats returns counts and ownership of shards.
	Stats(ctx context.Context, shards []Shard) ([]Stats, error)

	// Counts is Stats without Ready, which stays 0, and without OldestMs, which may: those may
	// cost a walk over the tasks that are due. The rest costs the same however many tasks there are.
	Counts(ctx context.Context, shards []Shard) ([]Stats, error)
}

// Entry is a pending task without its body.
type Entry struct {
	ID     string
	Due    Millis
	Traits *Traits // nil: none. Of no meaning in a position
}

// EntriesOf are tasks without their bodies.
func EntriesOf(tasks []*Task) []Entry {
	es := make([]Entry, len(tasks))
	for i, t := range tasks {
		es[i] = Entry{ID: t.ID, Due: t.Due, Traits: t.Traits}
	}
	return es
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
	Cells    int64  // see Cells
	Parcels  int64  // in both boxes and all queues
	Owner    string // empty: released or never claimed
	Epoch    int64
	OldestMs Millis // due time of the oldest pending task, 0 when none
	Index    IndexState
	Life     ShardLife
}

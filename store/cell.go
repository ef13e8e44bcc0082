package store

import (
	"context"
	"time"
)

// Cells keeps named values of shards, and changes them together with tasks: what is made
// of tasks that belong together, and of what comes again, is kept in them. Stores know
// nothing of what a cell means. All stores of ddq keep them.
type Cells interface {
	// Commit makes changes one after the other, each as a whole or not at all: OK, or
	// the first that is in its way of Stale, HoldLost, WrongState, Conflict and Closed.
	// With a fence it is an owner's call; without, any node's. A full store refuses
	// the whole call when one of them brings work, see life.BringsWork.
	// Raises Seq by one when any task became pending.
	Commit(ctx context.Context, s Shard, f *Fence, commits []Commit) (Stamp, []CommitResult, error)

	// Cells returns cells by id; Version 0 for those that are not there. It goes no
	// further once they have MaxBodies bytes together: then there are fewer of them
	// than ids, the first.
	Cells(ctx context.Context, s Shard, ids []CellID) ([]Cell, error)

	// Wakes returns cells that wake from the position After up to and including To, in
	// order of (At, ID), at most Limit.
	Wakes(ctx context.Context, s Shard, q WakeQuery) (Stamp, []Wake, error)

	// WakeHistogram is Histogram for cells and when they wake.
	WakeHistogram(ctx context.Context, s Shard, bounds []Millis) (Stamp, []int64, error)

	// Listed returns the cells of a list behind a position, in order of (Listed, ID), at
	// most limit, and fewer once they have MaxBodies bytes together.
	Listed(ctx context.Context, s Shard, list string, after Wake, limit int) ([]Cell, error)

	// CellPage pages through the cells of a kind in no particular order. Next is empty
	// at the end. A cell that is there during the whole walk is returned at least once.
	CellPage(ctx context.Context, s Shard, kind byte, cursor string, limit int) (cells []Cell, next string, err error)

	// Parcels returns what is in a box behind a number, in order, at most limit, and
	// fewer once they have MaxBodies bytes together.
	Parcels(ctx context.Context, s Shard, box Box, after int64, limit int) ([]Parcel, error)
}

// CellID names a cell in its shard: a byte that says its kind, and a key of 1 to 255 bytes.
type CellID string

// The kinds of cells.
const (
	CellSchedule = 's'
	CellWorkflow = 'w'
	CellWalk     = 'f'
	CellTally    = 't'
)

// MaxCellKey is how long the key of a cell may be.
const MaxCellKey = 255

// MaxCell is how many bytes a cell may have.
const MaxCell = 1 << 20

// Kind says whose a cell is. Cells of upper-case kinds are parts of others, and never wake.
func (id CellID) Kind() byte { return id[0] }

// Key tells the cells of a kind apart.
func (id CellID) Key() string { return string(id[1:]) }

// Cell is a named value of a shard with a version and a time to wake.
type Cell struct {
	ID      CellID
	Version int64  // 1 when first put; one more with each put. 0: there is none
	Wake    Millis // owners find it by that; 0: never
	List    string // a list that shows it, in order of Listed; empty: none
	Listed  Millis
	Body    []byte
}

// Wake is a position among the cells of a shard that wake, or of a list.
type Wake struct {
	At Millis
	ID CellID
}

// WakeQuery says which wakes to return.
type WakeQuery struct {
	After Wake // the zero Wake starts at the earliest
	To    Millis
	Limit int // > 0
}

// MaxPieces is how many pieces a Commit may have: entries of its slices, and Take.
const MaxPieces = 3000

// Commit changes cells, parcels, holds and tasks of one shard. No task is in one of its
// slices twice.
type Commit struct {
	Puts    []Put    // of different cells
	Under   []Holder // holds that must be alive
	Acks    []Ack    // holds that end: the tasks are done
	Adds    []*Task  // tasks without a Key; absent by id, or done or dead
	Removes []Remove
	Cancels []string // tasks that are asked to end, when they run
	Send    []Parcel // appended to a box, which numbers them

	Take int64   // parcels of the in-box up to this number are forgotten
	Drop []int64 // parcels of the out-box that are forgotten

	Retention time.Duration // of the tasks of Acks, see Writer.Ack
}

// Put changes one cell. A cell without a body is deleted.
type Put struct {
	Cell       // its Version is not looked at
	If   int64 // the version that it must have: 0 absent, AnyVersion any
}

// AnyVersion is the If of a Put that overwrites whatever there is.
const AnyVersion = -1

// Holder is the hold of a task.
type Holder struct {
	ID    string
	Token Token
}

// Remove deletes a pending task, if it is there.
type Remove struct {
	ID   string
	Must bool // the commit is WrongState when the task is not pending
}

// CommitResult is the outcome of one Commit.
type CommitResult struct {
	Status Status // OK, Stale, HoldLost, WrongState, Conflict, Closed
	Cell   Cell   // Stale: the one that is in the way, as it is; Version 0 when it is not there
	ID     string // HoldLost, WrongState, Conflict: the task
}

// Box is where the parcels of a shard lie.
type Box uint8

const (
	InBox  Box = iota + 1 // for cells of the shard
	OutBox                // on their way to another shard
)

// Parcel is what a call leaves for a cell. It lies in the in-box of the shard until a
// commit of the owner has taken it, or in the out-box on its way to another shard.
type Parcel struct {
	Number int64 // of its box, from 1, rising; numbers may be left out
	At     Millis
	To     CellID
	Topic  string // of the shard that it goes to, for the out-box; empty: it is for the in-box
	Body   []byte // as it was sent; nil when Ended says what there is to say
	Ended  *Ended
}

// Size is about how many bytes a parcel has.
func (p *Parcel) Size() int {
	n := len(p.To) + len(p.Topic) + len(p.Body)
	if e := p.Ended; e != nil {
		n += len(e.ID) + len(e.Worker) + len(e.Error) + len(e.Result)
	}
	return n
}

// Ended is what the end of a task leaves for the cell that the task names (Task.Tells), and
// so does a task that ended and is pending again.
type Ended struct {
	ID      string
	Kind    ChangeKind // ChangeDone, ChangeDead, ChangeDeleted; ChangeRequeued: it is pending again
	Reason  Reason     // Dead
	Attempt int        // counted
	Due     Millis
	Started Millis // of the last attempt, when the task ended by it
	Worker  string // of that attempt
	Error   string // of the last attempt that failed
	Result  []byte // Done
}

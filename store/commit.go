package store

import (
	"context"
	"slices"
	"time"
)

// Cells keeps named values of shards, and changes them together with tasks: what is made
// of tasks that belong together, and of what comes again, is kept in them. Stores know
// nothing of what a cell means. All stores of ddq keep them.
type Cells interface {
	// Commit makes changes one after the other, each as a whole or not at all: OK, or
	// the first that is in its way of Stale, HoldLost, NoCell, WrongState, Conflict, Received, WindowFull
	// and Closed.
	// With a fence it is an owner's call; without, any node's. A full store refuses
	// the whole call when one of them brings work, see life.BringsWork.
	// Raises Seq by one when any task became pending. What they send is numbered in their
	// order; what the ends of tasks leave may come before or behind that.
	Commit(ctx context.Context, s Shard, f *Fence, commits []Commit) (Stamp, []CommitResult, error)

	// Cells returns cells by id; Version 0 for those that are not there. It goes no
	// further once they have MaxBodies bytes together: then there are fewer of them
	// than ids, the first.
	Cells(ctx context.Context, s Shard, ids []CellID) ([]Cell, error)

	// Server returns the server that answers about a shard, as Stamp.Server, and asks it nothing. What
	// is read after that comes from this server, or from one that took over: then no Commit is made
	// whose From it is.
	Server(ctx context.Context, s Shard) uint64

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

	// Told is Parcels of the in-box, no further than for q.Cells cells, and then Cells of those, in the
	// order in which they are first told something. Unlike other calls it may return what calls in
	// flight have written and what is not as durable yet as Info says: nothing may follow from it but
	// a Commit of the same shard, which is not durable without it.
	Told(ctx context.Context, s Shard, q ToldQuery) ([]Parcel, []Cell, error)

	Queues
}

// Queues are the outbox queues of a shard, and what it has received of those of others. Nothing but Commit
// changes them, and these rules hold for it:
//
//  1. Once. A commit with Receive is made only if none of its messages is settled: not at or below the floor of
//     the receipt, nor among the numbers above it or the refused ones. Else nothing of it is made: Received, and the
//     result says which are settled as made and which as refused. When it is made, the floor becomes max(floor,
//     Head-1), and its numbers are settled, together with the tasks, entities and inbox messages of the commit. At
//     most MaxReceive numbers are above the floor: WindowFull for a commit that would have more, unless it has the head
//     of the queue, which must not wait for what is behind it.
//  2. Finish. Only an owner's commit forgets messages of a queue. What takes the place of a refused one, as a
//     dead letter, is in that commit.
//  3. Head. What a receipt may forget follows from the first number that is in the queue, and from nothing else.
//     Messages says it with each page.
//  4. Numbers of messages rise over all queues of a shard, and none is given twice: each is max(the last one + 1,
//     the server's clock, Commit.Clock), in microseconds. A store that was set back goes on above what it lost.
//  5. Refused numbers are settled in the destination before anything follows from it in the source. All of them
//     above the floor are kept, and of the others the last ones, KeptRefused in all.
//  6. A sealed shard refuses a commit that receives and adds a task, makes an entity or refuses a message,
//     whatever else it changes: Closed. Messages for the inbox are taken.
//  7. Receipts of a sealed shard stay and can be read: who delivers to the next generation of shards asks the
//     former shard first, and seals it first if that was not done. Seal waits for a replica, where there is one.
//  8. A commit with Receive names the server of the destination as of when the page was read, see Commit.From.
//     After a failover a late call would raise the floor over what came back.
type Queues interface {
	// Queues returns the queues of a shard that have messages, in order of Queue.Compare, behind one (the zero
	// Queue: from the first), at most limit. Their Source has the Life that messages were sent with.
	Queues(ctx context.Context, s Shard, after Queue, limit int) ([]QueueHead, error)

	// Messages returns a page of a queue of the shard: the messages behind a number, at most limit, and no further
	// once they have so many bytes together, of which MaxBodies count; it has one at least, if there is one. The page says where the
	// next one begins, also when some or all of its messages cannot be read. The Life of q.Source counts, not that of s.
	Messages(ctx context.Context, s Shard, q Queue, after int64, limit, bytes int) (MessagePage, error)

	// Receipts returns what the shard has received of queues of others, one for each. ErrReceipt if one cannot be read.
	Receipts(ctx context.Context, s Shard, queues []Queue) ([]Receipt, error)
}

// MaxPieces is how many pieces a Commit may have: entries of its slices, those of Receive and Finish among them, and Take.
const MaxPieces = 3000

// Pieces is how many pieces the commit has, see MaxPieces.
func (c *Commit) Pieces() int {
	n := len(c.Puts) + len(c.Under) + len(c.Acks) + len(c.Removes) + len(c.Cancels) + len(c.Adds) + len(c.Send) + len(c.Drop)
	if c.Take > 0 {
		n++
	}
	if r := c.Receive; r != nil {
		n += 1 + len(r.Numbers) + len(r.Refused)
	}
	if f := c.Finish; f != nil {
		n += 1 + len(f.Numbers)
	}
	return n
}

// Commit changes cells, parcels, holds and tasks of one shard. No task is in one of its
// slices twice.
type Commit struct {
	Puts    []Put    // of different cells
	Under   []Holder // holds that must be alive
	Acks    []Ack    // holds that end: the tasks are done
	Adds    []*Task  // those without a Key: absent by id, or done or dead. For the others see CommitResult.Adds
	Removes []Remove
	Cancels []string // tasks that are asked to end, when they run
	Send    []Parcel // appended to a box or to a queue, which numbers them

	Take int64   // parcels of the in-box up to this number are forgotten
	Drop []int64 // parcels of the out-box that are forgotten

	Receive *Receive // messages of a queue of another shard, or of this one, that the commit settles; nil: none
	Finish  *Finish  // messages of a queue of this shard that are forgotten; needs a fence; nil: none

	// Clock is what the sender takes the clock of the shard's server for, in microseconds; 0: it does not say. Numbers
	// of messages that are sent to queues are not below it, so that none is given twice by a replica whose clock is behind.
	Clock int64

	Retention time.Duration // of the tasks of Acks, see Writer.Ack

	// From is the server, by Server or Wakes, that what the commit follows from was read from; 0: any.
	// Should another one get the call, it makes none of its commits, ErrAnotherServer: there the
	// numbers of parcels and cells may be others'. So whoever has read either says it. All commits
	// of a call have the same.
	From uint64

	// Made, unless nil, is called when the commit is made, and perhaps long before the call returns, as
	// it is not as durable yet as Info says; or not at all. Nothing may follow from it but calls of the
	// same shard, none of which is durable without it. It is called once at most, by a goroutine that
	// holds no lock, and must not block.
	Made func(Stamp)
}

// Early is a store that tells of parcels before the calls that left them return.
type Early interface {
	// OnInBox has f called with the number of the last parcel of an in-box, as soon as Told returns it.
	// It is called before any other call, and f as Commit.Made is.
	OnInBox(f func(s Shard, in int64))
}

// Removed are the ids of the tasks that c removes.
func (c *Commit) Removed() []string {
	ids := make([]string, len(c.Removes))
	for i := range c.Removes {
		ids[i] = c.Removes[i].ID
	}
	return ids
}

// Keyed reports whether a task of the commit has an idempotency key.
func (c *Commit) Keyed() bool {
	return slices.ContainsFunc(c.Adds, func(t *Task) bool { return t.Key != nil })
}

// Put changes one cell. A cell without a body is deleted.
type Put struct {
	Cell        // its Version is not looked at
	If    int64 // the version that it must have: 0 absent, AnyVersion any
	First int64 // the version of a cell that is made, see FirstVersion; 0: 1
}

// Next is the version of the cell once p is made over one of a version; 0: there is none then.
func (p *Put) Next(over int64) int64 {
	switch {
	case len(p.Body) == 0:
		return 0
	case over == 0:
		return max(1, p.First)
	}
	return over + 1
}

// FirstVersion is where the versions of a cell begin whose maker has drawn a life for it, so that
// what was read of a cell of that id is not taken for what is there since it was deleted and made
// anew. Versions stay below 1<<53, up to which every store counts.
func FirstVersion(life uint64) int64 { return 1 + int64(life>>12) }

// AnyVersion is the If of a Put that overwrites whatever there is.
const AnyVersion = -1

// Holder is the hold of a task.
type Holder struct {
	ID    string
	Token Token
}

// Remove deletes a pending task, if it is there, or a dead one.
type Remove struct {
	ID   string
	Due  Millis // not 0: the commit is WrongState unless the task is pending and due then, and no attempt of it counts. One that was released, or sleeps, is due at another time
	Dead bool   // the commit is WrongState unless the task is dead; nobody is told that it goes, as by RemoveDead
}

// CommitResult is the outcome of one Commit.
type CommitResult struct {
	Status Status // OK, Stale, HoldLost, NoCell, WrongState, Conflict, Received, WindowFull, Closed
	Cell   Cell   // Stale: the one that is in the way, as it is; Version 0 when it is not there
	ID     string // HoldLost, NoCell, WrongState, Conflict: the task

	// Of Received: which messages of the commit are settled, in no particular order.
	Made    []int64
	Refused []int64 // those that were refused

	// Adds says, of a commit that is OK and has a task with a Key, what became of each of its tasks. Those without
	// a Key are Added. One with a Key is added as by Writer.AddKeyed, decided in the commit itself: Added, Replaced, Passed
	// and Duplicate are made; Taken and Conflict are refused, so its number becomes one of Receive.Refused;
	// Closed is neither. LeftOut is neither made nor settled, and belongs into another commit: its id, its key, or
	// the task that has the key is one that the commit changes besides, see Keying.
	Adds []AddResult
}

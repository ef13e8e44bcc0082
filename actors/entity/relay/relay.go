// Package relay carries messages from the outbox queues of a shard to the shards of their topics.
//
//	ack, step ─ one commit ─▶ queue ─ turn of the owner ─▶ shard of the topic, with a receipt
//	                            │                             │ made, or refused for good
//	                            └── finish, and dead letters ◀┘
//
// A queue has the messages of one class that a shard sends to one topic. The receipt of a queue, in each shard
// of the topic, says which numbers are settled: made or refused, once. A message leaves its queue only behind
// that. Nothing here depends on an order, a cursor or on who owns the shard: a former owner that still sends is
// told what is settled already. The rules that the store holds are those of store.Queues.
//
// Relay carries one page of one queue at a time. Gate, one of a node, says how much work a topic takes. Ring,
// one of a shard, says whose turn it is. Both are pure.
package relay

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	pageBytes     = 1 << 20
	shardsAtATime = 4 // that a page is delivered to
)

// Store is what the relay needs of a store.
type Store interface {
	store.Cells
	store.Queues
	Seal(ctx context.Context, s store.Shard) error
}

// Tasks is what the relay needs of a store where others of a task's keys may be.
type Tasks interface {
	store.Reader
	AddKeyed(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error)
}

// Relay carries the messages of one shard. Its functions are safe for concurrent use; one turn of a queue is
// in flight at most.
type Relay struct {
	ID      store.Shard
	Store   Store
	Tasks   Tasks
	Admit   func(t *store.Topic, q store.Queue, n int) int // how many messages a topic takes now, see Gate; the turn gives back what it does not use
	GiveUp  func(topic string, n int)
	Topic   func(ctx context.Context, name string, create bool) (*store.Topic, *problem.Error) // as the node knows it
	Stored  func(ctx context.Context, name string) (*store.Topic, *problem.Error)              // as the store has it
	Resolve func(ctx context.Context, call func() error) (repeated bool, err error)            // repeats a call of unknown outcome
	Now     func() store.Millis                                                                // by the shard's clock
	Counts  func(ctx context.Context, shards []store.Shard) ([]store.Stats, error)             // of any number of shards
	Pages   chan struct{}                                                                      // has room for the pages that all relays of the node may have in memory; nil: for any number
	Knobs   knobs.Knobs
	Log     *slog.Logger

	sealed sync.Map // sealedAt: former shards that are known to be sealed
}

// sealedAt is a shard that a server has sealed. Another server may not know of that.
type sealedAt struct {
	shard  store.Shard
	server uint64
}

// Start is what a turn begins with.
type Start struct {
	Fence  store.Fence  // of the claim
	Source *store.Topic // of the shard
	Queue  store.Queue  // or OldBox
	Walk   *Walk        // of the turns before it, of OldBox: nil at its head
	After  int64        // where the turn before ended; 0: at the head. Nothing follows from it but what is read
	Passed int          // messages before After that are not settled. More than Knobs.RelayWindow of them hold up their topic
	Fresh  bool         // the topic is read from the store: a shard of it was closed
}

// Outcome is what a turn came to. What it did before it failed is in it, too.
type Outcome struct {
	Queue         store.Queue
	Made          []Made
	Told          []fleet.Committed
	Undeliverable int   // messages that became dead letters, or cannot be read
	Forgotten     int   // completions of topics and workflows that are gone
	After         int64 // where the next turn goes on; 0: at the head
	Passed        int   // messages before After that are not settled
	Left          int   // messages of the page that wait
	Shut          bool  // the topic takes no work now: its gate wakes the queue
	Closed        bool  // a shard of the topic was closed: the next turn reads the topic from the store
	More          bool  // there is more behind After, or the queue was read from its midst
	Err           error

	// Of OldBox.
	Walk    *Walk           // that goes on at After
	Walked  bool            // the walk came to the end of it
	Waiting map[string]bool // topics for which work waits, if Walked
}

// Made are tasks that one store call made pending.
type Made struct {
	Shard store.Shard
	Seq   int64
	Tasks []store.Entry
}

// turn is one turn.
type turn struct {
	*Relay
	Start
	sizes   knobs.Knobs
	to      *store.Topic           // that the messages go to; nil: it is gone
	gone    string                 // why
	home    uint64                 // the server of the shard itself, as of before the page was read
	servers map[store.Shard]uint64 // those of the topic's shards
	page    store.MessagePage
	items   []*item
	tallies map[store.Shard]*tally // in the place of receipts, of OldBox
	out     Outcome
}

// Carries reports whether the relay carries a queue. What nodes of a later version send in other classes is left to them.
func Carries(q store.Queue) bool {
	return q.Class == store.ClassWork || q.Class == store.ClassCompletion || q.Class == store.ClassAsk
}

// Turn carries a page of a queue.
func (r *Relay) Turn(ctx context.Context, from Start) *Outcome {
	t := &turn{Relay: r, Start: from, sizes: r.Knobs.WithDefaults(), servers: make(map[store.Shard]uint64)}
	t.out.Queue = from.Queue
	if r.Pages != nil {
		select {
		case r.Pages <- struct{}{}:
			defer func() { <-r.Pages }()
		case <-ctx.Done():
			t.out.Err = ctx.Err()
			return &t.out
		}
	}
	t.out.Err = t.run(ctx)
	if t.out.Err != nil {
		t.out.After, t.out.Passed, t.out.Walk = 0, 0, nil
	}
	return &t.out
}

func (t *turn) run(ctx context.Context) error {
	if t.Queue == OldBox() {
		return t.walk(ctx)
	}
	t.Walk = nil
	if err := t.find(ctx); err != nil {
		return err
	}
	n, work := t.sizes.RelayPage, t.Queue.Class == store.ClassWork && t.to != nil
	if work {
		if n = t.Admit(t.to, t.Queue, n); n == 0 {
			return t.shut(ctx)
		}
	}
	made, err := t.carry(ctx, n)
	if work && made < n {
		t.GiveUp(t.to.Name, n-made)
	}
	return err
}

// shut has a queue wait for its topic, if there is anything in it.
func (t *turn) shut(ctx context.Context) error {
	page, err := t.Store.Messages(ctx, t.ID, t.Queue, 0, 1, 1)
	t.out.Shut = page.Head != 0
	return err
}

// find finds the topic that the messages go to. A failure that passes is an error. Where children begin and
// workflows are is known of the topic as the store has it only.
func (t *turn) find(ctx context.Context) (err error) {
	var e *problem.Error
	work, fresh := t.Queue.Class == store.ClassWork, t.Fresh
	if t.Walk != nil { // the topic that was closed may be another one
		fresh = fresh || slices.ContainsFunc(t.page.Messages, func(m store.Message) bool { return message.Begins(&m) })
	}
	if work && (!fresh || t.Walk != nil) {
		t.to, e = t.Topic(ctx, t.Queue.To, true)
	}
	if e == nil && (!work || fresh) {
		t.to, e = t.Stored(ctx, t.Queue.To)
	}
	switch {
	case e == nil:
		t.gone = ""
	case e.Kind == problem.NotFound || e.Kind == problem.Invalid:
		t.to, t.gone = nil, e.Reason+": "+e.Message
	default:
		return e
	}
	return nil
}

// carry reads at most n messages, delivers them, and forgets those that are settled. It returns how many
// tasks and children it made.
func (t *turn) carry(ctx context.Context, n int) (made int, err error) {
	t.home = t.Store.Server(ctx, t.ID)
	t.noteServers(ctx)
	t.page, err = t.Store.Messages(ctx, t.ID, t.Queue, t.After, n, pageBytes)
	if err != nil {
		return 0, err
	}
	if made, err = t.settle(ctx); err == nil {
		t.goOn()
	}
	return made, err
}

// noteServers notes which servers answered about the shards of the topic before anything was read that a commit there
// follows from.
func (t *turn) noteServers(ctx context.Context) {
	if t.to == nil {
		return
	}
	for _, s := range place.Shards(t.to) {
		t.servers[s] = t.Store.Server(ctx, s)
	}
}

// settle brings the messages of the page to where they go, and forgets those that are settled. It returns how many it
// made.
func (t *turn) settle(ctx context.Context) (made int, err error) {
	if t.Queue.Class == store.ClassAsk {
		err = t.ask(ctx)
	} else if err = t.read(ctx); err == nil && t.to != nil {
		err = t.deliver(ctx)
	}
	for _, it := range t.items {
		if it.state >= settled && it.why == "" {
			made++
		}
	}
	if e := t.finish(ctx); e != nil {
		return made, e
	}
	return made, err
}

// goOn says where the next turn begins.
func (t *turn) goOn() {
	for _, it := range t.items {
		if it.state < settled {
			t.out.Left++
		}
	}
	passed := t.Passed + t.out.Left
	switch {
	case t.page.Next != 0 && passed < t.sizes.RelayWindow:
		t.out.After, t.out.Passed, t.out.More = t.page.Next, passed, true
	case t.page.Next != 0 || t.After != 0:
		t.out.More, t.out.Left = true, passed
	}
}

// committed is what one commit came to.
type committed struct {
	store.CommitResult
	stamp store.Stamp
}

// commit makes one commit, and repeats that while it is not known what became of it.
func (t *turn) commit(ctx context.Context, s store.Shard, f *store.Fence, c store.Commit) (done committed, err error) {
	_, err = t.Resolve(ctx, func() error {
		stamp, results, err := t.Store.Commit(ctx, s, f, []store.Commit{c})
		if err == nil {
			done = committed{results[0], stamp}
		}
		return err
	})
	return done, err
}

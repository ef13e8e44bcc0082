package bench

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/traces"
)

// Task is one unit of work that a producer hands to a system.
type Task struct {
	ID      string    // unique within the system's lifetime
	Due     time.Time // whole milliseconds; zero means at once
	Payload []byte    // a stamp and filler, see newPayload
}

// Delivery is one hand-over as a driver saw it.
type Delivery struct {
	Payload []byte
	// Attempt counts deliveries of the task from 1. Systems that do not tell
	// leave it 0, and every repeat then counts as a duplicate.
	Attempt int
}

// Session is what a worker process asks of a driver.
type Session struct {
	// Concurrency is the most handlers at a time.
	Concurrency int
	// Workers is how many workers share them, and InFlight the most tasks in flight of
	// each, 0 for the default; for systems that know such a thing.
	Workers, InFlight int
	// Ready is called once, when deliveries can come.
	Ready func()
	// Handle is the handler, called for each delivery; it never fails.
	Handle func(context.Context, Delivery)
	// Acked is called when the system has accepted n acks, on systems that say
	// so; elsewhere after the call that sent them returned.
	Acked func(n int)
}

// Driver speaks to one running system. Enqueue may be called concurrently, also
// while Work runs.
type Driver interface {
	// Enqueue returns nil when all tasks are accepted at the durability of the
	// instance. One task is a single call; more are one batch, sent as the
	// system does batches best.
	Enqueue(ctx context.Context, tasks []Task) error
	// Work delivers due tasks to the session until ctx ends, then finishes what
	// is held and returns nil.
	Work(ctx context.Context, s Session) error
	Close() error
}

// System is one delay queue that the harness can run.
type System struct {
	Name string
	// MostTasks is how many tasks of throughput it gets unless told, where those of the others
	// would take it half an hour. 0: as many as they.
	MostTasks int
	// Open starts the system's processes inside the box.
	Open func(ctx context.Context, o Options, b *box.Box) (*Instance, error)
	// Dial connects to an instance by its target, from any process.
	Dial func(ctx context.Context, target string) (Driver, error)
}

// Instance is a running system. The optional functions are nil where a system
// has no such thing; workloads that need them say so.
type Instance struct {
	Target   string // what Dial needs
	Addr     string // of a ddq
	reach    Reach
	HTTPAddr string // of a ddq that the bench started
	Store    string // names the store and its durability, as in a result.Line
	Version  string
	Settings string // what was set apart from the system's defaults

	Spans *traces.Collector // of a ddq that the bench started; nil: none

	Server []*box.Process // accounted as "server"
	Disk   []*box.Process // accounted as "store"

	// StoreBytes is how much the store holds now, optional.
	StoreBytes func(ctx context.Context) (int64, error)
	// Pending counts the tasks that wait, optional.
	Pending func(ctx context.Context) (int64, error)
	// Restart kills the server as kill -9 does, calls killed, starts it again,
	// and returns the moment of the start without waiting for readiness. Optional.
	Restart func(ctx context.Context, killed func()) (time.Time, error)
	// Close removes what the instance left in a system that goes on running, optional.
	Close func(ctx context.Context) error
}

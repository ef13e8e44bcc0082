package worker

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
)

// Config says what a Worker takes and how much. The zero value works, given a
// topic or a Mux.
type Config struct {
	// Topic to take tasks of. Leave it empty for a Mux, which knows its own.
	Topic string

	// Concurrency is how many handlers run at once. Defaults to 16.
	Concurrency int

	// MaxInFlight is how many tasks of a topic the worker has at once, running, waiting
	// and granted as credit: more hide the way to the server, fewer leave tasks to other
	// workers. It is obeyed as it is. Above 10,000 it is lowered, as it is by a server
	// that allows less, with a warning; Run refuses one below 0.
	//
	// By default it adapts: Concurrency, and ahead of that as many tasks as the handlers
	// finish while the server refills what was settled. That is half of Concurrency at
	// least, and at most 2,048, or what was finished in the last 100 ms if that is more.
	// When handlers become slow, what waits for them beyond 100 ms of work is given back,
	// its attempt uncounted. Payloads in hand are 8 MiB at most, and as much is on its way,
	// but each handler has its task, whatever the size.
	MaxInFlight int

	// VisibilityTimeout is how long the server waits for a sign of life before
	// it gives a task to another worker, for tasks that bring none of their own:
	// 1s to 12h. Defaults to the topic's.
	VisibilityTimeout time.Duration

	// Direct has the worker connect to every node of the fleet and take each task
	// from the node that has it, instead of from one node that fetches it from the
	// others: that saves a hop. The nodes are learned over the worker's connection and
	// have to be in reach at the addresses that they advertise; where one is not, the
	// worker goes the ordinary way and says so. A server that stands alone makes no
	// difference. Nodes offer a task to all such workers at once: this is for tens of
	// workers of a topic, not for thousands.
	Direct bool

	// DialOptions are for the connections that Direct makes, such as credentials,
	// without which they are not encrypted.
	DialOptions []grpc.DialOption

	// HandlerTimeout is how long a handler may run: its context has that deadline, and
	// context.Cause is ErrHandlerTimeout after it. An error that it returns then fails the
	// attempt, as ever. A handler that has not returned a second later loses its task: the
	// attempt fails with "handler timed out after 30s", the hold is not extended any more,
	// and what the handler says later is ignored. It keeps its place in Concurrency until
	// it returns. A task with a HandlerTimeout of its own has that one instead. Defaults to
	// none: the hold is extended for as long as a handler runs.
	HandlerTimeout time.Duration

	// Codec decodes payloads before a handler, and what is around it, sees them, and encodes those
	// of Task.Enqueue. A task whose payload has an error that is client.ErrUndecodable is a dead
	// letter at once, with the reason; after any other error it is tried again. Defaults to none.
	Codec client.Codec

	// Grace is how long Run waits, once its context has ended, for handlers to
	// finish before it cancels them. Negative cancels at once. Defaults to 30s.
	Grace time.Duration

	// Name shows in the server's logs and in running tasks; at most 128 bytes.
	// Defaults to host and process id.
	Name string

	// Middleware wraps the handler; the first is outermost.
	Middleware []Middleware

	// Observe, if set, hears of what happens. It is called from the worker's own
	// goroutines, must be quick and safe for concurrent use.
	Observe func(Event)

	// Logger hears of panics, lost holds and lost connections at warn and above, and of
	// each subscription at info. Defaults to slog.Default() without what is below warn; use
	// slog.New(slog.DiscardHandler) for none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Concurrency <= 0 {
		c.Concurrency = 16
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.Name == "" {
		host, _ := os.Hostname() // without one, the process id has to do
		c.Name = fmt.Sprintf("%.100s-%d", host, os.Getpid())
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(warnings{slog.Default().Handler()})
	}
	if c.MaxInFlight > mostInFlight {
		c.Logger.Warn("max in flight lowered", "asked", c.MaxInFlight, "most", mostInFlight)
	}
	if c.MaxInFlight == 0 || c.MaxInFlight > mostInFlight {
		c.MaxInFlight = mostInFlight
	}
	return c
}

// settings are a Config as a worker obeys it.
type settings struct {
	Config
	adapts bool // no MaxInFlight was set
}

func (c Config) settings() *settings { return &settings{c.withDefaults(), c.MaxInFlight == 0} }

// maxBytes is how many bytes a server may have out of its store and not sent; 0 leaves it
// to the server.
func (s *settings) maxBytes() int64 {
	if s.adapts {
		return mostBytes
	}
	return 0
}

// The worker's own pauses.
const (
	connectTimeout   = 10 * time.Second       // for the server's first word on a stream
	longestPause     = 400 * time.Millisecond // between two attempts to connect
	topicPause       = 2 * time.Second        // at most, between two looks for a topic that does not exist
	steadyAfter      = 5 * time.Second        // a stream that lasted so long was no failed attempt
	credentialsGrace = 3 * time.Second        // for credentials to be renewed that counted before
	cancelGrace      = time.Second            // for cancelled handlers to return
	flushTimeout     = 5 * time.Second        // for the last settlements to be answered
	hearingTimeout   = time.Second            // for the last answers on a stream that another replaces
	frameSettles     = 1000                   // settlements in one frame, at most
	frameExtends     = 4000                   // extends in one frame, at most
	frameResults     = 1 << 20                // bytes that go with the outcomes and checkpoints of one frame, but for one large one
	mostResult       = 11 << 19               // bytes that go with one ack: with extends, a frame is under the 6 MiB that a server takes
)

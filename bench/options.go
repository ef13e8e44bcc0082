package bench

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/ddq-io/ddq/bench/traces"
)

// maxInFlight is the most tasks that a server lets a worker have in flight, unless it says
// otherwise.
const maxInFlight = 10_000

// Options say what to run and how hard.
type Options struct {
	// Store is where ddq keeps tasks: embedded, memory, redis-everysec (also
	// spelled redis), redis-always, or the redis:// URL of a running server.
	Store string
	// Addr drives a running ddq instead of starting one; CPU and memory of the
	// server and the store are unknown then.
	Addr string
	// ServerBin is the ddq binary to start. Defaults to this executable.
	ServerBin string

	// Tasks is how many tasks are measured; 0 takes the workload's default.
	Tasks int
	// For is over how long due times are spread, where they are.
	For time.Duration
	// Rates are how many single calls a second trickle makes, one after the other.
	Rates []int
	// Backlog is how many tasks due later than an hour lie in the store
	// meanwhile; negative takes the workload's default.
	Backlog int
	// Mode picks how producers call: batch, single or both.
	Mode string
	// API is how producers of ddq call: grpc, or rest, in which a batch is an import; empty is grpc.
	API string
	// Producers is how many callers make single calls at a time.
	Producers int
	// Concurrency is how many handlers run at a time.
	Concurrency int
	// Workers is how many workers of ddq share the handlers.
	Workers int
	// InFlight is how many tasks a worker of ddq may have in flight; 0 leaves it to the
	// worker.
	InFlight int
	// Hold is how long a handler takes.
	Hold time.Duration
	// Payload is the bytes a task carries, at least 24.
	Payload int
	// Policies are what every task of ddq uses: see --policies. None by default.
	Policies []string
	// Traces are the contexts that tasks of ddq have, and where its spans go. None by default.
	Traces traces.Options
	// Seed numbers the run: the same seed makes the same ids and payloads.
	Seed int64

	// Worker is the command line that becomes a worker process; the harness
	// appends the worker's flags.
	Worker []string
	// Log receives what is not a result: progress and explanations.
	Log io.Writer

	policies policies // Policies, checked
}

// Validate returns what is wrong with the options, nil when nothing is.
func (o Options) Validate() error {
	switch {
	case o.Mode != "batch" && o.Mode != "single" && o.Mode != "both":
		return fmt.Errorf("--mode is %q, want batch, single or both", o.Mode)
	case o.API != "" && o.API != apiGRPC && o.API != apiREST:
		return fmt.Errorf("--api is %q, want %s or %s", o.API, apiGRPC, apiREST)
	case o.API == apiREST && (o.Addr != "" || len(o.Policies) > 0):
		return errors.New("--api rest goes with a server of the bench's own, and with tasks without policies")
	case (o.Traces.Collect && o.Addr != "") || (o.Traces.Traced != "" && o.API == apiREST):
		return errors.New("--collector goes with a server of the bench's own, and --traced with --api grpc")
	case o.Tasks < 0 || o.Tasks > math.MaxInt32:
		return errors.New("--tasks must be between 0 and 2147483647")
	case o.Producers < 1 || o.Producers > 10_000:
		return errors.New("--producers must be between 1 and 10000")
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return errors.New("--concurrency must be between 1 and 10000")
	case o.Workers < 1 || o.Workers > 10_000:
		return errors.New("--workers must be between 1 and 10000")
	case o.InFlight < 0 || o.InFlight > maxInFlight:
		return fmt.Errorf("--in-flight must be between 0 and %d", maxInFlight)
	case o.Hold < 0 || o.Hold > time.Minute:
		return errors.New("--hold must be between 0 and 1m")
	case o.Payload < stampSize || o.Payload > 1<<20:
		return fmt.Errorf("--payload must be between %d and %d", stampSize, 1<<20)
	case slices.ContainsFunc(o.Rates, func(r int) bool { return r < 1 || r > 100_000 }):
		return errors.New("--rate must be between 1 and 100000")
	case o.For < time.Second || o.For > time.Hour:
		return errors.New("--for must be between 1s and 1h")
	}
	return o.Traces.Validate()
}

// tasks is the number of tasks, or def when none was asked for.
func (o Options) tasks(def int) int {
	if o.Tasks == 0 {
		return def
	}
	return o.Tasks
}

// backlog is the number of standing tasks, or def when none was asked for.
func (o Options) backlog(def int) int {
	if o.Backlog < 0 {
		return def
	}
	return o.Backlog
}

// modes are the ways to call that --mode stands for.
func (o Options) modes() []string {
	if o.Mode == "both" {
		return []string{"batch", "single"}
	}
	return []string{o.Mode}
}

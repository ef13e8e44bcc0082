package faults

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger"
)

// round is one fault on a system of its own.
type round struct {
	*stand.Stand
	setting
	fault  Fault
	seed   uint64
	rand   *rand.Rand // the schedule's
	dir    string     // of the ledgers
	log    io.Writer
	ledger *ledger.Writer // of who breaks things

	start     time.Time // of the plan
	producers []*process
	workers   []*process
	watcher   *process
	scheduler *process
	conductor *process
	registrar *process
	strikes   int
	stuck     bool // something that is to come to an end does not
}

// broken writes down when something is broken and when it is whole again.
func (r *round) broken(ctx context.Context, what string, do func() error) error {
	r.strikes++
	r.logf("%s %+.1fs: %s", r.fault.Name, time.Since(r.start).Seconds(), what)
	r.ledger.Append(ledger.Event{Kind: ledger.Fault, Fault: r.fault.Name, Reason: what})
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	r.ledger.Append(ledger.Event{Kind: ledger.Healed, Fault: r.fault.Name})
	return ctx.Err()
}

func (r *round) logf(format string, args ...any) {
	fmt.Fprintf(r.log, "  "+format+"\n", args...)
}

// anyNode picks a node.
func (r *round) anyNode() *stand.Node { return r.Nodes[r.rand.IntN(len(r.Nodes))] }

// pause lets between low and high pass.
func (r *round) pause(ctx context.Context, low, high time.Duration) error {
	return r.sleep(ctx, low+time.Duration(r.rand.Int64N(int64(high-low)+1)))
}

func (r *round) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// nodesOfWorkers are those that workers connect to: all of them, but for a round with workers at one side of a cut, at
// the first node or at the others, as its seed says.
func nodesOfWorkers(r *round) []*stand.Node {
	switch {
	case !r.oneSided:
		return r.Nodes
	case plan.Draw(r.seed, r.fault.Name, "side")%2 == 0:
		return r.Nodes[:1]
	}
	return r.Nodes[1:]
}

// anyWorker picks a worker process and its place.
func (r *round) anyWorker() (int, *process) {
	i := r.rand.IntN(len(r.workers))
	return i, r.workers[i]
}

// replaceWorker starts another one for one that was killed.
func (r *round) replaceWorker(i int) error {
	sdk := r.workers[i].sdk
	r.workers = append(r.workers[:i], r.workers[i+1:]...)
	return r.startWorker(fmt.Sprintf("w%d-%d", i, r.strikes), sdk)
}

// anyShard is a key of a shard of the topic.
func (r *round) anyShard() string {
	return fmt.Sprintf("ddq:{%s:%d}:tasks", plan.Plain, r.rand.IntN(r.shards))
}

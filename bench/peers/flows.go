package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

// flowOptions say which workflows there are, and how many.
type flowOptions struct {
	chains int // that are submitted
	open   int // of those at a time
	steps  int // of each
	rounds int // of fan-outs, one at a time
	copies int // of each
	hold   time.Duration
	rest   time.Duration
}

func (o *flowOptions) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.chains, "flows", 2000, "chains, in workflows")
	f.IntVar(&o.open, "flows-open", 500, "of those at a time; all of them where a worker is killed")
	f.IntVar(&o.steps, "flow-steps", 10, "steps of each")
	f.IntVar(&o.rounds, "flow-rounds", 10, "fan-outs one at a time, in workflows; at once where a worker is killed")
	f.IntVar(&o.copies, "flow-copies", 1000, "copies of each, which one step waits for")
	f.DurationVar(&o.hold, "flow-hold", 10*time.Millisecond, "how long a handler takes where a worker is killed")
	f.DurationVar(&o.rest, "flow-rest", 90*time.Second, "how long nothing may happen before what has not ended is taken to never end")
}

func (o *flowOptions) validate() error {
	if o.chains < 2 || o.open < 1 || o.steps < 2 || o.rounds < 1 || o.copies < 2 || o.copies > 1000 || o.hold < 0 || o.rest <= 0 {
		return errors.New("--flows, --flow-steps and --flow-copies must be at least 2, --flow-copies at most 1000, and --flows-open and --flow-rounds at least 1")
	}
	return nil
}

// Kinds of workflows.
const (
	kindChain  = "chain"  // one step behind the other
	kindFanout = "fanout" // copies, and a step that waits for all of them
)

// flowShape is one kind of workflows, and how they are played. Its handlers are numbered from 0: those
// of a chain in order, and those of a fan-out with the one that waits at the end.
type flowShape struct {
	kind   string
	size   int // steps, or copies
	flows  int
	open   int           // at a time
	killed bool          // a worker process, when half of the handlers have ended
	hold   time.Duration // of a handler
}

// handlers are how many there are of each workflow.
func (s *flowShape) handlers() int {
	if s.kind == kindFanout {
		return s.size + 1
	}
	return s.size
}

// mode names the shape in a line.
func (s *flowShape) mode() string {
	if s.killed {
		return s.kind + ", worker killed"
	}
	return s.kind
}

// shapes are those that are played, in this order.
func (o *flowOptions) shapes() []flowShape {
	return []flowShape{
		{kind: kindChain, size: o.steps, flows: o.chains, open: o.open},
		{kind: kindFanout, size: o.copies, flows: o.rounds, open: 1},
		{kind: kindChain, size: o.steps, flows: o.chains, open: o.chains, killed: true, hold: o.hold},
		{kind: kindFanout, size: o.copies, flows: o.rounds, open: o.rounds, killed: true, hold: o.hold},
	}
}

// flowSystem is a system that has workflows.
type flowSystem struct {
	name string
	open func(ctx context.Context, b *box.Box) (*bench.Instance, error)
	// worker and submitter are the command lines of its processes, when it is open. See flowBook and
	// flowStage for what they tell and are told.
	worker    func(inst *bench.Instance, n int, s *flowShape) *exec.Cmd
	submitter func(inst *bench.Instance, s *flowShape) *exec.Cmd
}

// withFlows are the systems of a name that have workflows; ddq is one on each store.
func (p *plan) withFlows(name string) (all []flowSystem) {
	switch name {
	case "ddq":
		for _, store := range p.ddqStores {
			all = append(all, p.flowDDQ(store))
		}
	case "bullmq":
		all = append(all, p.flowBullMQ())
	case "celery":
		all = append(all, p.flowCelery())
	}
	return all
}

// playFlows plays every shape on a system, freshly started for each.
func (p *plan) playFlows(ctx context.Context, setup, name string, emit func(result.Line) error) error {
	if setup != result.SetupDefault { // there is nothing to tune
		return nil
	}
	var failed []error
	for _, system := range p.withFlows(name) {
		for _, shape := range p.flows.shapes() {
			line, err := p.playFlow(ctx, &system, &shape)
			switch {
			case errors.Is(err, box.ErrMissing):
				return err
			case err != nil:
				failed = append(failed, fmt.Errorf("%s workflows, %s: %w", name, shape.mode(), err))
				continue
			}
			if name == "ddq" && line.NeverEnded+line.Early > 0 {
				failed = append(failed, fmt.Errorf("ddq workflows, %s: %d never ended, %d steps early", shape.mode(), line.NeverEnded, line.Early))
			}
			if err := emit(*line); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}

// playFlow plays one shape. What it started is stopped when it returns.
func (p *plan) playFlow(ctx context.Context, system *flowSystem, shape *flowShape) (line *result.Line, err error) {
	b, err := box.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	inst, err := system.open(ctx, b)
	if err != nil {
		return nil, err
	}
	stage := &flowStage{box: b, inst: inst, shape: shape, rest: p.flows.rest}
	for n := range flowWorkers {
		if err := stage.startWorker(ctx, n, system.worker(inst, n, shape)); err != nil {
			return nil, err
		}
	}
	if err := stage.startSubmitter(ctx, system.submitter(inst, shape)); err != nil {
		return nil, err
	}
	line = &result.Line{
		Schema: 1, System: system.name, Version: inst.Version, Workload: result.WorkloadWorkflows, Mode: shape.mode(), Store: inst.Store,
		Settings: inst.Settings, Seed: p.options.Seed, Concurrency: p.options.Concurrency, Machine: result.Machine(),
	}
	return line, stage.play(ctx, line)
}

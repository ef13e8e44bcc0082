// Command peers runs the workloads of `ddq bench` against other delay queues,
// each started for the run and removed afterwards, and prints them side by side
// with ddq's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// systems are the peers that work on tasks, in one setup. beanstalkd has nothing to tune.
func systems(setup string) []bench.System {
	peers := []bench.System{asynqSystem(setup), riverSystem(setup), natsSystem(setup, false), natsSystem(setup, true)}
	if setup == result.SetupDefault {
		peers = append(peers, beanstalkdSystem())
	}
	return peers
}

// everySystem are the names that --systems takes. Of BullMQ there are schedules and workflows only, of
// Celery workflows.
var everySystem = []string{"ddq", "asynq", "river", "nats", "nats-synced", "beanstalkd", "bullmq", "celery"}

// plan is what one command line asks for.
type plan struct {
	options   bench.Options
	setups    []string
	systems   []string
	workloads []string
	ddqBin    string
	ddqStores []string

	schedules    int
	schedulesFor time.Duration

	flows flowOptions

	executable string // this program, which is also the worker
}

func newCommand() *cobra.Command {
	var p plan
	var r result.Results
	cmd := &cobra.Command{
		Use:           "peers",
		Short:         "Run the workloads of ddq bench against other delay queues, side by side",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE:       func(*cobra.Command, []string) error { return errors.Join(p.validate(), r.Validate()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if p.executable, err = os.Executable(); err != nil {
				return err
			}
			r.Out, p.options.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return errors.Join(p.run(cmd.Context(), r.Add), r.Close())
		},
	}
	p.options.Bind(cmd)
	r.Bind(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&p.setups, "setups", []string{result.SetupDefault, result.SetupTuned}, "default: every setting as shipped; tuned: set by hand, ddq's workers by --workers and --in-flight")
	f.StringSliceVar(&p.systems, "systems", everySystem, "what to measure")
	f.StringSliceVar(&p.workloads, "workloads", []string{"throughput", "lateness", "herd", "trickle", result.WorkloadSchedules, result.WorkloadWorkflows}, "what to run")
	f.IntVar(&p.schedules, "schedules", 1000, "schedules of each second, in schedules")
	f.DurationVar(&p.schedulesFor, "schedules-for", time.Minute, "how long they are measured; a process is killed in the middle")
	p.flows.bind(cmd)
	f.StringVar(&p.ddqBin, "ddq-bin", "ddq", "ddq binary")
	f.StringSliceVar(&p.ddqStores, "ddq-stores", []string{"redis-everysec", "embedded"}, "stores to run ddq on")
	for _, setup := range []string{result.SetupDefault, result.SetupTuned} {
		cmd.AddCommand(workerCommand(setup), periodicCommand(setup))
	}
	cmd.AddCommand(natsServerCommand(), flowWorkerCommand(), flowSubmitterCommand())
	return cmd
}

// workerCommand is the hidden command of the worker process of one setup.
func workerCommand(setup string) *cobra.Command {
	cmd := bench.WorkerCommand(systems(setup)...)
	cmd.Use = workerName(setup)
	return cmd
}

func workerName(setup string) string { return "worker-" + setup }

func (p plan) validate() error {
	for _, setup := range p.setups {
		if setup != result.SetupDefault && setup != result.SetupTuned {
			return fmt.Errorf("--setups has %q, want %s, %s or both", setup, result.SetupDefault, result.SetupTuned)
		}
	}
	for _, name := range p.systems {
		if !slices.Contains(everySystem, name) {
			return fmt.Errorf("no system is called %q, want some of %s", name, strings.Join(everySystem, ", "))
		}
	}
	if p.schedules < 1 || p.schedulesFor < 2*time.Second {
		return errors.New("--schedules must be at least 1, and --schedules-for 2s")
	}
	return errors.Join(p.flows.validate(), p.options.Validate())
}

// run plays every workload on every system, with default settings first. A system
// whose program is missing is skipped with a line that says so; another failure does
// not keep the rest from running.
func (p plan) run(ctx context.Context, emit func(result.Line) error) error {
	var failed []error
	for _, setup := range p.setups {
		for _, workload := range p.workloads {
			for _, name := range p.systems {
				if ctx.Err() != nil {
					return errors.Join(append(failed, context.Cause(ctx))...)
				}
				err := p.play(ctx, setup, name, workload, emit)
				if errors.Is(err, box.ErrMissing) {
					fmt.Fprintf(p.options.Log, "skipped: %v\n", err)
					continue
				}
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// play plays one workload on one system, which is left out where it has no such setup.
func (p plan) play(ctx context.Context, setup, name, workload string, emit func(result.Line) error) error {
	o := p.options
	o.Worker = []string{p.executable, workerName(setup)}
	if setup == result.SetupDefault {
		o.Workers, o.InFlight = 1, 0
	}
	labelled := func(l result.Line) error {
		l.Setup = setup
		if name == "ddq" && workload != result.WorkloadSchedules && workload != result.WorkloadWorkflows {
			l.Settings = ddqSettings(o)
		}
		return emit(l)
	}
	switch workload {
	case result.WorkloadSchedules:
		return p.playSchedules(ctx, setup, name, labelled)
	case result.WorkloadWorkflows:
		return p.playFlows(ctx, setup, name, labelled)
	}
	if name == "ddq" {
		return p.playDDQ(ctx, o, workload, labelled)
	}
	for _, s := range systems(setup) {
		if s.Name == name {
			if workload == "throughput" && o.Tasks == 0 {
				o.Tasks = s.MostTasks
			}
			return bench.Run(ctx, o, s, workload, labelled)
		}
	}
	return nil
}

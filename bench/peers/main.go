// Command peers runs the workloads of `ddq bench` against other delay queues,
// each started for the run and removed afterwards, and prints them side by side
// with ddq's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// systems are the peers by the names that --systems takes.
func systems() []bench.System {
	return []bench.System{asynqSystem(), riverSystem(), natsSystem(), beanstalkdSystem()}
}

// plan is what one command line asks for.
type plan struct {
	options   bench.Options
	systems   []string
	workloads []string
	ddqBin    string
	ddqStores []string
}

func newCommand() *cobra.Command {
	var p plan
	var r bench.Results
	cmd := &cobra.Command{
		Use:           "peers",
		Short:         "Run the workloads of ddq bench against other delay queues, side by side",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE:       func(*cobra.Command, []string) error { return errors.Join(p.options.Validate(), r.Validate()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			p.options.Worker = []string{exe, "worker"}
			r.Out, p.options.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return errors.Join(p.run(cmd.Context(), r.Add), r.Close())
		},
	}
	p.options.Bind(cmd)
	r.Bind(cmd)
	f := cmd.Flags()
	f.StringSliceVar(&p.systems, "systems", []string{"ddq", "asynq", "river", "nats", "beanstalkd"}, "what to measure")
	f.StringSliceVar(&p.workloads, "workloads", []string{"throughput", "lateness", "herd", "trickle"}, "what to run")
	f.StringVar(&p.ddqBin, "ddq-bin", "ddq", "ddq binary")
	f.StringSliceVar(&p.ddqStores, "ddq-stores", []string{"redis-everysec", "embedded"}, "stores to run ddq on")
	cmd.AddCommand(bench.WorkerCommand(systems()...), natsServerCommand())
	return cmd
}

// run plays every workload on every system. A system whose program is missing
// is skipped with a line that says so; another failure does not keep the rest
// from running.
func (p plan) run(ctx context.Context, emit func(bench.Line) error) error {
	var failed []error
	for _, workload := range p.workloads {
		for _, name := range p.systems {
			if ctx.Err() != nil {
				return errors.Join(append(failed, context.Cause(ctx))...)
			}
			err := p.play(ctx, name, workload, emit)
			if errors.Is(err, bench.ErrMissing) {
				skip(p.options.Log, err)
				continue
			}
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func skip(w io.Writer, err error) { fmt.Fprintf(w, "skipped: %v\n", err) }

func (p plan) play(ctx context.Context, name, workload string, emit func(bench.Line) error) error {
	if name == "ddq" {
		return p.playDDQ(ctx, workload, emit)
	}
	var names []string
	for _, s := range systems() {
		if s.Name == name {
			return bench.Run(ctx, p.options, s, workload, emit)
		}
		names = append(names, s.Name)
	}
	return fmt.Errorf("no system is called %q, want some of ddq, %s", name, strings.Join(names, ", "))
}

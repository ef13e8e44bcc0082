package bench

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
	"github.com/ddq-io/ddq/bench/workflows"
)

// NewCommand is the `bench` command tree of ddq. reach is for the server of --addr.
func NewCommand(reach Reach) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure throughput, lateness, backlog and restart of a server",
		Long: `Measure a server of the bench's own, or with --addr any that runs. The bench starts
and stops what it needs: a server, a redis-server for the Redis stores, and a
worker process. It exits 1 when a task was lost, early or duplicated.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, w := range []struct{ name, short string }{
		{"throughput", "Enqueue and process as fast as it goes, in batches of 512 and in single calls"},
		{"lateness", "Tasks due evenly over a while: how late does the handler start"},
		{"herd", "Tasks due at one instant: when do the first and the last start"},
		{"trickle", "Single calls at an even rate, of tasks due a second later: what does each cost, how late is it"},
		{"backlog", "Preload tasks due later than an hour, weigh them, then measure on top of them"},
		{"in-flight", "The default of a worker's tasks in flight against numbers set by hand, in turns"},
		{"policies", "Topics whose tasks use policies, or that are watched, against a plain one, in turns"},
		{"restart", "kill -9 under load: time to the first due delivery, and nothing lost"},
	} {
		cmd.AddCommand(workloadCommand(w.name, w.short, reach))
	}
	cmd.AddCommand(restCommand(), schedulesCommand(), audienceCommand(), workflows.NewCommand(), WorkerCommand(DDQ(reach)))
	return cmd
}

func workloadCommand(name, short string, reach Reach) *cobra.Command {
	var o Options
	var r result.Results
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Args:    cobra.NoArgs,
		Example: "  ddq bench " + name + " --store redis-everysec -o json",
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(o.complete(), o.secure(cmd), r.Validate())
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.Out, o.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			err := Run(cmd.Context(), o, DDQ(reach), name, r.Add)
			return errors.Join(err, r.Close())
		},
	}
	o.Bind(cmd)
	r.Bind(cmd)
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "embedded", "embedded, memory, redis or redis-everysec, redis-always (a redis-server of its own), or the redis:// URL of a running one")
	f.StringVar(&o.Addr, "addr", "", "drive the ddq at this address instead of starting one")
	f.StringSliceVar(&o.Policies, "policies", nil, "policies that every task uses: all, or some of "+strings.Join(policyWords, ", ")+", or "+policyWatch+"; limits are never in the way")
	f.StringVar(&o.API, "api", apiGRPC, "how producers call: grpc, or rest, in which a batch is an import")
	f.StringVar(&o.ServerBin, "server-bin", "", "ddq binary to start (default this one)")
	o.Traces.Bind(f)
	return cmd
}

// Bind makes flags of the options that every system has.
func (o *Options) Bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&o.Tasks, "tasks", 0, "how many tasks (default 500000 in batches, 60000 in single calls, 20000 timed)")
	f.DurationVar(&o.For, "for", 10*time.Second, "over how long due times are spread, or calls are made in trickle")
	f.Int64Var(&o.Seed, "seed", time.Now().Unix(), "number of the run: the same makes the same ids and payloads")
	f.IntVar(&o.Producers, "producers", 64, "single calls at a time")
	f.IntVar(&o.Concurrency, "concurrency", 64, "handlers at a time")
	f.IntVar(&o.Workers, "workers", 2, "workers of ddq that share the handlers")
	f.IntVar(&o.InFlight, "in-flight", maxInFlight, "most tasks in flight of a worker of ddq; 0 leaves it to the worker")
	f.DurationVar(&o.Hold, "hold", 0, "how long a handler takes (restart: 20ms)")
	f.IntVar(&o.Payload, "payload", 200, "bytes a task carries")
	f.IntVar(&o.Backlog, "backlog", -1, "tasks due later than an hour that lie in the store meanwhile (default 1000, for backlog and restart 1000000)")
	f.IntSliceVar(&o.Rates, "rate", []int{100, 2000}, "single calls a second in trickle, one line for each")
	f.StringVar(&o.Mode, "mode", "both", "how producers call in throughput: batch, single or both")
}

// complete fills in what depends on where ddq runs.
func (o *Options) complete() (err error) {
	if o.ServerBin == "" {
		if o.ServerBin, err = os.Executable(); err != nil {
			return fmt.Errorf("find the ddq binary: %w", err)
		}
	}
	o.Worker = []string{o.ServerBin, "bench", "worker"}
	if o.policies, err = parsePolicies(o.Policies); err != nil {
		return err
	}
	return errors.Join(testbed.CheckStore(o.Store), o.Validate())
}

// secure has the worker process reach the server of --addr as this one does. A server of the bench's own asks
// nobody, and has no namespace.
func (o *Options) secure(cmd *cobra.Command) (err error) {
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed || !strings.HasPrefix(f.Name, "tls") && f.Name != "token-file" && f.Name != "namespace":
		case o.Addr == "":
			err = fmt.Errorf("--%s is for the server of --addr, which is not given", f.Name)
		default:
			o.Worker = append(o.Worker, "--"+f.Name+"="+f.Value.String())
		}
	})
	return err
}

// WorkerCommand is the hidden command that a worker process runs: it takes
// orders of the harness on stdin and tells events on stdout.
func WorkerCommand(systems ...System) *cobra.Command {
	var name, target string
	var w worker
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Be the worker process of a bench",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for _, s := range systems {
				if s.Name != name {
					continue
				}
				if w.driver, err = s.Dial(cmd.Context(), target); err != nil {
					return err
				}
				err = serveWorker(cmd.Context(), &w, cmd.InOrStdin(), cmd.OutOrStdout())
				return errors.Join(err, w.driver.Close())
			}
			return fmt.Errorf("no system is called %q", name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "system", "", "system under test")
	f.StringVar(&target, "target", "", "where it runs")
	f.IntVar(&w.concurrency, "concurrency", 64, "handlers at a time")
	f.IntVar(&w.workers, "workers", 1, "workers that share them")
	f.IntVar(&w.inFlight, "in-flight", 0, "most tasks in flight of each")
	f.DurationVar(&w.hold, "hold", 0, "how long a handler takes")
	return cmd
}

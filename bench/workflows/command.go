package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/testbed"
)

// options say which shapes are played, and how many of what.
type options struct {
	Store     string
	Shapes    []string
	Workflows int // of chain, saga and wait
	Open      int // of those of chain and saga at a time
	Rate      int // step transitions a second of chain and saga; 0: as many as it goes
	Steps     int // of a chain
	Copies    int // of a fanout, and steps that grow
	Rounds    int // of the shapes that are played one at a time
	Tasks     int // of a turn of follow
	Names     int // of a task of journal
	Marks     int // checkpoints of journal
	Workers   int
	Settle    time.Duration // before anything is weighed
	Kill      bool
	ServerBin string
	Log       io.Writer
}

// outcome is the line of a shape.
type outcome interface {
	// violation is what the shape broke; nil when nothing.
	violation() error
}

// NewCommand is `ddq bench workflows`.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "workflows",
		Short: "Workflows: how many steps a second, what does each cost, how long is the way to the next",
		Long: `Submit workflows whose handlers do nothing, shape by shape, on one server:

  chain   --workflows of --steps, one behind the other, --open at a time; then as many plain tasks
  saga    --workflows of three steps of which the last fails and the others are undone
  hop     --rounds chains one at a time, on a server that does nothing else
  topics  as hop, with every other step in another topic
  fanout  --rounds of --copies and what waits for all of them
  grow    --rounds of a step whose ack adds --copies steps
  wait    --workflows of three steps that wait for a signal, weighed; then some get theirs

and what workflows are made of:

  follow   --tasks that enqueue one task each with their ack, and as many that call Enqueue and then
           ack, in turns
  journal  --checkpoints by 64 handlers at a time, --names in each task

With --kill a server gets SIGKILL in the middle of chain and saga: one of two on a Redis, which goes on
without it, or the only one, which is started again; holds last a second then. The bench exits 1 when a
step was made twice or too early, a workflow did not end, an ack and what it enqueues were not one, or a
checkpoint was forgotten.`,
		Args:    cobra.NoArgs,
		Example: "  ddq bench workflows --store redis-everysec --shape chain,fanout",
		PreRunE: func(*cobra.Command, []string) error { return o.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = cmd.ErrOrStderr()
			enc := json.NewEncoder(cmd.OutOrStdout())
			var broken []error
			err := o.run(cmd.Context(), func(l outcome) error {
				broken = append(broken, l.violation())
				return enc.Encode(l)
			})
			if err != nil {
				err = fmt.Errorf("workflows: %w", err)
			}
			return errors.Join(append(broken, err)...)
		},
	}
	o.bind(cmd)
	return cmd
}

// bind makes flags of the options.
func (o *options) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "embedded", "embedded, memory, redis or redis-everysec, redis-always, or the redis:// URL of a running one")
	f.StringSliceVar(&o.Shapes, "shape", shapes, "what to play, in this order")
	f.IntVar(&o.Workflows, "workflows", 20_000, "workflows of chain, saga and wait")
	f.IntVar(&o.Open, "open", 2000, "of those of chain and saga at a time")
	f.IntVar(&o.Rate, "rate", 0, "steps a second of chain and saga (0: as many as it goes)")
	f.IntVar(&o.Steps, "steps", 10, "steps of chain, hop and topics")
	f.IntVar(&o.Copies, "copies", 1000, "copies of fanout, and steps that grow")
	f.IntVar(&o.Rounds, "rounds", 50, "workflows of hop, topics, fanout and grow, one at a time")
	f.IntVar(&o.Tasks, "tasks", 100_000, "tasks of each turn of follow")
	f.IntVar(&o.Names, "names", 20, "names that each task of journal keeps")
	f.IntVar(&o.Marks, "checkpoints", 200_000, "checkpoints of journal")
	f.IntVar(&o.Workers, "workers", 2, "workers")
	f.DurationVar(&o.Settle, "settle", 30*time.Second, "how long wait lets the server rest before it weighs")
	f.BoolVar(&o.Kill, "kill", false, "kill a server in the middle of chain and saga")
	f.StringVar(&o.ServerBin, "server-bin", "", "ddq binary to start (default this one)")
}

func (o *options) complete() (err error) {
	if o.ServerBin == "" {
		if o.ServerBin, err = os.Executable(); err != nil {
			return fmt.Errorf("find the ddq binary: %w", err)
		}
	}
	for _, name := range o.Shapes {
		if !slices.Contains(shapes, name) {
			return fmt.Errorf("--shape has no %q, want some of %s", name, strings.Join(shapes, ", "))
		}
	}
	switch {
	case o.Workflows < 1 || o.Open < 1 || o.Rounds < 1 || o.Workers < 1 || o.Tasks < 1 || o.Marks < 1:
		return errors.New("--workflows, --open, --rounds, --workers, --tasks and --checkpoints must be at least 1")
	case o.Rate < 0 || o.Settle < 0:
		return errors.New("--rate and --settle must not be negative")
	case o.Steps < 2 || o.Steps > 1000:
		return errors.New("--steps must be between 2 and 1000")
	case o.Copies < 1 || o.Copies > 1000:
		return errors.New("--copies must be between 1 and 1000")
	case o.Names < 2 || o.Names > 1000:
		return errors.New("--names must be between 2 and 1000")
	}
	return testbed.CheckStore(o.Store)
}

// run plays the shapes. What it started is stopped when it returns.
func (o *options) run(ctx context.Context, emit func(outcome) error) (err error) {
	b, err := box.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	servers := 1
	if o.Kill && testbed.Shared(o.Store) {
		servers = 2
	}
	fleet, err := testbed.StartFleet(ctx, servers, o.ServerBin, o.Store, b)
	if err != nil {
		return err
	}
	show, err := newShow(o, fleet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, show.client.Close()) }()
	for _, name := range o.Shapes {
		line, err := show.play(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
	return nil
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// workflowOptions say which workflows there are, and how many.
type workflowOptions struct {
	Store     string
	Shapes    []string
	Workflows int // of chain and of saga
	Open      int // of those at a time
	Steps     int // of a chain
	Copies    int // of a fanout, and steps that grow
	Rounds    int // of the shapes that are played one at a time
	Workers   int
	Kill      bool
	ServerBin string
	Log       io.Writer
}

// workflowLine is the result of one shape.
type workflowLine struct {
	Shape     string `json:"shape"`
	Store     string `json:"store"`
	Workflows int    `json:"workflows"`
	Open      int    `json:"open"`  // at a time
	Steps     int    `json:"steps"` // of each, undos counted

	Seconds       float64              `json:"seconds"` // from the first submit to the last handler's end
	WorkflowsPerS float64              `json:"workflows_per_s"`
	StepsPerS     float64              `json:"steps_per_s"`
	FirstMS       lateness.Percentiles `json:"first_ms"` // from the submit to the first handler
	HopMS         lateness.Percentiles `json:"hop_ms"`   // from the end of the last handler that a step waited for to its own
	WholeMS       lateness.Percentiles `json:"whole_ms"` // from the submit to the last handler

	CPU         result.Roles `json:"cpu_s"`
	CPUPerStep  float64      `json:"cpu_us_per_step"`
	CPUPerTask  float64      `json:"cpu_us_per_task,omitempty"` // of as many tasks that are no steps, by the same workers
	StoreBytes  float64      `json:"store_bytes_per_workflow,omitempty"`
	ServerBytes float64      `json:"server_bytes_per_workflow,omitempty"`

	Repeat     int    `json:"repeat"`      // handlers that began again, with a higher attempt: legal
	Redone     int    `json:"redone"`      // that began again under one attempt, or for another task of one try
	Untimely   int    `json:"untimely"`    // that began before what they wait for had ended
	NeverEnded int    `json:"never_ended"` // workflows
	Machine    string `json:"machine"`
}

// violation is what the shape broke; nil when nothing.
func (l *workflowLine) violation() error {
	if l.Redone+l.Untimely+l.NeverEnded == 0 {
		return nil
	}
	return fmt.Errorf("workflows %s: %d redone, %d untimely, %d never ended", l.Shape, l.Redone, l.Untimely, l.NeverEnded)
}

func workflowsCommand() *cobra.Command {
	var o workflowOptions
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
  wait    --workflows of three steps that wait for a signal, weighed

With --kill the server gets SIGKILL in the middle of chain and saga, and is started again; holds last
a second then. The bench exits 1 when a step was made twice or too early, or a workflow did not end.`,
		Args:    cobra.NoArgs,
		Example: "  ddq bench workflows --store redis-everysec --shape chain,fanout",
		PreRunE: func(*cobra.Command, []string) error { return o.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = cmd.ErrOrStderr()
			enc := json.NewEncoder(cmd.OutOrStdout())
			var broken []error
			err := o.run(cmd.Context(), func(l *workflowLine) error {
				broken = append(broken, l.violation())
				return enc.Encode(l)
			})
			if err != nil {
				err = fmt.Errorf("workflows: %w", err)
			}
			return errors.Join(append(broken, err)...)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", "embedded", "embedded, memory, redis or redis-everysec, redis-always, or the redis:// URL of a running one")
	f.StringSliceVar(&o.Shapes, "shape", workflowShapes, "what to play, in this order")
	f.IntVar(&o.Workflows, "workflows", 20_000, "workflows of chain, saga and wait")
	f.IntVar(&o.Open, "open", 2000, "of those of chain and saga at a time")
	f.IntVar(&o.Steps, "steps", 10, "steps of chain, hop and topics")
	f.IntVar(&o.Copies, "copies", 1000, "copies of fanout, and steps that grow")
	f.IntVar(&o.Rounds, "rounds", 50, "workflows of hop, topics, fanout and grow, one at a time")
	f.IntVar(&o.Workers, "workers", 2, "workers")
	f.BoolVar(&o.Kill, "kill", false, "kill the server in the middle of chain and saga, and start it again")
	f.StringVar(&o.ServerBin, "server-bin", "", "ddq binary to start (default this one)")
	return cmd
}

func (o *workflowOptions) complete() (err error) {
	if o.ServerBin == "" {
		if o.ServerBin, err = os.Executable(); err != nil {
			return fmt.Errorf("find the ddq binary: %w", err)
		}
	}
	for _, name := range o.Shapes {
		if !slices.Contains(workflowShapes, name) {
			return fmt.Errorf("--shape has no %q, want some of %s", name, strings.Join(workflowShapes, ", "))
		}
	}
	switch {
	case o.Workflows < 1 || o.Open < 1 || o.Rounds < 1 || o.Workers < 1:
		return errors.New("--workflows, --open, --rounds and --workers must be at least 1")
	case o.Steps < 2 || o.Steps > 1000:
		return errors.New("--steps must be between 2 and 1000")
	case o.Copies < 1 || o.Copies > 1000:
		return errors.New("--copies must be between 1 and 1000")
	}
	return CheckStore(o.Store)
}

// run plays the shapes. What it started is stopped when it returns.
func (o *workflowOptions) run(ctx context.Context, emit func(*workflowLine) error) (err error) {
	b, err := box.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	inst, server := &Instance{}, &ddqServer{}
	store, err := server.openStore(ctx, o.Store, b, inst)
	if err != nil {
		return err
	}
	if err := server.start(ctx, o.ServerBin, store, b); err != nil {
		return err
	}
	show, err := newWorkflowShow(o, server, inst.Disk)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, show.client.Close()) }()
	for _, name := range o.Shapes {
		line := &workflowLine{Shape: name, Store: o.Store, Machine: result.Machine()}
		if err := show.play(ctx, o.shape(name), line); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
	return nil
}

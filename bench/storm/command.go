package storm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/testbed"
)

// campaign is a storm with a server of its own.
type campaign struct {
	Options
	store  string
	addr   string
	bin    string
	output string
}

// NewCommand is `ddq bench edits`.
func NewCommand() *cobra.Command {
	var c campaign
	cmd := &cobra.Command{
		Use:   "edits",
		Short: "Edit tasks at the instant at which they are delivered, and check every answer",
		Long: `Enqueue tasks that are due at one instant, and update, move, promote and delete those that
are being delivered just then. Every answer has to be exactly one of changed, already delivered and gone,
and to agree with what the worker was sent. Exits 1 when one does not.`,
		Example: "  ddq bench edits --store redis-everysec --tasks 100000 --edits 1000000",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return c.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Log = cmd.ErrOrStderr()
			r, err := c.run(cmd.Context())
			if err != nil {
				return err
			}
			for i := range min(3, len(r.Offences)) {
				o := &r.Offences[i]
				fmt.Fprintf(c.Log, "%s: %s/%s: %s\n%s\n", o.Violation, o.Topic, o.Task, o.Why, o.Lines())
			}
			return errors.Join(r.write(cmd.OutOrStdout(), c.output), r.Err())
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.store, "store", "embedded", "embedded, memory, redis-everysec, redis-always (a redis-server of its own), or the redis:// URL of a running one")
	f.StringVar(&c.addr, "addr", "", "drive the ddq at this address instead of starting one")
	f.StringVar(&c.bin, "server-bin", "", "ddq binary to start (default this one)")
	f.IntVar(&c.Tasks, "tasks", 20_000, "how many tasks are due at one instant")
	f.IntVar(&c.Edits, "edits", 200_000, "how many edits are made")
	f.IntVar(&c.Editors, "editors", 128, "edits at a time")
	f.Uint64Var(&c.Seed, "seed", uint64(time.Now().Unix()), "number of the storm: the same makes the same edits")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	return cmd
}

func (c *campaign) complete() (err error) {
	if c.bin == "" {
		c.bin, err = os.Executable()
	}
	switch {
	case c.output != "table" && c.output != "json":
		return fmt.Errorf("--output is table or json, not %q", c.output)
	case c.Tasks < 1 || c.Tasks > 10_000_000:
		return errors.New("--tasks must be between 1 and 10000000")
	case c.Edits < 1 || c.Edits > 100_000_000:
		return errors.New("--edits must be between 1 and 100000000")
	case c.Editors < 1 || c.Editors > 10_000:
		return errors.New("--editors must be between 1 and 10000")
	}
	return errors.Join(err, testbed.CheckStore(c.store))
}

// run starts a server, lets the storm blow, and stops it.
func (c *campaign) run(ctx context.Context) (r *Report, err error) {
	b, err := box.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	inst, err := bench.DDQ(nil).Open(ctx, bench.Options{Store: c.store, Addr: c.addr, ServerBin: c.bin, Seed: int64(c.Seed), Log: c.Log}, b)
	if err != nil {
		return nil, err
	}
	if inst.Close != nil {
		defer func() { err = errors.Join(err, inst.Close(context.WithoutCancel(ctx))) }()
	}
	if r, err = Blow(ctx, inst.Addr, c.Options); r != nil {
		r.Store = inst.Store
	}
	return r, err
}

package faults

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// NewCommand is `ddq bench faults`.
func NewCommand() *cobra.Command {
	var c campaign
	var list bool
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Break servers, stores and workers on purpose, and check every promise afterwards",
		Long: `Start servers, a store, producers and workers; break them on purpose while they work; and check
from what each client wrote down that nothing was lost, early, delivered under two holds at
once, stuck or brought back to life. Exits 1 when a promise was broken. --list names the
faults and what each may cost.`,
		Example: "  ddq bench faults --list\n  ddq bench faults --store redis-everysec --faults kill,drain --seed 7 --for 30s --ledger ledgers",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return c.complete() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Out, c.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if list {
				return writeList(c.Out)
			}
			return c.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&c.stores, "store", []string{stand.RedisEverysec}, "where: "+strings.Join(stand.Stores(), ", "))
	f.StringSliceVar(&c.names, "faults", nil, "which ones (default all that the stores can have)")
	f.Uint64Var(&c.Seed, "seed", uint64(time.Now().Unix()), "number of the round: the same makes the same tasks and the same schedule")
	f.DurationVar(&c.For, "for", 10*time.Second, "how long tasks are sent in each round")
	f.Float64Var(&c.Rate, "rate", 300, "tasks a second")
	f.DurationVar(&c.Work, "work", 5*time.Millisecond, "the most that an ordinary task takes a worker")
	f.IntVar(&c.Crowd, "crowd", 5000, "schedules that have an occurrence at one second, in rounds of midnight")
	f.IntVar(&c.Workflows, "workflows", 52, "workflows of all shapes in each round; four times as many in those of kill-all-each-second")
	f.BoolVar(&c.UndoneWorkflows, "undone-workflows", false, "play workflows also in rounds whose fault may undo what was answered")
	f.BoolVar(&c.Reshard, "reshard", true, "give the topics of schedules, audiences and workflows other shards in the middle of a round")
	f.IntVar(&c.Recipients, "recipients", plan.AudienceSize, "of the audience, each of whom gets a task every two seconds")
	f.StringSliceVar(&c.SDKs, "sdks", nil, "have a worker more in each of these languages, some of whose answers are lost: "+party.Python+", "+party.TypeScript)
	f.StringVar(&c.SDKDir, "sdk-dir", "bin/sdks", "where their SDKs are, as tools/sdks-unpacked.sh puts them there")
	f.StringVar(&c.Outbox, "outbox", "", "this ddq-outbox hands on what one more producer commits to a PostgreSQL, and is killed now and then (default none)")
	f.IntVar(&c.Nodes, "nodes", 3, "servers; one on the embedded store")
	f.BoolVar(&c.eachOnce, "each-once", false, "each fault on one of the stores only; on which one, the seed says")
	f.IntVar(&c.atOnce, "at-once", 1, "rounds at a time; they share the machine, so lateness means less then")
	f.DurationVar(&c.soak, "soak", 0, "go on with other seeds for that long")
	f.StringVar(&c.report, "report", "", "write a table of all rounds and a picture of lateness over time into this directory")
	f.StringVar(&c.Ledger, "ledger", "", "keep the ledgers below this directory (default those of broken promises only)")
	f.StringVar(&c.Bin, "server-bin", "", "ddq binary to start (default this one)")
	f.StringVar(&c.First, "first-bin", "", "ddq binary that each server begins with, of an older release: what restarts it upgrades it to --server-bin (default --server-bin)")
	f.StringVarP(&c.output, "output", "o", "table", "table or json")
	f.BoolVar(&list, "list", false, "list the faults and what each may cost")
	f.BoolVar(&c.inNamespace, "in-namespace", false, "this process has a network of its own")
	f.Lookup("in-namespace").Hidden = true
	return cmd
}

func writeList(w io.Writer) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"fault", "what is done", "stores", "what it may cost"})
	for _, f := range Faults() {
		t.AppendRow(table.Row{f.Name, f.What, strings.Join(f.Stores, " "), f.Cost})
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

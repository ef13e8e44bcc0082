package faults

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/ledger"
)

// NewCommand is `ddq bench faults`.
func NewCommand() *cobra.Command {
	var o Options
	var names []string
	var list bool
	var output string
	cmd := &cobra.Command{
		Use:   "faults",
		Short: "Break servers, stores and workers on purpose, and check every promise afterwards",
		Long: `Start servers, a store, producers and workers; break them on purpose while they work; and check
from what each client wrote down that nothing was lost, early, delivered under two holds at
once, stuck or brought back to life. Exits 1 when a promise was broken. --list names the
faults and what each may cost.`,
		Example: "  ddq bench faults --list\n  ddq bench faults --store redis-everysec --faults kill,drain --seed 7 --for 30s --ledger ledgers",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return writeList(cmd.OutOrStdout())
			}
			o.Log = cmd.ErrOrStderr()
			if o.Bin == "" {
				var err error
				if o.Bin, err = os.Executable(); err != nil {
					return err
				}
			}
			picked, err := pick(names, o.Store)
			if err != nil {
				return err
			}
			broken := 0
			for _, f := range picked {
				fmt.Fprintf(o.Log, "%s on %s, seed %d: %s\n", f.Name, o.Store, o.Seed, f.What)
				line, err := Play(cmd.Context(), o, f)
				if err != nil {
					return err
				}
				if !line.OK {
					broken++
					if err := line.Verdict.WriteText(o.Log, 3); err != nil {
						return err
					}
				}
				if err := line.write(cmd.OutOrStdout(), output); err != nil {
					return err
				}
			}
			if broken > 0 {
				return fmt.Errorf("%d of %d faults broke a promise", broken, len(picked))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Store, "store", redisEverysec, "embedded, redis-everysec or redis-always")
	f.StringSliceVar(&names, "faults", nil, "which ones (default all that the store can have)")
	f.Uint64Var(&o.Seed, "seed", uint64(time.Now().Unix()), "number of the round: the same makes the same tasks and the same schedule")
	f.DurationVar(&o.For, "for", 10*time.Second, "how long tasks are sent in each round")
	f.Float64Var(&o.Rate, "rate", 300, "tasks a second")
	f.IntVar(&o.Nodes, "nodes", 3, "servers; one on the embedded store")
	f.StringVar(&o.Ledger, "ledger", "", "keep the ledgers below this directory (default those of broken promises only)")
	f.StringVar(&o.Bin, "server-bin", "", "ddq binary to start (default this one)")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	f.BoolVar(&list, "list", false, "list the faults and what each may cost")
	return cmd
}

// pick finds faults by name; without names, all that a store can have.
func pick(names []string, store string) ([]Fault, error) {
	var picked []Fault
	var errs []error
	for _, name := range names {
		found := false
		for _, f := range Faults() {
			if f.Name != name {
				continue
			}
			found = true
			if !f.AppliesTo(store) {
				errs = append(errs, fmt.Errorf("fault %s is for %s, not for %s", name, strings.Join(f.Stores, ", "), store))
			}
			picked = append(picked, f)
		}
		if !found {
			errs = append(errs, fmt.Errorf("no fault is called %q, see --list", name))
		}
	}
	if len(names) == 0 {
		for _, f := range Faults() {
			if f.AppliesTo(store) {
				picked = append(picked, f)
			}
		}
	}
	return picked, errors.Join(errs...)
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

// write prints the line.
func (l Line) write(w io.Writer, output string) error {
	if output == "json" {
		return writeJSON(w, l)
	}
	var calmly, broken ledger.Percentile
	var without float64
	for _, p := range l.Verdict.Phases {
		switch p.Name {
		case "calm":
			calmly.P99 = max(calmly.P99, p.LateMS.P99)
		default:
			broken.P99, broken.Max = max(broken.P99, p.LateMS.P99), max(broken.Max, p.LateMS.Max)
			without = max(without, p.NoDeliveryMS)
		}
	}
	v := l.Verdict
	_, err := fmt.Fprintf(w, "%-14s %-14s seed %-6d %-4s  %d strikes, %d tasks, %d deliveries, %d of %d calls unknown; late p99 %.0f ms calm, %.0f ms broken, worst %.0f ms; no delivery for %.0f ms\n",
		l.Fault, l.Store, l.Seed, l.Summary, l.Strikes, v.Acknowledged, v.Deliveries, v.Unknown, v.Calls, calmly.P99, broken.P99, broken.Max, without)
	return err
}

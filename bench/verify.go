package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/ledger/checker"
)

// NewVerifyCommand is `ddq bench verify`.
func NewVerifyCommand() *cobra.Command {
	var allow []string
	var output string
	var timelines int
	var rules checker.Rules
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the ledgers of a run against what ddq promises",
		Long: `Read the ledgers of a run, which ddq bench faults keeps with --ledger, and check that no
task was lost, early, delivered under two holds at once, skipped, stuck or brought back to life, and that
every answer was true. Exits 1 when a promise was broken, and prints the timelines of the
tasks that show it.`,
		Example: "  ddq bench verify ledgers/kill-redis-everysec-7\n  ddq bench verify ledgers/powercut-redis-everysec-7 --allow powercut=2s",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if rules.Allowances, err = parseAllowances(allow); err != nil {
				return err
			}
			h, err := checker.Read(args[0])
			if err != nil {
				return err
			}
			v := checker.Check(h, rules)
			if output == "json" {
				err = v.WriteJSON(cmd.OutOrStdout())
			} else {
				err = v.WriteText(cmd.OutOrStdout(), timelines)
			}
			if err == nil && !v.OK() {
				err = errors.New(v.Summary())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&allow, "allow", nil, "FAULT=TIME: what was answered from that long before the fault until its end may have been undone, as a power cut with appendfsync everysec may (2s)")
	f.StringSliceVar(&rules.Prompt, "prompt", nil, "faults that keep no task waiting that no worker has, as the end of a worker does not")
	f.StringSliceVar(&rules.TokensLost, "tokens-lost", nil, "faults that may undo what was taken of rates, as a failover to a replica may")
	f.StringSliceVar(&rules.Serving, "serving", nil, "faults during which a task that is due is delivered within the time of --stuck-after")
	f.DurationVar(&rules.StuckAfter, "stuck-after", 10*time.Second, "how long after its due time a task may lie in the store at the end")
	f.IntVar(&timelines, "timelines", 10, "most offenders to show")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func parseAllowances(texts []string) ([]checker.Allowance, error) {
	var out []checker.Allowance
	for _, text := range texts {
		name, before, ok := strings.Cut(text, "=")
		d, err := time.ParseDuration(before)
		if !ok || err != nil || d < 0 {
			return nil, fmt.Errorf("--allow is FAULT=TIME, such as powercut=2s, not %q", text)
		}
		out = append(out, checker.Allowance{Fault: name, Before: d})
	}
	return out, nil
}

package schedules

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

func (a audienceCommands) runs() *cobra.Command {
	return &cobra.Command{
		Use:   "runs NAME [ID]",
		Short: "Show the runs of an audience that are open and the last that have ended, or one of them",
		Example: `  ddq audience runs users
  ddq audience runs users 0197c0e0-…`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return a.oneRun(cmd, args[0], args[1])
			}
			out := a.Listing("id", "schedule", "begins", "state", "planned", "made", "done", "failed", "skipped", "behind")
			err := a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				runs, err := s.ListAudienceRuns(ctx, args[0])
				for i := range runs {
					r := &runs[i]
					if err := out.Add(r, r.ID, r.Topic+"/"+r.Schedule, terminal.Clock(r.Begin), r.State, r.Planned, r.Made, r.Done, r.Failed, r.Skipped.Sum(), behindText(r.Behind)); err != nil {
						return err
					}
				}
				return err
			})
			return out.End(err, "No runs.")
		},
	}
}

func (a audienceCommands) oneRun(cmd *cobra.Command, audience, id string) error {
	return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
		r, err := s.GetAudienceRun(ctx, audience, id)
		if err != nil {
			return err
		}
		return a.Record(r, runRows(&r)...)
	})
}

func runRows(r *client.AudienceRun) []table.Row {
	rows := []table.Row{
		{"id", r.ID}, {"schedule", r.Topic + "/" + r.Schedule}, {"kind", cmp.Or(r.Kind, "all recipients")}, {"state", r.State},
		{"occurrence", terminal.Clock(r.Occurrence)}, {"began", terminal.Clock(r.Begin)}, {"ended", terminal.Clock(r.End)},
		{"next place", terminal.Clock(r.Next)}, {"behind", behindText(r.Behind)},
		{"planned", r.Planned}, {"made", r.Made}, {"deferred", r.Deferred}, {"done", r.Done}, {"failed", r.Failed}, {"removed", r.Removed},
	}
	return append(rows, table.Row{"skipped", skipsText(&r.Skipped)})
}

// skipsText is the reasons for which some are skipped.
func skipsText(s *client.RecipientSkips) string {
	var parts []string
	for _, p := range []struct {
		n   int64
		why string
	}{{s.Disabled, "disabled"}, {s.OptedOut, "opted out"}, {s.Quiet, "in quiet hours"}, {s.NoTime, "without that time"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.why))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func behindText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Millisecond).String()
}

func (a audienceCommands) cancelRun() *cobra.Command {
	var remove, yes bool
	cmd := &cobra.Command{
		Use:     "cancel-run NAME ID",
		Short:   "End a run: no more tasks are made",
		Example: `  ddq audience cancel-run users 0197c0e0-… --delete`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Confirm(yes, "cancel run "+args[1]+" of audience "+args[0]); err != nil {
				return err
			}
			return a.Call(cmd, func(ctx context.Context, s *client.Client) error {
				r, err := s.CancelAudienceRun(ctx, args[0], args[1], remove)
				if err != nil {
					return err
				}
				return a.Say(r, "run %s of audience %s: %s, %d of %d tasks were made", r.ID, args[0], r.State, r.Made, r.Planned)
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the tasks that no worker has yet")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

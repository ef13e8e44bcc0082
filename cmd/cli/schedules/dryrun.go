package schedules

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

func (s scheduleCommands) dryRun() *cobra.Command {
	var topic string
	var from, to instantAhead
	var limit int
	cmd := &cobra.Command{
		Use:   "dry-run [NAME] --topic TOPIC",
		Short: "List the runs that schedules would make, with the ids of their tasks",
		Long: `List the runs that the schedules of a topic would make, or the one that is named, with the
ids of their tasks. Nothing is stored. It goes by what is known: that runs end as soon as they are
due, that the topic takes their tasks, and that nothing is edited.`,
		Example: "  ddq schedule dry-run --topic report --to 1d",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topic == "" || to.at.IsZero() {
				return session.Usagef("--topic and --to are required")
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			out := s.Listing("schedule", "occurrence", "due", "task", "origin")
			err := s.Call(cmd, func(ctx context.Context, of *client.Client) error {
				return terminal.Each(of.DryRun(ctx, topic, name, from.at, to.at), limit, func(run client.PlannedRun) error {
					return out.Add(run, run.Schedule, terminal.Clock(run.Occurrence), terminal.Clock(run.Due), run.ID, run.Origin.String())
				})
			})
			return out.End(err, "No run would be made.")
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&topic, "topic", "", "topic of the schedules (required)")
	fs.Var(&from, "from", "runs that are due from this time on: RFC 3339, or how far ahead (default now)")
	fs.Var(&to, "to", "and before this time: RFC 3339, or how far ahead (required)")
	fs.IntVar(&limit, "limit", 1000, "most runs to list; 0 is all")
	return cmd
}

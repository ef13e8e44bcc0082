package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/loglevel"
	"github.com/ddq-io/ddq/cmd/node"
)

// logView is what a node logs as JSON output has it.
type logView struct {
	Node  string     `json:"node"`
	Level string     `json:"level"`
	Topic string     `json:"topic,omitempty"`
	Until *time.Time `json:"until,omitempty"`
}

func (c clusterCommands) logLevel() *cobra.Command {
	var change loglevel.Change
	cmd := &cobra.Command{
		Use:   "log-level NODE LEVEL",
		Short: "Make a node log more or less for a while",
		Long: `Make a node log from debug, info, warn or error on for a while. With --topic and
debug it logs each thing that happens to a task of that topic. "configured" ends it
before its time.`,
		Example: "  ddq cluster log-level n1 debug --topic mail --for 5m",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			change.Level = loglevel.Level(args[1])
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				until, err := s.SetLogLevel(ctx, args[0], change)
				if err != nil {
					return err
				}
				view, what := logView{Node: args[0], Level: args[1], Topic: change.Topic}, "everything"
				if change.Topic != "" {
					what = "tasks of " + change.Topic
				}
				if until.IsZero() {
					return c.Say(view, "Node %s logs %s as it was configured.", args[0], what)
				}
				view.Until = &until
				return c.Say(view, "Node %s logs %s at %s until %s.", args[0], what, args[1], until.Format(time.DateTime))
			})
		},
	}
	cmd.Flags().StringVar(&change.Topic, "topic", "", "log what happens to the tasks of this topic")
	node.DurationVar(cmd.Flags(), &change.For, "for", 5*time.Minute, "after how long it ends, a day at most")
	return cmd
}

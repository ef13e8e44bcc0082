package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

func (c taskCommands) chain() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "chain ID",
		Short: "Follow a task to what caused it",
		Long: `Show a task, the task whose ack enqueued it, the one before that, and so on: at most 100,
up to one that nobody's ack enqueued, or whose cause is gone. Done tasks stay for as long as
their topic keeps them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := c.Listing("topic", "id", "state", "due", "payload")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				chain, err := s.Chain(ctx, topic, args[0])
				for _, t := range chain {
					if err := out.Add(t, t.Topic, t.ID, t.State.String(), terminal.Clock(t.Due), terminal.Shorten(terminal.BytesText(t.Payload), 40)); err != nil {
						return err
					}
				}
				return err
			})
			return out.End(err, "No tasks.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	return cmd
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// errNotSettled is the outcome of a wait that was too short.
var errNotSettled = errors.New("the task is not settled yet")

func (c taskCommands) wait() *cobra.Command {
	var topic string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "wait ID",
		Short: "Wait until a task is done, dead or expired, and show it",
		Long: `Wait until a task is done, dead or expired, and show it with its result. When it
is neither after --for, it is shown as it is and the exit code is 1. (--timeout given
without --for is taken for it.) The result is
there while the topic keeps done tasks (--done-retention); where it keeps none, a
task that is done is not found.`,
		Example: "  ddq task wait report-2030-01 --for 5m -o json | jq -r .result",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("timeout") && !cmd.Flags().Changed("for") {
				wait = c.Timeout
			}
			if err := session.NotNegative("for", wait); err != nil {
				return err
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				task, err := s.Wait(ctx, topic, args[0], wait)
				if err != nil {
					return err
				}
				if err := c.print(task); err != nil {
					return err
				}
				switch task.State {
				case client.StateDone, client.StateDead, client.StateExpired:
					return nil
				}
				return fmt.Errorf("%w: it is %s", errNotSettled, task.State)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	node.DurationVar(cmd.Flags(), &wait, "for", time.Minute, "how long to wait")
	return cmd
}

type cancelledView struct {
	Topic   string `json:"topic"`
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	State   string `json:"state,omitempty"`
}

func (c taskCommands) cancel() *cobra.Command {
	var topic string
	var o client.CancelOptions
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Ask the worker of a running task to stop",
		Long: `Ask the worker of a running task to stop. The task is then dead, with the reason
cancelled, unless it succeeds all the same; it is not tried again. The outcome is
requested, too_late or confirmed; without --wait it is not waited for, and not known
to be confirmed.`,
		Example: "  ddq task cancel report-2030-01 --wait 10s",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := session.NotNegative("wait", o.Wait); err != nil {
				return err
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				out, err := s.Cancel(ctx, topic, args[0], o)
				if err != nil {
					return err
				}
				v := cancelledView{Topic: out.Topic, ID: args[0], Outcome: out.Outcome.String()}
				if out.State != client.StateUnknown {
					v.State = out.State.String()
				}
				return c.Say(v, "%s", v.text())
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	node.DurationVar(cmd.Flags(), &o.Wait, "wait", 0, "how long to wait for the worker to end the task, at most 1m")
	cmd.Flags().BoolVar(&o.OrDelete, "or-delete", false, "delete the task when no worker holds it")
	return cmd
}

func (v cancelledView) text() string {
	what := map[string]string{
		client.CancelRequested.String(): "its worker is asked to stop",
		client.CancelConfirmed.String(): "cancelled",
		client.CancelDeleted.String():   "no worker held it; deleted",
		client.CancelTooLate.String():   "too late: it is " + cmp.Or(v.State, "gone"),
	}[v.Outcome]
	return fmt.Sprintf("task %s of topic %s: %s", v.ID, v.Topic, what)
}

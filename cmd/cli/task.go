package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// taskCommands are those of ddq task.
type taskCommands struct{ *cli }

func taskCommand(parent *cli) *cobra.Command {
	c := taskCommands{parent}
	return session.Group("task", "Look at tasks, wait for them, change, move, cancel or delete them",
		c.get(), c.update(), c.promote(), c.reschedule(), c.delete(), c.list(),
		c.count(), c.due(), c.wait(), c.cancel(), c.chain(), c.trace())
}

const anyTopic = "topic of the task (default: look in every topic)"

func (c taskCommands) get() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show a task",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				task, err := s.Get(ctx, topic, args[0])
				if err != nil {
					return err
				}
				if task.Payload, err = s.PayloadOf(ctx, task); err != nil {
					return err
				}
				return c.print(task)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	c.KeyringFlag(cmd.Flags())
	return cmd
}

type deletedTaskView struct {
	Topic   string `json:"topic"`
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func (c taskCommands) delete() *cobra.Command {
	var f bulkFlags
	var force bool
	cmd := &cobra.Command{
		Use:     "delete (ID | --topic TOPIC FILTER)",
		Short:   "Delete a task that no worker holds, or all that match a filter",
		Example: "  ddq task delete --topic mail --attr tenant=acme --due-before 1h --dry-run",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			filter, many, err := f.many(ids)
			switch {
			case err != nil:
				return err
			case many && force:
				return session.Usagef("--force is for one task: tasks of workflows that match a filter stay")
			case many:
				return c.changeMany(cmd, &f, "delete the", operations.Change{Delete: filter.Wire()}, func(ctx context.Context, s *client.Client, b client.Bulk) (client.Progress, error) {
					return s.DeleteTasks(ctx, f.topic, filter, b)
				})
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				remove := s.Delete
				if force {
					remove = s.ForceDelete
				}
				foundIn, err := remove(ctx, f.topic, ids[0])
				if err != nil {
					return err
				}
				return c.Say(deletedTaskView{foundIn, ids[0], true}, "task %s of topic %s deleted", ids[0], foundIn)
			})
		},
	}
	f.flags(cmd.Flags())
	cmd.Flags().BoolVar(&force, "force", false, "also the task of a workflow's step, which fails by that")
	return cmd
}

// listable are the states that tasks can be listed by.
var listable = []client.State{
	client.StateScheduled, client.StateReady, client.StateRunning, client.StateRetrying,
	client.StateDone, client.StateDead, client.StateExpired,
}

func (c taskCommands) list() *cobra.Command {
	var f filterFlags
	var limit int
	cmd := &cobra.Command{
		Use:     "list --topic TOPIC",
		Short:   "List the tasks of a topic",
		Example: "  ddq task list --topic mail --state retrying --attr-prefix tenant=ac --due-before 1h",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.topic == "" {
				return session.Usagef("--topic is required")
			}
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			out := c.Listing("id", "state", "due", "retries", "payload")
			err = c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				found := s.List(ctx, f.topic, client.StateUnknown)
				if !isZero(filter) {
					found = s.Find(ctx, f.topic, filter)
				}
				return terminal.Each(found, limit, func(t client.Snapshot) error {
					return out.Add(t, t.ID, t.State.String(), terminal.Clock(t.Due), t.RetryCount, terminal.Shorten(terminal.BytesText(t.Payload), 40))
				})
			})
			return out.End(err, "No tasks.")
		},
	}
	cmd.Flags().StringVar(&f.topic, "topic", "", "topic of the tasks (required)")
	f.flags(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 100, "most tasks to list; 0 is all")
	return cmd
}

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
)

func (c *cli) taskCommand() *cobra.Command {
	return group("task", "Look at tasks, wait for them, change, move, cancel or delete them",
		c.taskGet(), c.taskUpdate(), c.taskPromote(), c.taskReschedule(), c.taskDelete(), c.taskList(), c.taskWait(), c.taskCancel())
}

const anyTopic = "topic of the task (default: look in every topic)"

func (c *cli) taskGet() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show a task",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.call(cmd, func(ctx context.Context, s *client.Client) error {
				task, err := s.Get(ctx, topic, args[0])
				if err != nil {
					return err
				}
				v := viewTask(task)
				return c.record(v, v.rows()...)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	return cmd
}

type deletedTaskView struct {
	Topic   string `json:"topic"`
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

func (c *cli) taskDelete() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a task that no worker holds",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.call(cmd, func(ctx context.Context, s *client.Client) error {
				foundIn, err := s.Delete(ctx, topic, args[0])
				if err != nil {
					return err
				}
				return c.say(deletedTaskView{foundIn, args[0], true}, "task %s of topic %s deleted", args[0], foundIn)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	return cmd
}

// listable are the states that tasks can be listed by.
var listable = []client.State{
	client.StateScheduled, client.StateReady, client.StateRunning, client.StateRetrying,
	client.StateDone, client.StateDead, client.StateExpired,
}

func parseState(name string) (client.State, error) {
	if name == "" {
		return client.StateUnknown, nil // all live ones
	}
	names := make([]string, len(listable))
	for i, s := range listable {
		if names[i] = s.String(); names[i] == name {
			return s, nil
		}
	}
	return client.StateUnknown, usagef("--state is one of %s, not %q", strings.Join(names, ", "), name)
}

func (c *cli) taskList() *cobra.Command {
	var topic, state string
	var limit int
	cmd := &cobra.Command{
		Use:   "list --topic TOPIC",
		Short: "List the tasks of a topic",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topic == "" {
				return usagef("--topic is required")
			}
			st, err := parseState(state)
			if err != nil {
				return err
			}
			out := c.listing("id", "state", "due", "retries", "payload")
			err = c.call(cmd, func(ctx context.Context, s *client.Client) error {
				return out.tasks(s.List(ctx, topic, st), limit, func(v taskView) []any {
					return []any{v.ID, v.State, v.ExecuteTime, v.RetryCount, shorten(v.payloadText(), 40)}
				})
			})
			return out.end(err, "No tasks.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "topic of the tasks (required)")
	cmd.Flags().StringVar(&state, "state", "", "only those that are scheduled, ready, running, retrying, done, dead or expired (default all that live)")
	cmd.Flags().IntVar(&limit, "limit", 100, "most tasks to list; 0 is all")
	return cmd
}

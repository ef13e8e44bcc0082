package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/loglevel"
	"github.com/ddq-io/ddq/cmd/cli/session"
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
		Use:   "log-level NODE [LEVEL]",
		Short: "Make a node log more or less for a while, or say what it logs now",
		Long: `Make a node log from debug, info, warn or error on for a while. With --topic and
debug it logs each thing that happens to a task of that topic. "configured" ends it
before its time. Without a level the command says what the node logs now.`,
		Example: "  ddq cluster log-level n1 debug --topic mail --for 5m\n  ddq cluster log-level n1",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return c.showLogLevel(cmd, args[0])
			}
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

// showLogLevel says what a node logs now.
func (c clusterCommands) showLogLevel(cmd *cobra.Command, name string) error {
	for _, flag := range []string{"topic", "for"} {
		if cmd.Flags().Changed(flag) {
			return session.Usagef("--%s goes with a level", flag)
		}
	}
	return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
		nodes, err := s.Nodes(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(nodes, func(n client.Node) bool { return n.Name == name })
		switch {
		case i < 0:
			return fmt.Errorf("no node %q in the fleet", name)
		case nodes[i].Load == nil:
			return errNoAnswer
		case nodes[i].Logs == nil:
			return errors.New("the node does not say what it logs: it is of a version of before")
		}
		return c.Say(nodes[i].Logs, "Node %s logs %s.", name, logsText(nodes[i].Logs))
	})
}

// logsText is what a node logs in words.
func logsText(l *loglevel.Now) string {
	if l == nil {
		return ""
	}
	until := func(t time.Time) string { return " until " + t.Format(time.DateTime) }
	text := string(l.Level)
	if !l.Until.IsZero() {
		text += until(l.Until)
	}
	for _, t := range l.Topics {
		text += ", tasks of " + t.Topic + until(t.Until)
	}
	return text
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/loglevel"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/cli/topics"
)

// clusterCommands are those of ddq cluster.
type clusterCommands struct{ *cli }

func clusterCommand(parent *cli) *cobra.Command {
	c := clusterCommands{parent}
	return session.Group("cluster", "See and move what the nodes of a fleet do",
		c.nodes(), c.workers(), c.shards(), c.drain(), c.undrain(), c.logLevel(), c.plan(), c.release(), c.reshard())
}

// nodeView is a node as JSON output has it.
type nodeView struct {
	Name          string `json:"name"`
	Addr          string `json:"addr"`
	Zone          string `json:"zone,omitempty"`
	Version       string `json:"version"`
	State         string `json:"state"`
	Self          bool   `json:"self"`
	Reachable     bool   `json:"reachable"`
	UptimeMs      int64  `json:"uptime_ms,omitempty"`
	ClockOffsetUs int64  `json:"clock_offset_us"`
	Shards        int    `json:"shards"`
	Wheel         int64  `json:"wheel"`
	Ready         int64  `json:"ready"`
	Held          int64  `json:"held"`
	Subscriptions int    `json:"subscriptions"`

	Logs *loglevel.Now `json:"logs,omitempty"` // what it logs now
}

func viewNode(n *client.Node) nodeView {
	v := nodeView{
		Name: n.Name, Addr: n.Addr, Zone: n.Zone, Version: n.Version, State: string(n.State), Self: n.Self, Reachable: n.Load != nil, Logs: n.Logs,
	}
	if l := n.Load; l != nil {
		v.UptimeMs, v.ClockOffsetUs = l.Uptime.Milliseconds(), l.ClockOffset.Microseconds()
		v.Shards, v.Wheel, v.Ready, v.Held, v.Subscriptions = l.Shards, l.Wheel, l.Ready, l.Held, l.Subscriptions
	}
	return v
}

func (v *nodeView) row() []any {
	if !v.Reachable {
		return []any{v.Name, v.Addr, v.State, "no answer"}
	}
	up := (time.Duration(v.UptimeMs) * time.Millisecond).Round(time.Second)
	offset := (time.Duration(v.ClockOffsetUs) * time.Microsecond).Round(100 * time.Microsecond)
	return []any{v.Name, v.Addr, v.State, up, v.Shards, v.Wheel, v.Ready, v.Held, v.Subscriptions, offset, v.Version, logsText(v.Logs)}
}

func (c clusterCommands) nodes() *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes and how they fare",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("name", "address", "state", "up", "shards", "due soon", "ready", "held", "workers", "clock offset", "version", "logs")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				nodes, err := s.Nodes(ctx)
				for i := range nodes {
					v := viewNode(&nodes[i])
					if err := out.Add(v, v.row()...); err != nil {
						return err
					}
				}
				return err
			})
			return out.End(err, "There are no nodes.")
		},
	}
}

// shardView is a shard as JSON output has it.
type shardView struct {
	Topic      string `json:"topic"`
	Shard      int    `json:"shard"`
	Owner      string `json:"owner"`
	PlacedOn   string `json:"placed_on"`
	Epoch      int64  `json:"epoch"`
	Scheduled  int64  `json:"scheduled"`
	Ready      int64  `json:"ready"`
	Running    int64  `json:"running"`
	Done       int64  `json:"done"`
	Dead       int64  `json:"dead"`
	OldestDue  string `json:"oldest_due,omitempty"`
	Wheel      *int64 `json:"wheel,omitempty"` // unset when the owner did not answer
	LatenessMs int64  `json:"lateness_ms"`
	Former     bool   `json:"former,omitempty"` // of before a reshard
}

// name is the shard's number, marked when it is a former one.
func (v *shardView) name() string {
	if v.Former {
		return fmt.Sprintf("%d (former)", v.Shard)
	}
	return strconv.Itoa(v.Shard)
}

func viewShard(s *client.Shard) shardView {
	v := shardView{
		Topic: s.Topic, Shard: s.N, Owner: s.Owner, PlacedOn: s.PlacedOn, Epoch: s.Epoch,
		Scheduled: s.Depth.Scheduled, Ready: s.Depth.Ready, Running: s.Depth.Running, Done: s.Depth.Done, Dead: s.Depth.Dead,
		OldestDue: terminal.Clock(s.OldestDue), LatenessMs: s.Lateness.Milliseconds(), Former: s.Former,
	}
	if s.Wheel >= 0 {
		v.Wheel = &s.Wheel
	}
	return v
}

// where is the owner, and where the shard should be when that is elsewhere.
func (v *shardView) where() string {
	if v.Owner == v.PlacedOn {
		return v.Owner
	}
	return cmp.Or(v.Owner, "nobody") + " → " + cmp.Or(v.PlacedOn, "nobody")
}

func (c clusterCommands) shards() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   "shards",
		Short: "List shards, who owns them and what is in them",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("topic", "shard", "owner", "epoch", "scheduled", "ready", "running", "dead", "due soon", "late by")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.Shards(ctx, topic), 0, func(shard client.Shard) error {
					v, wheel := viewShard(&shard), "?"
					if v.Wheel != nil {
						wheel = strconv.FormatInt(*v.Wheel, 10)
					}
					row := []any{v.Topic, v.name(), v.where(), v.Epoch, v.Scheduled, v.Ready, v.Running, v.Dead, wheel, shard.Lateness}
					return out.Add(v, row...)
				})
			})
			return out.End(err, "There are no shards yet.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "only of this topic")
	return cmd
}

// drainLook is the pause between looks at a node that drains.
const drainLook = 200 * time.Millisecond

func (c clusterCommands) drain() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Make a node give its shards to the others",
		Long: `Make a node give its shards to the others. It stays a member, takes calls, and its
workers keep working; stop it when you like. With --wait, return once it owns no
shard any more.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if err := s.DrainNode(ctx, args[0]); err != nil {
					return err
				}
				if wait {
					if err := c.awaitDrained(ctx, s, args[0]); err != nil {
						return err
					}
				}
				return c.Say(map[string]any{"node": args[0], "draining": true}, "Node %s is draining.", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return once the node owns no shard")
	return cmd
}

// awaitDrained returns once a node owns nothing.
func (c clusterCommands) awaitDrained(ctx context.Context, s *client.Client, name string) error {
	for {
		left, err := shardsOwned(ctx, s, name)
		if err != nil || left == 0 {
			return err
		}
		if terminal.IsTerminal(c.Err) {
			fmt.Fprintf(terminal.Raw(c.Err), "\r%d shards left  ", left)
		}
		select {
		case <-time.After(drainLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errNoAnswer = errors.New("the node does not answer")

func shardsOwned(ctx context.Context, s *client.Client, name string) (int, error) {
	nodes, err := s.Nodes(ctx)
	if err != nil {
		return 0, err
	}
	for _, n := range nodes {
		if n.Name == name && n.Load == nil {
			return 0, errNoAnswer
		}
		if n.Name == name {
			return n.Load.Shards, nil
		}
	}
	return 0, nil // it left, and owns nothing
}

func (c clusterCommands) undrain() *cobra.Command {
	return &cobra.Command{
		Use:   "undrain NODE",
		Short: "Let a node own shards again",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if err := s.UndrainNode(ctx, args[0]); err != nil {
					return err
				}
				return c.Say(map[string]any{"node": args[0], "draining": false}, "Node %s takes shards again.", args[0])
			})
		},
	}
}

// moveView is a move as JSON output has it.
type moveView struct {
	Topic string `json:"topic"`
	Shard int    `json:"shard"`
	From  string `json:"from"`
	To    string `json:"to"`
}

func (c clusterCommands) plan() *cobra.Command {
	var drain []string
	cmd := &cobra.Command{
		Use:     "plan",
		Short:   "Show which shards would move, without moving any",
		Example: "  ddq cluster plan --drain n2",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("topic", "shard", "from", "to")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				moves, err := s.Plan(ctx, drain...)
				for _, m := range moves {
					v := moveView{m.Topic, m.N, m.From, m.To}
					if err := out.Add(v, v.Topic, v.Shard, cmp.Or(v.From, "nobody"), cmp.Or(v.To, "nobody")); err != nil {
						return err
					}
				}
				return err
			})
			return out.End(err, "No shard would move.")
		},
	}
	cmd.Flags().StringSliceVar(&drain, "drain", nil, "as if these nodes drained")
	return cmd
}

func (c clusterCommands) release() *cobra.Command {
	return &cobra.Command{
		Use:   "release TOPIC SHARD",
		Short: "Make the owner of a shard give it up, to be claimed anew",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return session.Usagef("SHARD is a number, not %q", args[1])
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if err := s.ReleaseShard(ctx, args[0], n); err != nil {
					return err
				}
				return c.Say(moveView{Topic: args[0], Shard: n}, "Shard %d of %s was released.", n, args[0])
			})
		},
	}
}

func (c clusterCommands) reshard() *cobra.Command {
	var shards int
	cmd := &cobra.Command{
		Use:   "reshard TOPIC --shards N",
		Short: "Give a topic another number of shards while it runs",
		Long: `Give a topic another number of shards while it runs. New tasks go to new shards at
once; the former ones go on with what they have, and go when they are empty.`,
		Example: "  ddq cluster reshard mail --shards 16",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if shards < 1 {
				return session.Usagef("--shards is the number of shards that the topic shall have, from 1")
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				t, err := s.ReshardTopic(ctx, args[0], shards)
				if err != nil {
					return err
				}
				return c.Say(topics.ViewOf(t), "Topic %s has %d shards; %d former ones go when they are empty.", t.Name, *t.Policy.Shards, t.FormerShards)
			})
		},
	}
	cmd.Flags().IntVar(&shards, "shards", 0, "how many shards the topic shall have")
	return cmd
}

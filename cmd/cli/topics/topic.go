package topics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// commands are those of ddq topic.
type commands struct{ *session.Session }

// Command is ddq topic.
func Command(parent *session.Session) *cobra.Command {
	c := commands{parent}
	return session.Group("topic", "Create, change and watch topics",
		c.create(), c.set(), c.list(), c.describe(),
		c.pause(), c.resume(), c.purge(), c.delete())
}

// policyFlags are a topic's policy on the command line. Only what was given is
// sent: the rest stays as it is, or as the server has it by default.
type policyFlags struct {
	fs            *pflag.FlagSet
	visibility    time.Duration
	maxRetries    int
	backoff       session.BackoffFlag
	maxDelay      time.Duration
	maxPayload    int
	doneRetention time.Duration
	limits        limitFlags
	deadRetention time.Duration
	maxDead       int
	maxBacklog    int
	ageing        int
	watch         time.Duration
	watchMax      int
	indexed       []string
	workflows     int
	schedules     int
	workflowsKept time.Duration
}

func newPolicyFlags(fs *pflag.FlagSet) *policyFlags {
	p := &policyFlags{fs: fs}
	node.DurationVar(fs, &p.visibility, "visibility-timeout", 0, "how long a hold lasts unless extended")
	fs.IntVar(&p.maxRetries, "max-retries", 0, "deliveries after the first before a task is dead-lettered")
	fs.Var(&p.backoff, "backoff", node.BackoffUsage)
	node.DurationVar(fs, &p.maxDelay, "max-delay", 0, "farthest due time")
	fs.IntVar(&p.maxPayload, "max-payload", 0, "most bytes of a payload")
	node.DurationVar(fs, &p.doneRetention, "done-retention", 0, "how long done tasks are kept")
	p.limits.flags(fs)
	node.DurationVar(fs, &p.deadRetention, "dead-retention", 0, "how long dead letters are kept (0: for ever)")
	fs.IntVar(&p.maxDead, "max-dead", 0, "most dead letters; beyond it the oldest are deleted (0: any number)")
	fs.IntVar(&p.maxBacklog, "max-backlog", 0, "most tasks that may wait; beyond it enqueues are refused (0: any number)")
	fs.IntVar(&p.ageing, "priority-ageing", 0, "one of so many deliveries is that of the task due for longest, whatever its priority")
	node.DurationVar(fs, &p.watch, "watch-retention", 0, "how long what happens to tasks is kept for ddq watch: 1s to 168h (0: not at all)")
	fs.IntVar(&p.watchMax, "watch-max-events", 0, "how many of these changes each shard keeps (0: 100,000)")
	node.DurationVar(fs, &p.workflowsKept, "workflow-retention", 0, "how long workflows are kept after their end that do not say it themselves: 1s to 366d (0: 7d)")
	fs.IntVar(&p.workflows, "max-workflows", 0, "most workflows that may be open; beyond it submits are refused (0: 1,000,000)")
	fs.IntVar(&p.schedules, "max-schedules", 0, "most schedules; beyond it new ones are refused (0: 1,000,000)")
	fs.StringArrayVar(&p.indexed, "index-attribute", nil, "attribute by which tasks are found quickly, up to four times; instead of those of before (none: none)")
	return p
}

func (p *policyFlags) read() (client.Policy, error) {
	policy := client.Policy{
		VisibilityTimeout: given(p.fs, "visibility-timeout", p.visibility),
		MaxRetries:        given(p.fs, "max-retries", p.maxRetries),
		Backoff:           p.backoff.Own(),
		MaxDelay:          given(p.fs, "max-delay", p.maxDelay),
		MaxPayload:        given(p.fs, "max-payload", p.maxPayload),
		DoneRetention:     given(p.fs, "done-retention", p.doneRetention),
		DeadRetention:     given(p.fs, "dead-retention", p.deadRetention),
		MaxDead:           given(p.fs, "max-dead", p.maxDead),
		MaxBacklog:        given(p.fs, "max-backlog", p.maxBacklog),
		PriorityAgeing:    given(p.fs, "priority-ageing", p.ageing),
		WatchRetention:    given(p.fs, "watch-retention", p.watch),
		WatchMax:          given(p.fs, "watch-max-events", p.watchMax),
		WorkflowRetention: given(p.fs, "workflow-retention", p.workflowsKept),
		MaxWorkflows:      given(p.fs, "max-workflows", p.workflows),
		MaxSchedules:      given(p.fs, "max-schedules", p.schedules),
	}
	if p.fs.Changed("index-attribute") {
		policy.IndexedAttributes = &p.indexed
		if slices.Equal(p.indexed, []string{"none"}) {
			policy.IndexedAttributes = new([]string)
		}
	}
	err := p.limits.read(p.fs, &policy)
	return policy, err
}

// given returns nil for a flag that was left out.
func given[T any](fs *pflag.FlagSet, flag string, v T) *T {
	if !fs.Changed(flag) {
		return nil
	}
	return &v
}

func (c commands) create() *cobra.Command {
	var shards int
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a topic",
		Example: "  ddq topic create mail --shards 8 --visibility-timeout 1m --backoff exponential,base=1s,max=10m,jitter=20",
		Args:    cobra.ExactArgs(1),
	}
	flags := newPolicyFlags(cmd.Flags())
	cmd.Flags().IntVar(&shards, "shards", 0, "parts the topic is spread over; fixed from then on")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		policy, err := flags.read()
		if err != nil {
			return err
		}
		policy.Shards = given(cmd.Flags(), "shards", shards)
		return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
			topic, err := s.CreateTopic(ctx, args[0], policy)
			if err != nil {
				return err
			}
			return c.print(ViewOf(topic))
		})
	}
	return cmd
}

func (c commands) set() *cobra.Command {
	var ifVersion int64
	cmd := &cobra.Command{
		Use:     "set NAME",
		Short:   "Change the policy of a topic",
		Example: "  ddq topic set mail --max-retries 10\n  ddq topic set mail --rate 100/s --burst 10 --concurrency 5 --key-rate 1000/h --key-concurrency 1\n  ddq topic set mail --index-attribute tenant --index-attribute path",
		Args:    cobra.ExactArgs(1),
	}
	flags := newPolicyFlags(cmd.Flags())
	cmd.Flags().Int64Var(&ifVersion, "if-version", 0, "change nothing unless the topic has this version, see describe")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		policy, err := flags.read()
		if err != nil {
			return err
		}
		if policy == (client.Policy{}) {
			return session.Usagef("say what to change, for example --max-retries 10")
		}
		return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
			configure := s.ConfigureTopic
			if cmd.Flags().Changed("if-version") {
				configure = func(ctx context.Context, name string, p client.Policy) (client.Topic, error) {
					return s.ConfigureTopicIf(ctx, name, ifVersion, p)
				}
			}
			topic, err := configure(ctx, args[0], policy)
			if err != nil {
				return err
			}
			return c.printChanged(ViewOf(topic), cmd.LocalNonPersistentFlags())
		})
	}
	return cmd
}

func (c commands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the topics",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("name", "shards", "visibility timeout", "max retries", "backoff", "paused")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.ListTopics(ctx), 0, func(topic client.Topic) error {
					v := ViewOf(topic)
					return out.Add(v, v.Name, v.Shards, session.Millis(v.VisibilityTimeoutMs), v.MaxRetries, session.BackoffText(v.Backoff), v.paused())
				})
			})
			return out.End(err, "There are no topics yet.")
		},
	}
}

func (c commands) describe() *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAME",
		Short: "Show the policy of a topic and how many tasks it has in which state",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				topic, err := s.DescribeTopic(ctx, args[0])
				if err != nil {
					return err
				}
				return c.print(ViewOfStatus(topic))
			})
		},
	}
}

func (c commands) pause() *cobra.Command {
	var delivery, enqueue bool
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Stop deliveries of a topic, or stop taking tasks for it",
		Long:  "Stop deliveries of a topic (the default), stop taking tasks for it, or both. Running tasks go on.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("delivery") && !enqueue {
				delivery = true
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				topic, err := s.PauseTopic(ctx, args[0], client.Pause{Delivery: delivery, Enqueue: enqueue})
				if err != nil {
					return err
				}
				v := ViewOf(topic)
				return c.Say(v, "topic %s is paused: %s (version %d)", v.Name, v.paused(), v.Version)
			})
		},
	}
	cmd.Flags().BoolVar(&delivery, "delivery", false, "deliver no more tasks")
	cmd.Flags().BoolVar(&enqueue, "enqueue", false, "take no more tasks")
	return cmd
}

func (c commands) resume() *cobra.Command {
	var ramp time.Duration
	cmd := &cobra.Command{
		Use:     "resume NAME",
		Short:   "Undo pause",
		Long:    "Undo pause. With --ramp deliveries begin slowly and reach full speed after that time.",
		Example: "  ddq topic resume mail --ramp 5m",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				topic, err := s.ResumeTopicSlowly(ctx, args[0], ramp)
				if err != nil {
					return err
				}
				v := ViewOf(topic)
				return c.Say(v, "topic %s is resumed%s (version %d)", v.Name, v.rising(), v.Version)
			})
		},
	}
	node.DurationVar(cmd.Flags(), &ramp, "ramp", 0, "how long deliveries rise to full speed (default not at all)")
	return cmd
}

type purgeView struct {
	Name    string `json:"name"`
	Deleted int64  `json:"deleted"`
	Skipped int64  `json:"skipped,omitempty"`
}

func (c commands) purge() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "purge NAME",
		Short: "Delete the tasks of a topic that no worker holds, but for those of workflows",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.Confirm(yes, "delete every pending task of topic "+args[0]); err != nil {
				return err
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				deleted, skipped, err := s.PurgeTopic(ctx, args[0])
				if err != nil {
					return err
				}
				view := purgeView{args[0], deleted, skipped}
				if skipped > 0 {
					return c.Say(view, "%d tasks deleted, %d of workflows skipped", deleted, skipped)
				}
				return c.Say(view, "%d tasks deleted", deleted)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

type deletedTopicView struct {
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

func (c commands) delete() *cobra.Command {
	var force, yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a topic; one that has tasks, schedules or open workflows needs --force",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if force {
				if err := c.Confirm(yes, fmt.Sprintf("delete topic %s and all that it has", args[0])); err != nil {
					return err
				}
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if err := s.DeleteTopic(ctx, args[0], force); err != nil {
					return err
				}
				return c.Say(deletedTopicView{args[0], true}, "topic %s deleted", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete what it has, too")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (c commands) print(v View) error { return c.Record(v, v.Rows()...) }

// rowsOf are the rows of flags that do not have one of their own name.
var rowsOf = map[string]string{
	"burst": "rate", "rate-window": "rate", "key-burst": "key rate", "key-rate-window": "key rate",
	"watch-max-events": "watch retention", "index-attribute": "indexed attributes",
}

// ended is what rows that are not there stand for, where that is not none.
var ended = map[string]string{"over limit": client.OverLimitWait.String()}

// printChanged prints a topic as JSON, and for people what the flags of the command
// changed of it.
func (c commands) printChanged(v View, fs *pflag.FlagSet) error {
	rows := []table.Row{{"name", v.Name}, {"version", v.Version}}
	all, seen := v.Rows(), map[string]bool{"if version": true}
	fs.VisitAll(func(f *pflag.Flag) {
		name := cmp.Or(rowsOf[f.Name], strings.ReplaceAll(f.Name, "-", " "))
		if !f.Changed || seen[name] {
			return
		}
		seen[name] = true
		i := slices.IndexFunc(all, func(r table.Row) bool { return r[0] == name })
		if i < 0 {
			rows = append(rows, table.Row{name, cmp.Or(ended[name], "none")})
			return
		}
		rows = append(rows, all[i])
	})
	return c.Record(v, rows...)
}

package cli

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// editedView is a task after an edit.
type editedView struct {
	Topic       string `json:"topic"`
	ID          string `json:"id"`
	ExecuteTime string `json:"execute_time"`
	Version     int64  `json:"version"`
}

func (c taskCommands) sayEdited(r client.Receipt) error {
	v := editedView{r.Topic, r.ID, terminal.Clock(r.Due), r.Version}
	return c.Say(v, "task %s of topic %s is due %s, version %d", v.ID, v.Topic, v.ExecuteTime, v.Version)
}

const (
	ifVersionUsage = "only if the task has this version, as task get shows it (default any)"
	delayUsage     = "how long from now the task is due"
	atUsage        = "when the task is due: RFC 3339"
)

// moveFlags say when tasks are to be due.
type moveFlags struct {
	bulkFlags
	at                   string
	delay, shift, spread time.Duration
	ifVersion            int64
}

func (f *moveFlags) flags(fs *pflag.FlagSet) {
	f.bulkFlags.flags(fs)
	node.DurationVar(fs, &f.delay, "delay", 0, delayUsage)
	fs.StringVar(&f.at, "at", "", atUsage)
	node.DurationVar(fs, &f.shift, "shift", 0, "with a filter: how much later, or earlier, each task is due than before")
	node.DurationVar(fs, &f.spread, "spread", 0, "with a filter: each task is due up to this much later, by its id")
	fs.Int64Var(&f.ifVersion, "if-version", 0, ifVersionUsage)
}

// to is when tasks are to be due; nil for a shift.
func (f *moveFlags) to(fs *pflag.FlagSet, many bool) (*client.When, error) {
	given := 0
	for _, name := range []string{"delay", "at", "shift"} {
		if fs.Changed(name) {
			given++
		}
	}
	switch {
	case !many && (fs.Changed("shift") || fs.Changed("spread")):
		return nil, session.Usagef("--shift and --spread go with a filter")
	case many && fs.Changed("if-version"):
		return nil, session.Usagef("--if-version goes with an id")
	case given != 1:
		return nil, session.Usagef("give one of --delay, --at and --shift")
	case fs.Changed("shift"):
		return nil, nil
	}
	due, err := session.ParseTime("at", f.at)
	return &client.When{Delay: f.delay, Due: due}, err
}

func (c taskCommands) reschedule() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "reschedule (ID | --topic TOPIC FILTER) (--delay 5s | --at TIME | --shift 1h)",
		Short: "Move the due time of a task that no worker holds, or of all that match a filter",
		Example: `  ddq task reschedule report-2030-01 --at 2030-02-01T09:00:00Z
  ddq task reschedule --topic mail --state ready --delay 0s --spread 1h`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			filter, many, err := f.many(ids)
			if err != nil {
				return err
			}
			when, err := f.to(cmd.Flags(), many)
			if err != nil {
				return err
			}
			if many {
				shift := client.Shift{When: when, By: f.shift, Spread: f.spread}
				move := &operations.Move{Filter: filter.Wire(), By: f.shift, Spread: f.spread}
				if when != nil {
					move.Due, move.Delay = when.Due, &when.Delay
				}
				return c.changeMany(cmd, &f.bulkFlags, "move the", operations.Change{Move: move}, func(ctx context.Context, s *client.Client, b client.Bulk) (client.Progress, error) {
					return s.RescheduleTasks(ctx, f.topic, filter, shift, b)
				})
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				r, err := s.RescheduleIf(ctx, f.topic, ids[0], *when, f.ifVersion)
				if err != nil {
					return err
				}
				return c.sayEdited(r)
			})
		},
	}
	f.flags(cmd.Flags())
	return cmd
}

func (c taskCommands) promote() *cobra.Command {
	var topic string
	var ifVersion int64
	cmd := &cobra.Command{
		Use:   "promote ID",
		Short: "Make a task that no worker holds due now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				r, err := s.PromoteTask(ctx, topic, args[0], ifVersion)
				if err != nil {
					return err
				}
				return c.sayEdited(r)
			})
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", anyTopic)
	cmd.Flags().Int64Var(&ifVersion, "if-version", 0, ifVersionUsage)
	return cmd
}

// updateFlags say what to change of a task.
type updateFlags struct {
	topic       string
	ifVersion   int64
	payload     string
	payloadFile string
	attributes  map[string]string
	noAttr      bool
	maxRetries  int
	visibility  time.Duration
	timeout     time.Duration
	backoff     session.BackoffFlag
	expireAt    string
	expireAfter time.Duration
	noExpiry    bool
	delay       time.Duration
	at          string
	priority    int
	fairness    string
	weight      int
}

func (f *updateFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.topic, "topic", "", anyTopic)
	fs.Int64Var(&f.ifVersion, "if-version", 0, ifVersionUsage)
	fs.StringVar(&f.payload, "payload", "", "what the worker gets")
	fs.StringVar(&f.payloadFile, "payload-file", "", "file with what the worker gets; - is stdin")
	fs.StringToStringVar(&f.attributes, "attr", nil, "attributes of the task, instead of all that it has: --attr tenant=acme")
	fs.BoolVar(&f.noAttr, "no-attr", false, "take the attributes away")
	fs.IntVar(&f.maxRetries, "max-retries", 0, "deliveries after the first; -1 is the topic's")
	node.DurationVar(fs, &f.visibility, "visibility-timeout", 0, "how long a hold lasts; 0 is the topic's")
	node.DurationVar(fs, &f.timeout, "handler-timeout", 0, "how long a handler may run in one attempt; 0 is the worker's")
	fs.Var(&f.backoff, "backoff", node.BackoffUsage)
	fs.StringVar(&f.expireAt, "expire-at", "", "dead-letter the task when it was not delivered by then: RFC 3339")
	node.DurationVar(fs, &f.expireAfter, "expire-after", 0, "dead-letter the task when it was not delivered so long after its due time")
	fs.BoolVar(&f.noExpiry, "no-expiry", false, "never dead-letter it for being late")
	node.DurationVar(fs, &f.delay, "delay", 0, delayUsage)
	fs.StringVar(&f.at, "at", "", atUsage)
	fs.IntVar(&f.priority, "priority", 0, "0 to 9; of the tasks that are due, those of a higher one go first")
	fs.StringVar(&f.fairness, "fairness-key", "", "tasks of one key take turns with those of others")
	fs.IntVar(&f.weight, "fairness-weight", 0, "how many tasks of the fairness key make a turn")
}

func (c taskCommands) update() *cobra.Command {
	var f updateFlags
	cmd := &cobra.Command{
		Use:     "update ID",
		Short:   "Change a task that no worker holds, in place",
		Example: "  ddq task update report-2030-01 --payload-file report.json --if-version 3",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change, err := f.change(cmd.Flags(), c.In)
			if err != nil {
				return err
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				r, err := s.UpdateTask(ctx, f.topic, args[0], change)
				if err != nil {
					return err
				}
				return c.sayEdited(r)
			})
		},
	}
	f.flags(cmd.Flags())
	c.KeyringFlag(cmd.Flags())
	return cmd
}

// change builds what was asked for. in is read for --payload-file -.
func (f *updateFlags) change(fs *pflag.FlagSet, in io.Reader) (c client.Change, err error) {
	if err := onlyOne(fs, exclusive[:]); err != nil {
		return c, err
	}
	if fs.Changed("payload") {
		c.Payload = []byte(f.payload)
	}
	if f.payloadFile != "" {
		if c.Payload, err = terminal.ReadAll(in, f.payloadFile); err != nil {
			return c, fmt.Errorf("payload: %w", err)
		}
	}
	if c.Attributes = f.attributes; f.noAttr {
		c.Attributes = map[string]string{}
	}
	if fs.Changed("max-retries") {
		c.MaxRetries = &f.maxRetries
	}
	if fs.Changed("visibility-timeout") {
		c.VisibilityTimeout = &f.visibility
	}
	if fs.Changed("handler-timeout") {
		c.HandlerTimeout = &f.timeout
	}
	c.Backoff = f.backoff.Own()
	if fs.Changed("priority") {
		c.Priority = &f.priority
	}
	if fs.Changed("fairness-key") {
		c.FairnessKey = &f.fairness
	}
	if fs.Changed("fairness-weight") {
		c.FairnessWeight = &f.weight
	}
	if err := f.times(fs, &c); err != nil {
		return c, err
	}
	if reflect.DeepEqual(c, client.Change{}) {
		return c, session.Usagef("say what to change, such as --payload")
	}
	c.IfVersion = f.ifVersion
	return c, nil
}

// times adds when the task is due and when it expires.
func (f *updateFlags) times(fs *pflag.FlagSet, c *client.Change) error {
	if fs.Changed("delay") || fs.Changed("at") {
		due, err := session.ParseTime("at", f.at)
		if err != nil {
			return err
		}
		c.When = &client.When{Delay: f.delay, Due: due}
	}
	if c.ExpireAfter = f.expireAfter; f.noExpiry {
		c.Expires = &time.Time{}
	}
	if f.expireAt != "" {
		expires, err := session.ParseTime("expire-at", f.expireAt)
		if err != nil {
			return err
		}
		c.Expires = &expires
	}
	return nil
}

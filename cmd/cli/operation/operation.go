package operation

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// commands are those of ddq operation.
type commands struct{ *session.Session }

// Command is ddq operation.
func Command(parent *session.Session) *cobra.Command {
	c := commands{parent}
	return session.Group("operation", "Changes of many tasks that a node makes meanwhile: see how far they are, stop them",
		c.list(), c.get(), c.watch(), c.stop())
}

// Background are the flags of changes of many tasks for which nobody need wait.
type Background struct {
	On   bool
	rate int
}

// Flags makes them.
func (f *Background) Flags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.On, "background", false, "with a filter: have a node do it meanwhile, and do not wait; see ddq operation")
	fs.IntVar(&f.rate, "rate", 0, "with --background: tasks a second at most (default as many as it goes)")
}

// Check refuses what does not go together; filtered says that it is about what a filter matches.
func (f *Background) Check(filtered bool) error {
	switch {
	case f.On && !filtered:
		return session.Usagef("--background goes with a filter, not with ids")
	case f.rate != 0 && !f.On:
		return session.Usagef("--rate goes with --background")
	}
	return nil
}

// Start has a node make a change, and says how to hear of it.
func (f *Background) Start(c *session.Session, cmd *cobra.Command, topic string, change operations.Change) error {
	change.Rate = f.rate
	return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
		o, err := s.StartOperation(ctx, topic, change)
		if err != nil {
			return err
		}
		return Started(c, &o)
	})
}

// view is an operation as JSON output has it.
type view struct {
	Topic     string `json:"topic"`
	ID        string `json:"id"`
	Action    string `json:"action"`
	State     string `json:"state"`
	Matched   int64  `json:"matched"`
	Changed   int64  `json:"changed"`
	Skipped   int64  `json:"skipped"`
	Capped    bool   `json:"capped,omitempty"`
	Examined  int64  `json:"examined,omitempty"`
	Rate      int    `json:"rate_per_s,omitempty"`
	Node      string `json:"node"`
	StartedBy string `json:"started_by,omitempty"`
	Stopping  bool   `json:"stopping,omitempty"`
	Error     string `json:"error,omitempty"`
	Created   string `json:"created"`
	Began     string `json:"began,omitempty"`
	Ended     string `json:"ended,omitempty"`
}

func viewOf(o *operations.Operation) view {
	return view{
		o.Topic, o.ID, o.Action, o.State.String(), o.Matched, o.Changed, o.Skipped, o.Capped, o.Examined, o.Rate, o.Node, o.StartedBy, o.Stopping,
		o.Error, terminal.Clock(o.CreatedAt), terminal.Clock(o.BeganAt), terminal.Clock(o.EndedAt),
	}
}

// rows are the lines of a table about one operation.
func (v *view) rows() []table.Row {
	rows := []table.Row{
		{"id", v.ID}, {"topic", v.Topic}, {"action", v.Action}, {"state", v.word()}, {"changed", fmt.Sprintf("%d of %d, %d skipped", v.Changed, v.Matched, v.Skipped)},
		{"node", v.Node}, {"created", v.Created},
	}
	if v.Examined > 0 {
		rows = append(rows, table.Row{"examined", v.Examined})
	}
	for _, r := range []struct{ name, value string }{{"began", v.Began}, {"ended", v.Ended}, {"started by", v.StartedBy}, {"error", v.Error}} {
		if r.value != "" {
			rows = append(rows, table.Row{r.name, r.value})
		}
	}
	return rows
}

// word is the state, with what comes next.
func (v *view) word() string {
	if v.Stopping && v.Ended == "" {
		return v.State + ", stopping"
	}
	return v.State
}

const topicOfOperation = "topic of the operation (default none: it is about everything there is)"

func (c commands) list() *cobra.Command {
	var topic string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List operations, the newest first",
		Example: "  ddq operation list --topic mail",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := c.Listing("id", "action", "state", "changed", "matched", "skipped", "started by", "created")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.ListOperations(ctx, topic), limit, func(o operations.Operation) error {
					v := viewOf(&o)
					return out.Add(v, v.ID, v.Action, v.word(), v.Changed, v.Matched, v.Skipped, v.StartedBy, v.Created)
				})
			})
			return out.End(err, "There are no operations.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", topicOfOperation)
	cmd.Flags().IntVar(&limit, "limit", 0, "most operations to list (default all)")
	return cmd
}

// one is a command about one operation.
func (c commands) one(use, short string, do func(cmd *cobra.Command, topic, id string) error) *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use:   use + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return do(cmd, topic, args[0]) },
	}
	cmd.Flags().StringVar(&topic, "topic", "", topicOfOperation)
	return cmd
}

func (c commands) get() *cobra.Command {
	return c.one("get", "Show how far an operation is", func(cmd *cobra.Command, topic, id string) error {
		return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
			o, err := s.Operation(ctx, topic, id)
			if err != nil {
				return err
			}
			v := viewOf(&o)
			return c.Record(v, v.rows()...)
		})
	})
}

func (c commands) stop() *cobra.Command {
	return c.one("stop", "Ask an operation to stop; what it has changed stays changed", func(cmd *cobra.Command, topic, id string) error {
		return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
			o, err := s.StopOperation(ctx, topic, id)
			if err != nil {
				return err
			}
			v := viewOf(&o)
			return c.Say(v, "operation %s is %s: %d of %d tasks changed", v.ID, v.word(), v.Changed, v.Matched)
		})
	})
}

// lookEvery is how often an operation is looked at that is watched; its node tells once a second.
const lookEvery = time.Second

func (c commands) watch() *cobra.Command {
	return c.one("watch", "Wait for the end of an operation; exits 1 unless it is done", func(cmd *cobra.Command, topic, id string) error {
		s, err := c.Connect()
		if err != nil {
			return err
		}
		defer s.Close()
		return c.await(cmd.Context(), s, topic, id)
	})
}

// Await waits for the end of an operation, and prints how it ended. It is an error unless it is done.
func Await(ctx context.Context, c *session.Session, s *client.Client, topic, id string) error {
	return commands{c}.await(ctx, s, topic, id)
}

func (c commands) await(ctx context.Context, s *client.Client, topic, id string) error {
	o, err := c.end(ctx, s, topic, id)
	if err != nil {
		return err
	}
	v := viewOf(&o)
	if err := c.Record(v, v.rows()...); err != nil {
		return err
	}
	if o.State != operations.Done {
		return fmt.Errorf("operation %s is %s", id, v.State)
	}
	return nil
}

// Started says how to hear of an operation that was started.
func Started(c *session.Session, o *operations.Operation) error {
	at := o.ID
	if o.Topic != "" {
		at += " --topic " + o.Topic
	}
	return c.Say(viewOf(o), "operation %s started; see ddq operation watch %s", o.ID, at)
}

// end waits for the end of an operation, and shows how far it is meanwhile.
func (c commands) end(ctx context.Context, s *client.Client, topic, id string) (o operations.Operation, err error) {
	bar := c.Progress(-1, "tasks")
	defer bar.Finish()
	err = session.Until(ctx, lookEvery, func() (bool, error) {
		if o, err = s.Operation(ctx, topic, id); err != nil || o.State.Ended() {
			return true, err
		}
		bar.Set(int(o.Changed + o.Skipped))
		return false, nil
	})
	return o, err
}

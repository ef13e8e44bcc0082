package security

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/cmd/cli/session"
)

// namespaceCommands are those of ddq namespace.
type namespaceCommands struct{ *session.Session }

// NamespaceCommand is ddq namespace.
func NamespaceCommand(parent *session.Session) *cobra.Command {
	c := namespaceCommands{parent}
	return session.Group("namespace", "Namespaces, whose topics nobody else sees", c.create(), c.list(), c.get(), c.set(), c.delete())
}

// quotaFlags are flags for quotas, of which only those count that are given.
type quotaFlags struct {
	rate                         float64
	burst, pending, payloadBytes int64
	bytes                        int64
	topics, schedules, streams   int64
	inFlight                     int64
}

func (q *quotaFlags) add(fs *pflag.FlagSet) {
	fs.Float64Var(&q.rate, "enqueue-per-second", 0, "how many tasks may be enqueued in a second, over all nodes (0: no bound)")
	fs.Int64Var(&q.burst, "enqueue-burst", 0, "how many of them at once, after a rest (0: as many as in a second)")
	fs.Int64Var(&q.pending, "max-pending", 0, "how many tasks may wait or be ready, in all topics (0: no bound)")
	fs.Int64Var(&q.payloadBytes, "max-payload-bytes", 0, "how many bytes the payload of a task may have (0: as its topic says)")
	fs.Int64Var(&q.bytes, "bytes-per-second", 0, "how many bytes of payloads may be enqueued in a second, and at once after a rest (0: no bound)")
	fs.Int64Var(&q.topics, "max-topics", 0, "how many topics there may be (0: no bound)")
	fs.Int64Var(&q.schedules, "max-schedules", 0, "how many schedules there may be, in all topics (0: no bound)")
	fs.Int64Var(&q.streams, "max-streams", 0, "how many streams of workers may be open, at all nodes (0: no bound)")
	fs.Int64Var(&q.inFlight, "max-in-flight", 0, "how many tasks workers may hold at a time, of all topics and at all nodes (0: no bound)")
}

// change has the quotas whose flags are given.
func (q *quotaFlags) change(fs *pflag.FlagSet) (c access.QuotaChange) {
	if fs.Changed("enqueue-per-second") {
		c.EnqueuePerSecond = &q.rate
	}
	for _, f := range []struct {
		name string
		to   **int64
		from *int64
	}{
		{"enqueue-burst", &c.EnqueueBurst, &q.burst}, {"max-pending", &c.MaxPending, &q.pending},
		{"max-payload-bytes", &c.MaxPayloadBytes, &q.payloadBytes}, {"bytes-per-second", &c.BytesPerSecond, &q.bytes},
		{"max-topics", &c.MaxTopics, &q.topics}, {"max-schedules", &c.MaxSchedules, &q.schedules}, {"max-streams", &c.MaxStreams, &q.streams},
		{"max-in-flight", &c.MaxInFlight, &q.inFlight},
	} {
		if fs.Changed(f.name) {
			*f.to = f.from
		}
	}
	return c
}

func (c namespaceCommands) create() *cobra.Command {
	var quotas quotaFlags
	cmd := &cobra.Command{
		Use:     "create <name>",
		Short:   "Make a namespace",
		Example: "  ddq namespace create acme\n  ddq token create mailer --namespace acme --grant 'producer:mail*'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return c.print(one(s.CreateNamespace(ctx, args[0], quotas.change(cmd.Flags()))))
			})
		},
	}
	quotas.add(cmd.Flags())
	return cmd
}

func (c namespaceCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the namespaces",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error { return c.print(s.ListNamespaces(ctx)) })
		},
	}
}

func (c namespaceCommands) get() *cobra.Command {
	return &cobra.Command{
		Use:   "get <name>",
		Short: "Show a namespace, its quotas, and what it has of what they bound",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				n, err := s.GetNamespace(ctx, args[0])
				if err != nil {
					return err
				}
				return c.Record(n, namespaceRows(&n)...)
			})
		},
	}
}

func (c namespaceCommands) set() *cobra.Command {
	var quotas quotaFlags
	cmd := &cobra.Command{
		Use:     "set <name>",
		Short:   "Change quotas of a namespace: those that are given",
		Example: "  ddq namespace set acme --enqueue-per-second 500 --max-pending 1000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return c.print(one(s.ConfigureNamespace(ctx, args[0], quotas.change(cmd.Flags()))))
			})
		},
	}
	quotas.add(cmd.Flags())
	return cmd
}

func (c namespaceCommands) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete <name>",
		Short: "Delete a namespace without topics and audiences",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error { return s.DeleteNamespace(ctx, args[0]) })
		},
	}
}

// one is a list of what a call returned.
func one(n access.Namespace, err error) ([]access.Namespace, error) {
	if err != nil {
		return nil, err
	}
	return []access.Namespace{n}, nil
}

func (c namespaceCommands) print(all []access.Namespace, err error) error {
	out := c.Listing("name", "quotas", "made by")
	for _, n := range all {
		if err := out.Add(n, n.Name, quotasText(&n.Quotas), n.CreatedBy); err != nil {
			return err
		}
	}
	return out.End(err, "no namespaces")
}

// namespaceRows are the lines of a table about one namespace: each quota, and what there is beside what may be.
func namespaceRows(n *access.Namespace) []table.Row {
	rows := []table.Row{{"name", n.Name}}
	if n.CreatedBy != "" {
		rows = append(rows, table.Row{"made by", n.CreatedBy})
	}
	q := &n.Quotas
	var pending, inFlight, topics, schedules, streams *int64
	if u := n.Usage; u != nil { // a server of before does not say it
		pending, inFlight, topics, schedules, streams = &u.Pending, &u.InFlight, &u.Topics, u.Schedules, u.Streams
	}
	bound := func(most int64) string {
		if most == 0 {
			return "no bound"
		}
		return strconv.FormatInt(most, 10)
	}
	used := func(n *int64, most int64) string {
		if n == nil {
			return bound(most)
		}
		return fmt.Sprintf("%d of %s", *n, bound(most))
	}
	enqueued := bound(0)
	if q.EnqueuePerSecond != 0 {
		enqueued = fmt.Sprintf("%g", q.EnqueuePerSecond)
	}
	rows = append(rows, table.Row{"enqueued/s", enqueued})
	if q.EnqueueBurst != 0 {
		rows = append(rows, table.Row{"at once", bound(q.EnqueueBurst)})
	}
	return append(rows, table.Row{"bytes/s", bound(q.BytesPerSecond)}, table.Row{"bytes a payload", bound(q.MaxPayloadBytes)},
		table.Row{"pending", used(pending, q.MaxPending)}, table.Row{"in flight", used(inFlight, q.MaxInFlight)}, table.Row{"topics", used(topics, q.MaxTopics)},
		table.Row{"schedules", used(schedules, q.MaxSchedules)}, table.Row{"worker streams", used(streams, q.MaxStreams)})
}

func quotasText(q *access.Quotas) string {
	var all []string
	if q.EnqueuePerSecond != 0 {
		all = append(all, fmt.Sprintf("%g enqueued/s", q.EnqueuePerSecond))
	}
	for _, f := range []struct {
		n    int64
		what string
	}{
		{q.EnqueueBurst, "at once"}, {q.MaxPending, "pending"}, {q.MaxPayloadBytes, "bytes a payload"},
		{q.BytesPerSecond, "bytes/s"}, {q.MaxTopics, "topics"}, {q.MaxSchedules, "schedules"}, {q.MaxStreams, "worker streams"},
		{q.MaxInFlight, "in flight"},
	} {
		if f.n != 0 {
			all = append(all, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return strings.Join(all, ", ")
}

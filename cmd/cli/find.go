package cli

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/cmd/cli/operation"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// moment is a time on the command line that may lie ahead: RFC 3339, or how long from now.
type moment struct {
	at   time.Time
	from time.Duration
	set  bool
}

func (m *moment) Type() string { return "time" }

func (m *moment) String() string {
	switch {
	case !m.set:
		return ""
	case m.at.IsZero():
		return m.from.String()
	}
	return m.at.Format(time.RFC3339Nano)
}

func (m *moment) Set(text string) error {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*m = moment{at: at, set: true}
		return nil
	}
	from, err := node.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("want RFC 3339 such as 2030-01-31T15:04:05Z, or how long from now such as 90m or -90m")
	}
	*m = moment{from: from, set: true}
	return nil
}

// time returns the zero time when the flag was not given.
func (m *moment) time(now time.Time) time.Time {
	if m.set && m.at.IsZero() {
		return now.Add(m.from)
	}
	return m.at
}

// filterFlags say which tasks of a topic are meant.
type filterFlags struct {
	topic                       string
	states                      []string
	dueFrom, dueBefore          moment
	createdAfter, createdBefore session.Instant
	idPrefix                    string
	attributes, prefixes        map[string]string
}

func (f *filterFlags) flags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.states, "state", nil, "only those that are scheduled, ready, running, retrying, done, dead or expired (default all that live)")
	fs.Var(&f.dueFrom, "due-from", "only those due from then on: RFC 3339, or 1h for an hour from now")
	fs.Var(&f.dueBefore, "due-before", "only those due before: RFC 3339, or 1h for an hour from now")
	fs.Var(&f.createdAfter, "created-after", "only those enqueued since: RFC 3339, or 1h for an hour ago")
	fs.Var(&f.createdBefore, "created-before", "only those enqueued before: RFC 3339, or 1h for an hour ago")
	fs.StringVar(&f.idPrefix, "id-prefix", "", "only those whose id begins like this")
	fs.StringToStringVar(&f.attributes, "attr", nil, "only those with this attribute: --attr tenant=acme")
	fs.StringToStringVar(&f.prefixes, "attr-prefix", nil, "only those with an attribute that begins like this: --attr-prefix path=/mail/")
}

// filter is the zero filter when nothing narrows down.
func (f *filterFlags) filter(now time.Time) (out client.Filter, err error) {
	out = client.Filter{
		DueFrom: f.dueFrom.time(now), DueBefore: f.dueBefore.time(now),
		CreatedFrom: f.createdAfter.Time(now), CreatedBefore: f.createdBefore.Time(now),
		IDPrefix: f.idPrefix, Attributes: f.attributes, AttributePrefixes: f.prefixes,
	}
	for _, name := range f.states {
		state, err := session.OneOf("state", name, listable)
		if err != nil {
			return out, err
		}
		out.States = append(out.States, state)
	}
	return out, nil
}

func isZero(f client.Filter) bool { return reflect.DeepEqual(f, client.Filter{}) }

// bulkFlags are those of commands that change one task by its id, or many by a filter.
type bulkFlags struct {
	filterFlags
	dryRun bool
	most   int64
	yes    bool
	later  operation.Background
}

func (f *bulkFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.topic, "topic", "", "topic of the task (default: look in every topic; required with a filter)")
	f.filterFlags.flags(fs)
	fs.BoolVar(&f.dryRun, "dry-run", false, "with a filter: count what matches, and change nothing")
	fs.Int64Var(&f.most, "max", 0, "with a filter: no more than these tasks (default 1,000,000)")
	fs.BoolVar(&f.yes, "yes", false, "with a filter: do not ask")
	f.later.Flags(fs)
}

// many reports whether it is about many tasks, and which.
func (f *bulkFlags) many(ids []string) (filter client.Filter, many bool, err error) {
	if filter, err = f.filter(time.Now()); err != nil {
		return filter, false, err
	}
	switch filtered := !isZero(filter); {
	case filtered && len(ids) > 0:
		return filter, false, session.Usagef("give an id, or a filter")
	case filtered && f.topic == "":
		return filter, false, session.Usagef("--topic is required with a filter")
	case !filtered && len(ids) == 0:
		return filter, false, session.Usagef("say which: an id, or a filter such as --id-prefix")
	case !filtered && (f.dryRun || f.most != 0):
		return filter, false, session.Usagef("--dry-run and --max go with a filter")
	default:
		return filter, filtered, f.later.Check(filtered)
	}
}

type bulkView struct {
	Topic   string `json:"topic"`
	Matched int64  `json:"matched"`
	Changed int64  `json:"changed"`
	Skipped int64  `json:"skipped"`
	Capped  bool   `json:"capped"`
	DryRun  bool   `json:"dry_run"`
}

// changeMany carries out a change of many tasks, after asking: do, or the same by an operation.
func (c taskCommands) changeMany(cmd *cobra.Command, f *bulkFlags, what string, change operations.Change, do func(context.Context, *client.Client, client.Bulk) (client.Progress, error)) error {
	if err := c.Confirm(f.yes || f.dryRun, what+" tasks of topic "+f.topic+" that match"); err != nil {
		return err
	}
	if f.later.On {
		change.DryRun, change.MaxTasks = f.dryRun, f.most
		return f.later.Start(c.Session, cmd, f.topic, change)
	}
	s, err := c.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := do(cmd.Context(), s, client.Bulk{DryRun: f.dryRun, MaxTasks: f.most})
	v := bulkView{f.topic, p.Matched, p.Changed, p.Skipped, p.Capped, f.dryRun}
	if err != nil && p.Changed == 0 {
		return err
	}
	if f.dryRun {
		return cmp.Or(err, c.Say(v, "%d tasks match", v.Matched))
	}
	return cmp.Or(err, c.Say(v, "%d of %d matching tasks changed, %d skipped", v.Changed, v.Matched, v.Skipped))
}

type countsView struct {
	Topic     string `json:"topic"`
	Scheduled int64  `json:"scheduled"`
	Ready     int64  `json:"ready"`
	Retrying  int64  `json:"retrying"`
	Running   int64  `json:"running"`
	Done      int64  `json:"done"`
	Dead      int64  `json:"dead"`
}

func (c taskCommands) count() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use:     "count --topic TOPIC",
		Short:   "Count the tasks of a topic by state",
		Example: "  ddq task count --topic mail --attr tenant=acme --due-before 1h",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := f.filter(time.Now())
			if err != nil {
				return err
			}
			if f.topic == "" {
				return session.Usagef("--topic is required")
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				n, err := s.CountTasks(ctx, f.topic, filter)
				if err != nil {
					return err
				}
				v := countsView{f.topic, n.Scheduled, n.Ready, n.Retrying, n.Running, n.Done, n.Dead}
				return c.Record(v, table.Row{"scheduled", v.Scheduled}, table.Row{"ready", v.Ready}, table.Row{"retrying", v.Retrying},
					table.Row{"running", v.Running}, table.Row{"done", v.Done}, table.Row{"dead", v.Dead})
			})
		},
	}
	cmd.Flags().StringVar(&f.topic, "topic", "", "topic of the tasks (required)")
	f.flags(cmd.Flags())
	return cmd
}

type bucketView struct {
	From  string `json:"from"` // empty: all before
	Count int64  `json:"count"`
}

func (c taskCommands) due() *cobra.Command {
	var topic string
	var from moment
	var width time.Duration
	var buckets int
	cmd := &cobra.Command{
		Use:     "due --topic TOPIC",
		Short:   "Count the waiting tasks of a topic by when they are due",
		Example: "  ddq task due --topic mail --bucket 1h --buckets 24",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topic == "" {
				return session.Usagef("--topic is required")
			}
			start := from.time(time.Now())
			if !from.set && width > 0 { // tasks in minutes that a bound cuts are read one by one
				start = time.Now().Truncate(min(width, time.Minute))
			}
			out := c.Listing("from", "count")
			err := c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				h, err := s.DueHistogram(ctx, topic, start, width, buckets)
				if err != nil {
					return err
				}
				rows := []bucketView{{"", h.Before}}
				for i, n := range append(h.Counts, h.After) {
					rows = append(rows, bucketView{terminal.Clock(h.Start.Add(time.Duration(i) * h.Bucket)), n})
				}
				for _, v := range rows {
					if err := out.Add(v, cmp.Or(v.From, "before"), v.Count); err != nil {
						return err
					}
				}
				return nil
			})
			return out.End(err, "No tasks.")
		},
	}
	cmd.Flags().StringVar(&topic, "topic", "", "topic of the tasks (required)")
	cmd.Flags().Var(&from, "from", "where the first bucket begins: RFC 3339, or 1h for an hour from now (default: the minute of now)")
	node.DurationVar(cmd.Flags(), &width, "bucket", time.Minute, "how wide a bucket is")
	cmd.Flags().IntVar(&buckets, "buckets", 10, "how many; at most 1,000")
	return cmd
}

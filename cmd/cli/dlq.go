package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/operations"
	"github.com/ddq-io/ddq/cmd/cli/operation"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// deadLetterCommands are those of ddq dlq.
type deadLetterCommands struct{ *cli }

func dlqCommand(parent *cli) *cobra.Command {
	c := deadLetterCommands{parent}
	return session.Group("dlq", "Look at dead letters, bring them back or delete them",
		c.list(), c.requeue(), c.delete())
}

// deadFlags say which dead letters are meant.
type deadFlags struct {
	topic    string
	reason   string
	contains string
	after    session.Instant
	before   session.Instant
}

func (d *deadFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&d.topic, "topic", "", "topic of the dead letters (required)")
	fs.StringVar(&d.reason, "reason", "", "only those dead because: "+session.Words(allDeadReasons))
	fs.StringVar(&d.contains, "error-contains", "", "only those whose last error contains this")
	fs.Var(&d.after, "after", "only those dead since: RFC 3339, or 1h for an hour ago")
	fs.Var(&d.before, "before", "only those dead before: RFC 3339, or 1h for an hour ago")
}

var allDeadReasons = []client.DeadReason{
	client.DeadReasonMaxRetries, client.DeadReasonPermanent, client.DeadReasonExpired,
	client.DeadReasonCorrupt, client.DeadReasonHoldExpired, client.DeadReasonRateLimited,
	client.DeadReasonCancelled, client.DeadReasonUndeliverable,
}

// deadReasons are the words of --reason.
// filter is the zero filter when nothing narrows down.
func (d *deadFlags) filter(now time.Time) (f client.DeadLetterFilter, err error) {
	if d.topic == "" {
		return f, session.Usagef("--topic is required")
	}
	f = client.DeadLetterFilter{ErrorContains: d.contains, After: d.after.Time(now), Before: d.before.Time(now)}
	if d.reason == "" {
		return f, nil
	}
	for _, r := range allDeadReasons {
		if r.String() == strings.ReplaceAll(d.reason, "-", "_") {
			f.Reason = r
			return f, nil
		}
	}
	return f, session.Usagef("--reason is one of %s, not %q", session.Words(allDeadReasons), d.reason)
}

func (c deadLetterCommands) list() *cobra.Command {
	var dead deadFlags
	var limit int
	cmd := &cobra.Command{
		Use:     "list --topic TOPIC",
		Short:   "List dead letters",
		Example: "  ddq dlq list --topic mail --reason max_retries --error-contains timeout",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := dead.filter(time.Now())
			if err != nil {
				return err
			}
			out := c.Listing("id", "reason", "finished", "retries", "last error")
			err = c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.ListDeadLetters(ctx, dead.topic, filter), limit, func(t client.Snapshot) error {
					return out.Add(t, t.ID, t.DeadReason.String(), terminal.Clock(t.FinishedAt), t.RetryCount, terminal.Shorten(t.LastError, 60))
				})
			})
			return out.End(err, "No dead letters match.")
		},
	}
	dead.flags(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 0, "most dead letters to list (default all)")
	return cmd
}

// dryRun is what was counted, where nothing was changed.
type dryRun struct {
	DryRun   bool  `json:"dry_run"`
	Matched  int64 `json:"matched"`
	Examined int64 `json:"examined"`
	Capped   bool  `json:"capped"`
}

type deadResult struct {
	Topic    string `json:"topic"`
	Requeued *int64 `json:"requeued,omitempty"`
	Deleted  *int64 `json:"deleted,omitempty"`
	Skipped  int64  `json:"skipped,omitempty"` // tasks of workflows
	*dryRun
	NotFound []string `json:"not_found"`
}

// dlqAction is what requeue and delete have in common: ids, a filter, or --all.
type dlqAction struct {
	deadFlags
	all   bool
	dry   bool
	later operation.Background
}

func (a *dlqAction) flags(fs *pflag.FlagSet) {
	a.deadFlags.flags(fs)
	fs.BoolVar(&a.all, "all", false, "every dead letter of the topic")
	fs.BoolVar(&a.dry, "dry-run", false, "with a filter or --all: count what matches, and change nothing")
	a.later.Flags(fs)
}

// target returns which dead letters are meant, in words too.
func (a *dlqAction) target(ids []string) (f client.DeadLetterFilter, what string, err error) {
	if f, err = a.filter(time.Now()); err != nil {
		return f, "", err
	}
	if err := a.later.Check(len(ids) == 0); err != nil {
		return f, "", err
	}
	filtered := f != client.DeadLetterFilter{}
	switch {
	case len(ids) > maxIDs:
		return f, "", session.Usagef("at most %d ids at a time", maxIDs)
	case len(ids) > 0 && (filtered || a.all), filtered && a.all:
		return f, "", session.Usagef("give ids, or a filter, or --all")
	case len(ids) > 0 && a.dry:
		return f, "", session.Usagef("--dry-run goes with a filter or --all, not with ids")
	case len(ids) > 0:
		return f, fmt.Sprintf("%d dead letters of topic %s", len(ids), a.topic), nil
	case filtered:
		return f, "the dead letters of topic " + a.topic + " that match", nil
	case a.all:
		return f, "every dead letter of topic " + a.topic, nil
	}
	return f, "", session.Usagef("say which: ids, a filter such as --reason, or --all")
}

func (c deadLetterCommands) requeue() *cobra.Command {
	var action dlqAction
	cmd := &cobra.Command{
		Use:     "requeue --topic TOPIC [ID...]",
		Short:   "Make dead letters due now, with fresh attempts",
		Example: "  ddq dlq requeue --topic mail --error-contains timeout --dry-run",
		RunE: func(cmd *cobra.Command, ids []string) error {
			filter, _, err := action.target(ids)
			if err != nil {
				return err
			}
			if action.later.On {
				return action.later.Start(c.Session, cmd, action.topic, operations.Change{RequeueDead: filter.Wire(), DryRun: action.dry})
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) (err error) {
				if action.dry {
					n, err := s.CountRequeue(ctx, action.topic, filter)
					return c.printCount(err, action.topic, n)
				}
				r := deadResult{Topic: action.topic, Requeued: new(int64)}
				if len(ids) > 0 {
					*r.Requeued, r.NotFound, err = s.RequeueDeadLetters(ctx, action.topic, ids)
				} else {
					*r.Requeued, r.Skipped, err = s.RequeueMatching(ctx, action.topic, filter)
				}
				return c.print(err, r, "%d dead letters requeued", *r.Requeued)
			})
		},
	}
	action.flags(cmd.Flags())
	return cmd
}

func (c deadLetterCommands) delete() *cobra.Command {
	var action dlqAction
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete --topic TOPIC [ID...]",
		Short:   "Delete dead letters",
		Example: "  ddq dlq delete --topic mail --before 720h --yes",
		RunE: func(cmd *cobra.Command, ids []string) error {
			filter, what, err := action.target(ids)
			if err != nil {
				return err
			}
			if err := c.Confirm(yes || action.dry, "delete "+what); err != nil {
				return err
			}
			if action.later.On {
				return action.later.Start(c.Session, cmd, action.topic, operations.Change{DeleteDead: filter.Wire(), DryRun: action.dry})
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) (err error) {
				if action.dry {
					n, err := s.CountDelete(ctx, action.topic, filter)
					return c.printCount(err, action.topic, n)
				}
				r := deadResult{Topic: action.topic, Deleted: new(int64)}
				if len(ids) > 0 {
					*r.Deleted, r.NotFound, err = s.DeleteDeadLetters(ctx, action.topic, ids)
				} else {
					*r.Deleted, err = s.DeleteMatching(ctx, action.topic, filter)
				}
				return c.print(err, r, "%d dead letters deleted", *r.Deleted)
			})
		},
	}
	action.flags(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// printCount passes on err, and otherwise says what a dry run counted.
func (c deadLetterCommands) printCount(err error, topic string, n client.DeadCount) error {
	if err != nil {
		return err
	}
	format := "%d dead letters match, of %d that were examined"
	if n.Capped {
		format += "; there are more"
	}
	if n.Skipped > 0 {
		format += fmt.Sprintf("; %d of workflows would be skipped", n.Skipped)
	}
	r := deadResult{Topic: topic, Skipped: n.Skipped, NotFound: []string{}, dryRun: &dryRun{true, n.Matched, n.Examined, n.Capped}}
	return c.Say(r, format, n.Matched, n.Examined)
}

// maxIDs is how many ids a server takes in one call.
const maxIDs = 1000

// print passes on err, and otherwise fails when an id was no dead letter,
// after saying what was done.
func (c deadLetterCommands) print(err error, r deadResult, format string, n int64) error {
	if err != nil {
		return err
	}
	missing := len(r.NotFound)
	if missing == 0 {
		r.NotFound = []string{}
	}
	if r.Skipped > 0 {
		format += fmt.Sprintf(", %d of workflows skipped", r.Skipped)
	}
	if err := c.Say(r, format, n); err != nil || missing == 0 {
		return err
	}
	return fmt.Errorf("no dead letters of topic %s: %s", r.Topic, strings.Join(r.NotFound, ", "))
}

package security

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/audits"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// auditCommands are those of ddq audit.
type auditCommands struct{ *session.Session }

// AuditCommand is ddq audit.
func AuditCommand(parent *session.Session) *cobra.Command {
	c := auditCommands{parent}
	return session.Group("audit", "What servers wrote down of their administrators", c.list(), c.verify())
}

// auditFlags are a filter of records.
type auditFlags struct {
	audits.Filter
	outcome       string
	after, before session.Instant
}

func (f *auditFlags) flags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Caller, "caller", "", "only what this caller did: kind and name such as token:mailer, the name alone, or the id of a token")
	fs.StringVar(&f.Method, "method", "", "only calls of this method, such as DeleteTopic")
	fs.StringVar(&f.Resource, "resource", "", "only calls about this topic, name or id, or with this text as a value of the request")
	fs.StringVar(&f.outcome, "outcome", "", "only records that say this: "+session.Words(audits.Outcomes()))
	fs.Var(&f.after, "after", "only since then: RFC 3339, or 1h for an hour ago")
	fs.Var(&f.before, "before", "only before then")
}

func (f *auditFlags) filter(now time.Time) (audits.Filter, error) {
	f.From, f.Before = f.after.Time(now), f.before.Time(now)
	var err error
	if f.outcome != "" {
		f.Outcome, err = session.OneOf("outcome", f.outcome, audits.Outcomes())
	}
	return f.Filter, err
}

// recordView is a record as JSON output has it.
type recordView struct {
	Node      string    `json:"node"`
	Seq       int64     `json:"seq"`
	Time      time.Time `json:"time"`
	Outcome   string    `json:"outcome"`
	Code      string    `json:"code,omitempty"`
	Caller    string    `json:"caller,omitempty"`
	TokenID   string    `json:"token_id,omitempty"`
	Address   string    `json:"address,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Method    string    `json:"method,omitempty"`
	Topic     string    `json:"topic,omitempty"`
	Name      string    `json:"name,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	Call      int64     `json:"call,omitempty"`
	Count     int64     `json:"count,omitempty"`
	Request   string    `json:"request,omitempty"`
	Altered   bool      `json:"altered,omitempty"`
}

func recordViewOf(r *audits.Record) recordView {
	return recordView{
		r.Node, r.Seq, r.Time, r.Outcome.String(), r.Code, r.Caller, r.TokenID, r.Address, r.Namespace,
		r.Method, r.Topic, r.Name, r.RequestID, r.Call, r.Count, r.Request, r.Altered,
	}
}

// row is a line of a table.
func (v *recordView) row() []any {
	outcome := v.Outcome
	switch {
	case v.Altered:
		outcome = "ALTERED"
	case v.Code != "" && v.Code != "OK":
		outcome += " " + v.Code
	}
	if v.Count > 0 {
		outcome += fmt.Sprintf(" and %d more", v.Count)
	}
	method := v.Method[strings.LastIndexByte(v.Method, '/')+1:]
	about := strings.Trim(v.Topic+"/"+v.Name, "/")
	return []any{terminal.Clock(v.Time), v.Node, v.Caller, method, about, outcome}
}

func (c auditCommands) list() *cobra.Command {
	var flags auditFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what administrators did at all nodes, the newest first",
		Long: `List what administrators did at all nodes, and who was turned away, the newest first.
A call has a record when it is asked for, and one that says what came of it. ALTERED is
a line that is not as it was written; it is there whatever was asked for.`,
		Example: "  ddq audit list --caller ops --after 24h\n  ddq audit list --method DeleteTopic --resource mail",
		Args:    session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := flags.filter(time.Now())
			if err != nil {
				return err
			}
			var missing audits.Missing
			out := c.Listing("time", "node", "caller", "method", "about", "outcome")
			err = c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return terminal.Each(s.AuditRecords(ctx, filter, &missing), limit, func(r audits.Record) error {
					v := recordViewOf(&r)
					return out.Add(v, v.row()...)
				})
			})
			if err := out.End(err, "No records match."); err != nil {
				return err
			}
			for _, node := range missing.Silent {
				fmt.Fprintf(c.Err, "Node %s did not answer: its records are missing.\n", terminal.Line(node))
			}
			for _, node := range missing.WithoutLog {
				fmt.Fprintf(c.Err, "Node %s was started without an audit log.\n", terminal.Line(node))
			}
			return nil
		},
	}
	flags.flags(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 100, "most records to list; 0 is all")
	return cmd
}

func (c auditCommands) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Check that no record of an audit log was changed, moved or taken out",
		Long: `Check that no record of an audit log was changed, moved or taken out: that in a file, or
without one those of all nodes, which check them. Prints how many records there are, and
the hash of the last one. That the end of a file was cut off shows by that alone: a server
writes it into its own log when it starts and stops, and when it checks its log it knows.
Exits with 1, and names the line, when a log is not as it was written or cannot be read.`,
		Example: "  ddq audit verify\n  ddq audit verify /var/lib/ddq/audit.log",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.verifyNodes(cmd)
			}
			return c.verifyFile(args[0])
		},
	}
}

// auditView is what is printed of a log that is as it was written.
type auditView struct {
	Records int64  `json:"records"`
	Head    string `json:"head"`
}

func (c auditCommands) verifyFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return session.Usagef("%v", err)
	}
	defer f.Close()
	head, err := audit.Verify(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out := c.Listing("records", "head")
	if err := out.Add(auditView{head.Records, head.Hash}, fmt.Sprint(head.Records), head.Hash); err != nil {
		return err
	}
	return out.End(nil, "")
}

// chainView is what a node says of its log as JSON output has it.
type chainView struct {
	Node    string     `json:"node"`
	State   string     `json:"state"`
	Records int64      `json:"records,omitempty"`
	Head    string     `json:"head,omitempty"`
	Checked *time.Time `json:"checked,omitempty"`
	Error   string     `json:"error,omitempty"`
}

func chainViewOf(c *audits.Chain) chainView {
	v := chainView{Node: c.Node, State: c.State.String(), Records: c.Records, Head: c.Head, Error: c.Error}
	if !c.Checked.IsZero() {
		v.Checked = &c.Checked
	}
	return v
}

func (c auditCommands) verifyNodes(cmd *cobra.Command) error {
	s, err := c.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	chains, err := checked(cmd.Context(), s)
	if err != nil {
		return err
	}
	var bad []string
	out := c.Listing("node", "state", "records", "head", "error")
	for i := range chains {
		v := chainViewOf(&chains[i])
		if s := chains[i].State; s != audits.Whole && s != audits.None {
			bad = append(bad, fmt.Sprintf("that of %s is %s", v.Node, v.State))
		}
		if err := out.Add(v, v.Node, v.State, v.Records, v.Head, v.Error); err != nil {
			return err
		}
	}
	if err := out.End(nil, "There are no nodes."); err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("not every audit log is whole: %s", strings.Join(bad, ", "))
	}
	return nil
}

// lookEvery is how often nodes are asked that check their logs.
const lookEvery = time.Second

// checked asks the nodes about their logs until none checks.
func checked(ctx context.Context, s *client.Client) (chains []audits.Chain, err error) {
	err = session.Until(ctx, lookEvery, func() (bool, error) {
		chains, err = s.VerifyAudit(ctx)
		return !slices.ContainsFunc(chains, func(c audits.Chain) bool { return c.State == audits.Checking }), err
	})
	return chains, err
}

package security

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/cmd/cli/session"
)

// auditView is what is printed of a log that is as it was written.
type auditView struct {
	Records int64  `json:"records"`
	Head    string `json:"head"`
}

// AuditCommand is ddq audit.
func AuditCommand(c *session.Session) *cobra.Command {
	return session.Group("audit", "Check what a server wrote down of its administrators", auditVerify(c))
}

func auditVerify(c *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "verify <file>",
		Short: "Check that no record of an audit log was changed, moved or taken out",
		Long: `Check that no record of an audit log was changed, moved or taken out, and print how
many there are, and the hash of the last one. That the end was cut off shows by that
alone: a server writes it into its own log when it starts and stops. Exits with 1, and
names the line, when the log is not as it was written.`,
		Example: "  ddq audit verify /var/lib/ddq/audit.log",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return session.Usagef("%v", err)
			}
			defer f.Close()
			head, err := audit.Verify(f)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			out := c.Listing("records", "head")
			if err := out.Add(auditView{head.Records, head.Hash}, fmt.Sprint(head.Records), head.Hash); err != nil {
				return err
			}
			return out.End(nil, "")
		},
	}
}

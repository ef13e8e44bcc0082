package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

func versionCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  session.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := node.ReadBuild()
			if c.Output == terminal.FormatJSON {
				return c.WriteJSON(b)
			}
			_, err := fmt.Fprintf(c.Out, "ddq %s\ncommit %s\n%s %s\n", b.Version, b.Commit, b.Go, b.System)
			return err
		},
	}
}

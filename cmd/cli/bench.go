package cli

import (
	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/faults"
	"github.com/ddq-io/ddq/bench/faults/party"
	edits "github.com/ddq-io/ddq/bench/storm"
)

func benchCommand(reach bench.Reach) *cobra.Command {
	cmd := bench.NewCommand(reach)
	cmd.AddCommand(faults.NewCommand(), party.NewCommand(), bench.NewVerifyCommand(), edits.NewCommand())
	return cmd
}

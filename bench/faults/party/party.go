package party

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench/ledger"
)

// NewCommand is the hidden command that a producer or worker process runs.
func NewCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:    "party",
		Short:  "Be a producer, a worker or a watcher of a round of faults",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var c Config
			if err := json.Unmarshal(text, &c); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return beParty(cmd.Context(), &c, cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&path, "party", "", "file that says who to be")
	return cmd
}

// role plays a part until it is over, or its orders are, and writes down what it sees.
type role func(ctx context.Context, c *Config, log *ledger.Writer, orders io.Reader) error

// roles are all that a party may have.
func roles() map[string]role {
	return map[string]role{"producer": produce, "worker": work, "watcher": watch, "scheduler": keepSchedules, "conductor": conduct, "registrar": register, RoleSDK: playSDK, RoleOutbox: commitTasks}
}

func beParty(ctx context.Context, c *Config, orders io.Reader) (err error) {
	w, err := ledger.Create(c.Dir, c.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	be, ok := roles()[c.Role]
	if !ok {
		return fmt.Errorf("unknown role %q", c.Role)
	}
	return be(ctx, c, w, orders)
}

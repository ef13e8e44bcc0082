package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/shell"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
)

// outboxProgram has the driver of PostgreSQL, which ddq has not (ADR 045).
const outboxProgram = "ddq-outbox"

// outboxCommand hands its command line over to a program of its own.
func outboxCommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "outbox",
		Short: "Tasks that are enqueued in transactions of PostgreSQL: install, relay, status; runs ddq-outbox",
		Long: `Tasks that are enqueued in transactions of PostgreSQL. This runs ddq-outbox, a program
of its own, from beside ddq or from the PATH: 'ddq outbox --help' is its help.`,
		Example:            "  ddq outbox install --dsn postgres://user@host/base\n  ddq outbox relay --dsn postgres://user@host/base --addr ddq:9090\n  ddq outbox status",
		DisableFlagParsing: true,
		// Settings are for the program to read.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := findOutbox()
			if err != nil {
				return err
			}
			run := exec.CommandContext(cmd.Context(), path, args...)
			shell.InOwnGroup(run) // a signal reaches it only once, by the end of ctx
			run.Cancel = func() error {
				shell.EndGroup(run)
				return nil
			}
			run.Stdin, run.Stdout, run.Stderr, run.Env = c.In, terminal.Raw(c.Out), terminal.Raw(c.Err), c.Environ
			return endOf(run, run.Run())
		},
	}
}

// endOf is nil for a program that ended well, also when it was asked to end. A command line that
// it does not understand is one of ddq, too.
func endOf(run *exec.Cmd, err error) error {
	switch {
	case run.ProcessState == nil:
		return err // it did not begin
	case run.ProcessState.Success():
		return nil
	case run.ProcessState.Exited():
		return session.Ended{Code: run.ProcessState.ExitCode()}
	}
	return session.ErrReported // a signal ended it
}

// findOutbox looks beside ddq, and then on the PATH.
func findOutbox() (string, error) {
	self, err := os.Executable()
	if err == nil {
		if found, err := exec.LookPath(filepath.Join(filepath.Dir(self), outboxProgram)); err == nil {
			return found, nil
		}
	}
	found, err := exec.LookPath(outboxProgram)
	if err != nil {
		return "", errors.New("ddq-outbox is neither beside ddq nor on the PATH: `make outbox` builds it, beside what `make build` does")
	}
	return found, nil
}

package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/cmd/node"
)

// UsageError is a mistake on the command line, in the environment or in the
// configuration file. The command exits 2.
type UsageError struct{ error }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return UsageError{fmt.Errorf(format, args...)}
}

// IsUsage reports whether an error is one of usage, or of a setting of the server.
func IsUsage(err error) bool {
	var usage UsageError
	var setting node.ConfigError
	return errors.As(err, &usage) || errors.As(err, &setting)
}

// ErrReported ends a command that has already said what went wrong.
var ErrReported = errors.New("reported")

// Ended ends a command as a program ended that it has run. It is ErrReported.
type Ended struct{ Code int }

// Error implements error.
func (e Ended) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// Is says that the program has already said what went wrong.
func (e Ended) Is(target error) bool { return target == ErrReported }

// NotNegative refuses a duration below zero.
func NotNegative(flag string, v time.Duration) error {
	if v < 0 {
		return Usagef("--%s must not be negative, not %v", flag, v)
	}
	return nil
}

// NoArgs refuses arguments of a command that has only flags, and says which flag is meant.
func NoArgs(cmd *cobra.Command, args []string) error {
	topic := cmd.Flags().Lookup("topic")
	switch {
	case len(args) == 0:
		return nil
	case topic != nil && !topic.Changed:
		return Usagef("takes no argument: name the topic with --topic %s", args[0])
	}
	return Usagef("takes no argument, not %q", args[0])
}

// Group returns a command that only has sub-commands.
func Group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Usagef("one of its commands is required")
		},
	}
	cmd.AddCommand(subs...)
	return cmd
}

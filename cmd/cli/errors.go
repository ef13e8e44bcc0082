package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/node"
)

// usageError is a mistake on the command line, in the environment or in the
// configuration file. The command exits 2.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func isUsage(err error) bool {
	var usage usageError
	var setting node.ConfigError
	return errors.As(err, &usage) || errors.As(err, &setting)
}

// errReported ends a command that has already said what went wrong.
var errReported = errors.New("reported")

// explain writes an error as one line for people: what was wrong, and what to
// do about it where that is known. addr is the server that was called.
func explain(err error, addr string) string {
	if hint := explainStart(err); hint != "" {
		return hint
	}
	var answer *client.Error
	switch {
	case errors.As(err, &answer):
		return explainAnswer(answer, addr)
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return oneLine(err)
}

// explainStart says what to do when a server cannot start.
func explainStart(err error) string {
	var in *net.OpError
	switch {
	case node.InUse(err):
		return oneLine(err) + "; stop the other process or choose another directory with --data"
	case errors.Is(err, syscall.EADDRINUSE) && errors.As(err, &in):
		return fmt.Sprintf("%s is taken by another process; choose another address", in.Addr)
	}
	return ""
}

// explainAnswer says what to do about what a server answered, or did not.
func explainAnswer(e *client.Error, addr string) string {
	text := answerText(e)
	switch e.Code {
	case codes.Unavailable:
		if nobodyThere(e.Message) {
			return fmt.Sprintf("no ddq server at %s; start one with: ddq server", addr)
		}
		return text + "; try again in a moment"
	case codes.DeadlineExceeded:
		return fmt.Sprintf("no answer from %s within --timeout; ddq doctor may know why", addr)
	case codes.Unimplemented:
		return fmt.Sprintf("the server at %s does not know this call: is it a ddq server of this version?", addr)
	case codes.Unknown:
		return text + "; it may have happened, and repeating it with the same id is safe"
	case codes.Canceled:
		return "interrupted"
	}
	return text
}

// answerText is a server's answer on one line, with the field that broke a rule:
// "field: message (REASON)".
func answerText(e *client.Error) string {
	text := strings.Join(strings.Fields(e.Message), " ")
	if e.Field != "" && e.Code == codes.InvalidArgument && !strings.HasPrefix(text, e.Field) {
		text = e.Field + ": " + text
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// nobodyThere reports whether nobody listens, going by the text that grpc leaves
// of the dial error.
func nobodyThere(message string) bool {
	for _, part := range []string{"connection refused", "no such host", "no route to host", "network is unreachable", "no such file or directory"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// oneLine is the text of err without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func notNegative(flag string, v time.Duration) error {
	if v < 0 {
		return usagef("--%s must not be negative, not %v", flag, v)
	}
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/operation"
	"github.com/ddq-io/ddq/cmd/cli/schedules"
	"github.com/ddq-io/ddq/cmd/cli/security"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/cli/topics"
	"github.com/ddq-io/ddq/cmd/cli/workflows"
)

// Run carries out one command line and returns its exit code. Ending ctx stops
// the command cleanly.
func Run(ctx context.Context, s Streams, args []string) int {
	c := newCLI(s)
	root := rootCommand(c)
	begun := false
	onRun(root, func() { begun = true })
	root.SetArgs(args)

	cmd, err := root.ExecuteContextC(ctx)
	var ended session.Ended
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ended):
		return ended.Code
	case session.IsUsage(err) || !begun:
		c.sayFailed(cmd, err, err.Error(), fmt.Sprintf("\nTry '%s --help'.", cmd.CommandPath()))
		return exitUsage
	case !errors.Is(err, session.ErrReported):
		c.sayFailed(cmd, err, explain(err, c.Addr, cmd.Flags()), "")
	}
	return exitFailed
}

// failureView is what a command that failed prints on stderr with -o json.
type failureView struct {
	Error   string `json:"error"`
	Command string `json:"command"`
	Code    string `json:"code,omitempty"`   // of a server's answer, such as NOT_FOUND
	Reason  string `json:"reason,omitempty"` // the same, such as NO_TASK

	RequestID string `json:"request_id,omitempty"` // the same, by which the server's log has the call
}

// sayFailed says on stderr why a command failed; hint is for people.
func (c *cli) sayFailed(cmd *cobra.Command, err error, text, hint string) {
	if c.Output != terminal.FormatJSON {
		fmt.Fprintf(c.Err, "%s: %s%s\n", cmd.CommandPath(), text, hint)
		return
	}
	v := failureView{Error: text, Command: cmd.CommandPath()}
	if answer := (*client.Error)(nil); errors.As(err, &answer) {
		v.Code, v.Reason, v.RequestID = codeName(answer.Code), answer.Reason, answer.RequestID
	}
	_ = terminal.WriteJSON(c.Err, v) // there is nobody else to tell
}

// rootCommand builds the command tree.
func rootCommand(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "ddq",
		Short:         "A distributed delay queue: hand it a task and a time, a worker has it at that millisecond",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return session.Usagef("a command is required") },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.resolve(cmd.Flags()); err != nil {
				return err
			}
			return c.CheckCommon()
		},
	}
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	c.commonFlags(root.PersistentFlags())
	root.AddCommand(
		serverCommand(c), demoCommand(c),
		enqueueCommand(c), workCommand(c), watchCommand(c), overviewCommand(c),
		taskCommand(c), schedules.ScheduleCommand(c.Session), schedules.CalendarCommand(c.Session), schedules.AudienceCommand(c.Session), schedules.ForecastCommand(c.Session), workflows.Command(c.Session), outboxCommand(c), topics.Command(c.Session), dlqCommand(c), operation.Command(c.Session), clusterCommand(c),
		benchCommand(c.Reach), doctorCommand(c), healthCommand(c), security.CertsCommand(c.Session), security.AuditCommand(c.Session), security.TokenCommand(c.Session), security.BindingCommand(c.Session), security.NamespaceCommand(c.Session), security.KeyringCommand(c.Session), security.EncryptionCommand(c.Session), security.WhoAmICommand(c.Session), versionCommand(c),
	)
	return root
}

// onRun calls f when the command line was understood and its command begins.
func onRun(cmd *cobra.Command, f func()) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			f()
			return inner(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		onRun(sub, f)
	}
}

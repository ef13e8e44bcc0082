package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes, the same for every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// streams is what a run of ddq reads from and writes to. Results go to out,
// everything else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // as os.Environ gives it
}

// cli is one run of ddq: its streams, and the settings common to all commands.
type cli struct {
	streams
	addr    string
	output  string
	config  string
	timeout time.Duration
}

// run carries out one command line and returns its exit code. Ending ctx stops
// the command cleanly.
func run(ctx context.Context, s streams, args []string) int {
	c := &cli{streams: s}
	root := c.command()
	begun := false
	onRun(root, func() { begun = true })
	root.SetArgs(args)

	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage) || !begun:
		fmt.Fprintf(s.err, "%s: %v\nTry '%[1]s --help'.\n", cmd.CommandPath(), err)
		return exitUsage
	case !errors.Is(err, errReported):
		fmt.Fprintf(s.err, "%s: %s\n", cmd.CommandPath(), explain(err, c.addr))
	}
	return exitFailed
}

// command builds the command tree.
func (c *cli) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "ddq",
		Short:         "A distributed delay queue: hand it a task and a time, a worker has it at that millisecond",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return usagef("a command is required") },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.resolve(cmd.Flags()); err != nil {
				return err
			}
			return c.checkCommon()
		},
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	c.commonFlags(root.PersistentFlags())
	root.AddCommand(
		c.serverCommand(), c.demoCommand(),
		c.enqueueCommand(), c.workCommand(), c.watchCommand(),
		c.taskCommand(), c.topicCommand(), c.dlqCommand(), c.clusterCommand(),
		c.benchCommand(), c.doctorCommand(), c.versionCommand(),
	)
	return root
}

func (c *cli) commonFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.addr, "addr", "127.0.0.1:9090", "address of the server, or of several nodes: a:9090,b:9090")
	fs.StringVarP(&c.output, "output", "o", formatTable, "form of results on stdout: table or json")
	fs.StringVar(&c.config, "config", "", "YAML file with settings")
	fs.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long one call to the server may take")
	markSettings(fs)
}

func (c *cli) checkCommon() error {
	if c.output != formatTable && c.output != formatJSON {
		return usagef("--output is table or json, not %q", c.output)
	}
	if c.timeout <= 0 {
		return usagef("--timeout must be above 0, not %v", c.timeout)
	}
	return nil
}

// group returns a command that only has sub-commands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("one of its commands is required")
		},
	}
	cmd.AddCommand(subs...)
	return cmd
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

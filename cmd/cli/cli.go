package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/cmd/node"
)

// Exit codes, the same for every command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Streams is what a run of ddq reads from and writes to. Results go to Out,
// everything else to Err.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string // as os.Environ gives it
	Abort    *Abort   // what ends when the process is to end at once; may be nil
}

// cli is one run of ddq: its streams, the settings common to all commands, and the way to
// a server. Groups of commands embed it.
type cli struct {
	Streams
	addr    string
	output  string
	config  string
	timeout time.Duration
	tls     tlsFlags
	token   string // file of a token
}

// Forms of results.
const (
	formatTable = "table"
	formatJSON  = "json"
)

func (c *cli) commonFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.addr, "addr", "127.0.0.1:9090", "address of the server, or of several nodes: a:9090,b:9090")
	fs.StringVarP(&c.output, "output", "o", formatTable, "form of results on stdout: table, or json with one object a line; errors on stderr are in json, too")
	fs.StringVar(&c.config, "config", "", "YAML file with settings")
	node.DurationVar(fs, &c.timeout, "timeout", 10*time.Second, "how long one call to the server may take; how long task wait waits is --for")
	c.tls.flags(fs)
	fs.StringVar(&c.token, "token-file", "", "file of the token that says who calls; DDQ_TOKEN is the token itself")
	node.MarkSettings(fs)
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

package cli

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/cli/shell"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
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
	Environ  []string     // as os.Environ gives it
	Abort    *shell.Abort // what ends when the process is to end at once; may be nil
}

// cli is one run of ddq. Groups of commands embed it.
type cli struct {
	*session.Session
	config string            // file of settings
	origin map[string]string // setting -> the variable, or file and key, that has its value; see resolve
	abort  *shell.Abort      // may be nil
}

func newCLI(s Streams) *cli {
	run := &session.Session{Environ: s.Environ}
	run.In, run.Out, run.Err = s.In, terminal.Shown(s.Out), terminal.Shown(s.Err)
	return &cli{Session: run, abort: s.Abort}
}

func (c *cli) commonFlags(fs *pflag.FlagSet) {
	c.Session.Flags(fs)
	fs.StringVar(&c.config, "config", "", "YAML file with settings")
	node.MarkSettings(fs)
}

package session

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/token"
	"github.com/ddq-io/ddq/cmd/cli/terminal"
	"github.com/ddq-io/ddq/cmd/node"
)

// noRepeats is for people, who would rather hear at once that no server is there.
const noRepeats = -1

// Session is what all commands share in one run of ddq: where results go, the
// settings that they have in common, and the way to a server.
type Session struct {
	terminal.Terminal
	Environ []string // as os.Environ gives it
	Addr    string
	Timeout time.Duration // of one call
	TLS     TLS
	token   string // file of a token
	space   string // namespace
	keyring string // file of keys for payloads
}

// Flags adds the flags that all commands have.
func (c *Session) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Addr, "addr", "127.0.0.1:9090", "address of the server, or of several nodes: a:9090,b:9090")
	fs.StringVarP(&c.Output, "output", "o", terminal.FormatTable, "form of results on stdout: table, or json with one object a line; errors on stderr are in json, too")
	node.DurationVar(fs, &c.Timeout, "timeout", 10*time.Second, "how long one call to the server may take; how long task wait waits is --for")
	c.TLS.flags(fs)
	fs.StringVar(&c.space, "namespace", "", "namespace of the topics and audiences that are meant (default that of the token)")
	fs.StringVar(&c.token, "token-file", "", "file of the token that says who calls, read again when it changes; DDQ_TOKEN is the token itself")
}

// CheckCommon refuses settings that no command can work with.
func (c *Session) CheckCommon() error {
	if c.Output != terminal.FormatTable && c.Output != terminal.FormatJSON {
		return Usagef("--output is table or json, not %q", c.Output)
	}
	if c.Timeout <= 0 {
		return Usagef("--timeout must be above 0, not %v", c.Timeout)
	}
	return nil
}

// whoCalls adds to the configuration of a client what says who calls, if there is something.
func (c *Session) whoCalls(cfg *client.Config) error {
	if c.token == "" {
		cfg.Token = c.LookupEnv(TokenVariable)
		return nil
	}
	source, err := token.OpenFile(c.token)
	if err != nil {
		return Usagef("--token-file: %v", err)
	}
	cfg.Tokens = source
	return nil
}

// Reach adds to the configuration of a client how a server is reached: TLS, who calls, the namespace.
func (c *Session) Reach(cfg *client.Config) (err error) {
	cfg.Namespace = c.space
	if cfg.TLS, err = c.TLS.config(); err != nil {
		return err
	}
	return c.whoCalls(cfg)
}

// Connect does not wait for the server: the first call finds out.
func (c *Session) Connect() (*client.Client, error) {
	codec, err := c.Codec()
	if err != nil {
		return nil, err
	}
	cfg := client.Config{Timeout: c.Timeout, MaxElapsed: noRepeats, Codec: codec}
	if err := c.Reach(&cfg); err != nil {
		return nil, err
	}
	s, err := client.Dial(c.Addr, cfg)
	if err != nil {
		return nil, Usagef("--addr %q: %v", c.Addr, err)
	}
	return s, nil
}

// Call runs f with a client for its length.
func (c *Session) Call(cmd *cobra.Command, f func(context.Context, *client.Client) error) error {
	s, err := c.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	return f(cmd.Context(), s)
}

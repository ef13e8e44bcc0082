package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
)

// noRepeats is for people, who would rather hear at once that no server is there.
const noRepeats = -1

// readToken is the token that says who calls; empty when there is none.
func (c *cli) readToken() (string, error) {
	if c.token == "" {
		return c.lookupEnv(tokenVariable), nil
	}
	text, err := os.ReadFile(c.token)
	if err != nil {
		return "", usagef("--token-file: %v", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// connect does not wait for the server: the first call finds out.
func (c *cli) connect() (*client.Client, error) {
	secure, err := c.tls.config()
	if err != nil {
		return nil, err
	}
	token, err := c.readToken()
	if err != nil {
		return nil, err
	}
	s, err := client.Dial(c.addr, client.Config{TLS: secure, Token: token, Timeout: c.timeout, MaxElapsed: noRepeats})
	if err != nil {
		return nil, usagef("--addr %q: %v", c.addr, err)
	}
	return s, nil
}

// call runs f with a client for its length.
func (c *cli) call(cmd *cobra.Command, f func(context.Context, *client.Client) error) error {
	s, err := c.connect()
	if err != nil {
		return err
	}
	defer s.Close()
	return f(cmd.Context(), s)
}

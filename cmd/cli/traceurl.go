package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// traceURL is where traces are looked at, with a mark in the place of the id; empty: nobody said.
type traceURL string

func (u *traceURL) flags(fs *pflag.FlagSet) {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar((*string)(u), "trace-url", "", node.TraceURLHelp)
	node.MarkSettings(own)
	fs.AddFlagSet(own)
}

func (u traceURL) check() error {
	if u != "" && !strings.Contains(string(u), node.TraceIDMark) {
		return session.Usagef("--trace-url has no %s", node.TraceIDMark)
	}
	return nil
}

// of is the address of a trace; empty for none.
func (u traceURL) of(id string) string {
	if u == "" || id == "" {
		return ""
	}
	return strings.ReplaceAll(string(u), node.TraceIDMark, id)
}

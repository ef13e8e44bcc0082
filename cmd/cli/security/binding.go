package security

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/cmd/cli/session"
)

// bindingCommands are those of ddq binding.
type bindingCommands struct{ *session.Session }

// BindingCommand is ddq binding.
func BindingCommand(parent *session.Session) *cobra.Command {
	c := bindingCommands{parent}
	return session.Group("binding", "What callers may do that are known by a certificate or a token of an issuer", c.put(), c.list(), c.delete())
}

func (c bindingCommands) put() *cobra.Command {
	var b access.Binding
	var claim access.Claim
	var grants []string
	var value string
	cmd := &cobra.Command{
		Use:   "put <name>",
		Short: "Give grants to callers with a certificate, or a token of an issuer",
		Long: `Give grants to callers that have a client certificate with a name, or a token of an
issuer with a claim. The binding of that name is replaced. Grants are as those of
ddq token create. Callers have the grants of all bindings that are for them.`,
		Example: "  ddq binding put mailers --certificate spiffe://prod/mail/ --grant 'worker,producer:mail*'\n" +
			"  ddq binding put ops --issuer https://login.example.com --claim groups=ops --grant operator",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.Name = args[0]
			for _, text := range grants {
				b.Grants = append(b.Grants, parseGrant(text))
			}
			if claim.Issuer != "" || value != "" {
				var is bool
				if claim.Name, claim.Value, is = strings.Cut(value, "="); !is || claim.Issuer == "" {
					return session.Usagef("--issuer and --claim NAME=VALUE go together")
				}
				b.Claim = &claim
			}
			if (b.Claim == nil) == (b.Certificate == "") {
				return session.Usagef("a binding is for --certificate, or for --issuer and --claim")
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				put, err := s.PutBinding(ctx, b)
				if err != nil {
					return err
				}
				return c.print([]access.Binding{put}, nil)
			})
		},
	}
	cmd.Flags().StringVar(&b.Certificate, "certificate", "", "a URI in certificates, the beginning of URIs up to a slash, or a DNS name")
	cmd.Flags().StringVar(&claim.Issuer, "issuer", "", "URL of the issuer of tokens")
	cmd.Flags().StringVar(&value, "claim", "", "a claim and what it is or has in its list, such as groups=ops")
	cmd.Flags().StringArrayVar(&grants, "grant", nil, "what they may do: verbs or roles, and topics, such as worker:mail*; may be given several times")
	_ = cmd.MarkFlagRequired("grant")
	return cmd
}

func (c bindingCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the bindings whose grants you have",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				return c.print(s.ListBindings(ctx))
			})
		},
	}
}

func (c bindingCommands) print(all []access.Binding, err error) error {
	out := c.Listing("name", "callers", "grants", "made by")
	for _, b := range all {
		callers := "certificate " + b.Certificate
		if b.Claim != nil {
			callers = b.Claim.Issuer + " " + b.Claim.Name + "=" + b.Claim.Value
		}
		if err := out.Add(b, b.Name, callers, grantsText(b.Grants), b.CreatedBy); err != nil {
			return err
		}
	}
	return out.End(err, "no bindings")
}

func (c bindingCommands) delete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete <name>",
		Short: "End a binding, and the streams of those that may do less without it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error { return s.DeleteBinding(ctx, args[0]) })
		},
	}
}

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// secretView is a token with its secret, which is printed once.
type secretView struct {
	client.Token
	Secret string `json:"secret"`
}

func tokenCommand(c *cli) *cobra.Command {
	return session.Group("token", "Tokens, by which callers say who they are", tokenCreate(c), tokenList(c), tokenRotate(c), tokenRevoke(c))
}

func tokenCreate(c *cli) *cobra.Command {
	var grants []string
	var n client.NewToken
	cmd := &cobra.Command{
		Use:   "create <name>",
		Short: "Make a token, and print its secret, which cannot be shown again",
		Long: `Make a token, and print its secret, which cannot be shown again. A grant is verbs
or roles, and topics: a name, the beginning of names and a star, or all.

Verbs: enqueue, work, read, payload, operate, admin, audit. Roles: producer, worker,
viewer (read), operator (read and operate), admin (all but audit), auditor, root.`,
		Example: "  ddq token create mailer --grant 'worker,producer:mail*'\n  ddq token create dashboard --grant viewer --for 30d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n.Name = args[0]
			for _, text := range grants {
				n.Grants = append(n.Grants, parseGrant(text))
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				t, secret, err := s.CreateToken(ctx, n)
				if err != nil {
					return err
				}
				return c.printSecret(t, secret)
			})
		},
	}
	cmd.Flags().StringArrayVar(&grants, "grant", nil, "what it may do: verbs or roles, and topics, such as worker:mail*; may be given several times")
	node.DurationVar(cmd.Flags(), &n.Life, "for", 0, "how long it is valid (default 90d)")
	cmd.Flags().BoolVar(&n.Never, "never-expires", false, "there is no end to it")
	_ = cmd.MarkFlagRequired("grant")
	return cmd
}

// parseGrant splits verbs and topics; the server knows which there are. Of roles, root and
// auditor are for every namespace.
func parseGrant(text string) client.Grant {
	names, topics, given := strings.Cut(text, ":")
	if !given {
		topics = "*"
	}
	g := client.Grant{Verbs: strings.Split(names, ","), Namespace: "default", Topics: topics}
	if slices.Contains(g.Verbs, "root") || slices.Contains(g.Verbs, "auditor") {
		g.Namespace = "*"
	}
	return g
}

func (c *cli) printSecret(t client.Token, secret string) error {
	out := c.Listing("id", "name", "expires", "secret")
	if err := out.Add(secretView{t, secret}, t.ID, t.Name, endText(t.Expires), secret); err != nil {
		return err
	}
	return out.End(nil, "")
}

func tokenList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens that you could have made",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				all, err := s.ListTokens(ctx)
				out := c.Listing("id", "name", "grants", "expires", "made by")
				for _, t := range all {
					if err := out.Add(t, t.ID, t.Name, grantsText(t.Grants), endText(t.Expires), t.CreatedBy); err != nil {
						return err
					}
				}
				return out.End(err, "no tokens")
			})
		},
	}
}

func tokenRotate(c *cli) *cobra.Command {
	var overlap time.Duration
	cmd := &cobra.Command{
		Use:     "rotate <id>",
		Short:   "Make a token that takes the place of another one",
		Example: "  ddq token rotate 4rT0mZQkxw --overlap 24h",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				t, secret, err := s.RotateToken(ctx, args[0], overlap)
				if err != nil {
					return err
				}
				return c.printSecret(t, secret)
			})
		},
	}
	node.DurationVar(cmd.Flags(), &overlap, "overlap", 24*time.Hour, "how long the former token is valid still")
	return cmd
}

func tokenRevoke(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke <id>",
		Short: "End a token, and the streams that it opened",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error { return s.RevokeToken(ctx, args[0]) })
		},
	}
}

func whoAmICommand(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show who the server takes you for, and what you may do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				p, err := s.WhoAmI(ctx)
				if err != nil {
					return err
				}
				out := c.Listing("kind", "name", "grants", "expires")
				if err := out.Add(p, p.Kind, p.Name, grantsText(p.Grants), endText(p.Expires)); err != nil {
					return err
				}
				return out.End(nil, "")
			})
		},
	}
}

func grantsText(grants []client.Grant) string {
	all := make([]string, len(grants))
	for i, g := range grants {
		all[i] = strings.Join(g.Verbs, ",") + ":" + g.Topics
	}
	return strings.Join(all, " ")
}

func endText(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Local().Format(time.DateTime)
}

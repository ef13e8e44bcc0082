package security

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/access"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// secretView is a token with its secret, which is printed once.
type secretView struct {
	access.Token
	Secret string `json:"secret"`
}

// tokenCommands are those of ddq token.
type tokenCommands struct{ *session.Session }

// TokenCommand is ddq token.
func TokenCommand(parent *session.Session) *cobra.Command {
	c := tokenCommands{parent}
	return session.Group("token", "Tokens, by which callers say who they are", c.create(), c.root(), c.list(), c.rotate(), c.revoke())
}

func (c tokenCommands) create() *cobra.Command {
	var grants []string
	var n access.NewToken
	var file secretFile
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
			if kept, err := file.there(); kept || err != nil {
				return err
			}
			n.Name = args[0]
			for _, text := range grants {
				n.Grants = append(n.Grants, parseGrant(text))
			}
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				t, secret, err := s.CreateToken(ctx, n)
				if err != nil {
					return err
				}
				return c.handOver(t, secret, file)
			})
		},
	}
	cmd.Flags().StringVar(&file.name, "secret-file", "", "write the secret into this new file, which only its owner can read, instead of printing it")
	cmd.Flags().BoolVar(&file.keep, "keep", false, "do nothing when --secret-file is there, so that the command can be repeated")
	cmd.Flags().StringArrayVar(&grants, "grant", nil, "what it may do: verbs or roles, and topics, such as worker:mail*; may be given several times")
	node.DurationVar(cmd.Flags(), &n.Life, "for", 0, "how long it is valid (default 90d)")
	cmd.Flags().BoolVar(&n.Never, "never-expires", false, "there is no end to it")
	cmd.Flags().IntVar(&n.CallsPerSecond, "calls-per-second", 0, "how many calls it may make in a second, at each node, but for those that settle (default as many as you)")
	cmd.Flags().IntVar(&n.BytesPerSecond, "bytes-per-second", 0, "how many bytes of payloads it may send in a second, to each node, but for those in what settles (default as many as you)")
	_ = cmd.MarkFlagRequired("grant")
	return cmd
}

// secretFile is where the secret of a new token goes; without a name it is printed.
type secretFile struct {
	name string
	keep bool
}

// there reports whether the file is there, and is to stay.
func (f secretFile) there() (bool, error) {
	if f.name == "" {
		if f.keep {
			return false, session.Usagef("--keep needs --secret-file")
		}
		return false, nil
	}
	switch _, err := os.Stat(f.name); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && !f.keep:
		return false, session.Usagef("--secret-file: %s is there already", f.name)
	default:
		return err == nil, err
	}
}

// handOver writes the secret of a token that was made, or prints it.
func (c tokenCommands) handOver(t access.Token, secret string, f secretFile) error {
	if f.name == "" {
		return c.printSecret(t, secret)
	}
	if err := auth.NewSecret(secret).WriteNew(f.name); err != nil {
		return fmt.Errorf("token %s was made, and its secret is lost: %w; revoke it", t.ID, err)
	}
	out := c.Listing("id", "name", "expires", "secret")
	if err := out.Add(t, t.ID, t.Name, endText(t.Expires), "in "+f.name); err != nil {
		return err
	}
	return out.End(nil, "")
}

// rootView is what is printed of a root token that was made.
type rootView struct {
	File string `json:"file"`
}

func (c tokenCommands) root() *cobra.Command {
	return &cobra.Command{
		Use:   "root <file>",
		Short: "Make a token that may do everything, for --root-token of servers",
		Long: `Make a token that may do everything, for --root-token of servers that cannot make
the file themselves, such as those that get it as a secret. No server is asked.
Only the owner of the file can read it.`,
		Example: "  ddq token root deploy/k8s/root-token",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, secret, _ := auth.NewToken()
			if err := secret.WriteNew(args[0]); err != nil {
				return err
			}
			out := c.Listing("file")
			if err := out.Add(rootView{args[0]}, args[0]); err != nil {
				return err
			}
			return out.End(nil, "")
		},
	}
}

// parseGrant splits verbs and topics; the server knows which there are. Of roles, root and
// auditor are for every namespace, others for that of the call.
func parseGrant(text string) access.Grant {
	names, topics, given := strings.Cut(text, ":")
	if !given {
		topics = "*"
	}
	g := access.Grant{Verbs: strings.Split(names, ","), Topics: topics}
	if slices.Contains(g.Verbs, "root") || slices.Contains(g.Verbs, "auditor") {
		g.Namespace = "*"
	}
	return g
}

func (c tokenCommands) printSecret(t access.Token, secret string) error {
	out := c.Listing("id", "name", "expires", "secret")
	if err := out.Add(secretView{t, secret}, t.ID, t.Name, endText(t.Expires), secret); err != nil {
		return err
	}
	return out.End(nil, "")
}

func (c tokenCommands) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens that you could have made",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				all, err := s.ListTokens(ctx)
				out := c.Listing("id", "name", "grants", "expires", "made by")
				for _, t := range all {
					if err := out.Add(t, t.ID, t.Name, grantsText(t.Grants), endText(t.Expires), strings.TrimSpace(t.CreatedBy+" "+t.CreatedByID)); err != nil {
						return err
					}
				}
				return out.End(err, "no tokens")
			})
		},
	}
}

func (c tokenCommands) rotate() *cobra.Command {
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

func (c tokenCommands) revoke() *cobra.Command {
	withMade := false
	cmd := &cobra.Command{
		Use:     "revoke <id>",
		Short:   "End a token, and the streams that it opened",
		Example: "  ddq token revoke 4rT0mZQkxw --with-made",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Call(cmd, func(ctx context.Context, s *client.Client) error {
				if withMade {
					return s.RevokeTokenWithMade(ctx, args[0])
				}
				return s.RevokeToken(ctx, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&withMade, "with-made", false, "also those that it made, and those that they made, when it is gone, too; nodes may let it make more for two seconds, so repeat it then")
	return cmd
}

// WhoAmICommand is ddq whoami.
func WhoAmICommand(c *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "whoami",
		Short: "Show who the server takes you for, and what you may do",
		Args:  session.NoArgs,
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

func grantsText(grants []access.Grant) string {
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

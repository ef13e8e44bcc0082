package security

import (
	"crypto/tls"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/cmd/cli/session"
	"github.com/ddq-io/ddq/cmd/node"
)

// issuer makes certificates in a folder.
type issuer struct {
	*session.Session
	dir      string
	hosts    []string
	identity string
	life     time.Duration
	keep     bool
}

// certView is what is printed of a certificate that was made.
type certView struct {
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

const (
	authorityName = "ca"
	caLife        = 10 * 365 * 24 * time.Hour
	certLife      = 365 * 24 * time.Hour
)

// CertsCommand is ddq certs.
func CertsCommand(parent *session.Session) *cobra.Command {
	i := &issuer{Session: parent}
	cmd := session.Group("certs", "Make certificates for TLS, where there is no authority that does", i.caCommand(), i.nodeCommand(), i.clientCommand())
	cmd.PersistentFlags().StringVar(&i.dir, "dir", ".", "folder of the certificates; the authority is ca.crt and ca.key in it")
	cmd.PersistentFlags().BoolVar(&i.keep, "keep", false, "leave a certificate that is there as it is, so that the command can be repeated")
	return cmd
}

func (i *issuer) caCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ca",
		Short:   "Make an authority: ca.crt is for everybody, ca.key for nobody but this command",
		Example: "  ddq certs ca --dir certs",
		Args:    session.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return i.issue(authorityName, certs.Request{Name: "ddq authority", CA: true, For: i.life}, nil)
		},
	}
	i.lifeFlag(cmd, caLife)
	return cmd
}

func (i *issuer) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "node <name>",
		Short:   "Make the certificate of a server",
		Example: "  ddq certs node ddq-1 --dir certs --hosts ddq-1,10.0.0.1",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(i.hosts) == 0 {
				i.hosts = []string{args[0]}
			}
			return i.signed(args[0], certs.Request{Name: args[0], Hosts: i.hosts, For: i.life})
		},
	}
	cmd.Flags().StringVar(&i.identity, "identity", "", "URI in it by which other nodes with --node-identity know the node")
	cmd.Flags().StringSliceVar(&i.hosts, "hosts", nil, "names and addresses that clients and other nodes call it by (default its name)")
	i.lifeFlag(cmd, certLife)
	return cmd
}

func (i *issuer) clientCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "client <name>",
		Short:   "Make the certificate of a client",
		Example: "  ddq certs client mailer --dir certs --identity spiffe://prod/mail/mailer",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return i.signed(args[0], certs.Request{Name: args[0], For: i.life})
		},
	}
	cmd.Flags().StringVar(&i.identity, "identity", "", "URI in it by which servers with --auth token,mtls know the client")
	i.lifeFlag(cmd, certLife)
	return cmd
}

func (i *issuer) lifeFlag(cmd *cobra.Command, life time.Duration) {
	node.DurationVar(cmd.Flags(), &i.life, "for", life, "how long it is valid")
}

// signed issues under the authority in the folder, with the URI of --identity.
func (i *issuer) signed(name string, r certs.Request) error {
	if i.identity != "" {
		u, err := url.Parse(i.identity)
		if err != nil || u.Scheme == "" || u.Host == "" {
			return session.Usagef("--identity is a URI such as spiffe://prod/mail/mailer, not %q", i.identity)
		}
		r.URI = u
	}
	by, err := certs.Authority(filepath.Join(i.dir, authorityName+".crt"), filepath.Join(i.dir, authorityName+".key"))
	if err != nil {
		return session.Usagef("no authority in %s: %v; make one with: ddq certs ca --dir %s", i.dir, err, i.dir)
	}
	return i.issue(name, r, by)
}

func (i *issuer) issue(name string, r certs.Request, by *tls.Certificate) error {
	if strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || name == "" {
		return session.Usagef("%q is no name for files", name)
	}
	if r.For <= 0 {
		return session.Usagef("--for must be above 0, not %v", r.For)
	}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return err
	}
	v := certView{Cert: filepath.Join(i.dir, name+".crt"), Key: filepath.Join(i.dir, name+".key")}
	if !i.keep || !areThere(v.Cert, v.Key) {
		if err := certs.Issue(r, by, v.Cert, v.Key); err != nil {
			return err
		}
	}
	out := i.Listing("certificate", "key")
	if err := out.Add(v, v.Cert, v.Key); err != nil {
		return err
	}
	return out.End(nil, "")
}

func areThere(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})
}

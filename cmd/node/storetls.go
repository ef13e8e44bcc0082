package node

import (
	"crypto/tls"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/auth/certs"
)

// StoreTLS is whom connections to a Redis trust, and what they show. The URL says that there is TLS.
type StoreTLS struct {
	CA        string
	Cert, Key string

	certs *certs.Certs // set by check; nil without files
}

func (c *StoreTLS) flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.CA, "store-ca", "", "file of the authorities that signed the certificates of a Redis behind a rediss URL (default the system's)")
	fs.StringVar(&c.Cert, "store-cert", "", "file of the certificate that such a Redis asks for, in PEM (default none)")
	fs.StringVar(&c.Key, "store-key", "", "file of its key")
}

func (c *StoreTLS) check(store string) error {
	switch {
	case (c.Cert == "") != (c.Key == ""):
		return wrongf("--store-cert and --store-key go together")
	case c.CA == "" && c.Cert == "":
		return nil
	case !strings.HasPrefix(store, "rediss"):
		return wrongf("--store-ca, --store-cert and --store-key are for a --store that begins with rediss")
	}
	if c.Key != "" {
		if err := checkKeyFile(c.Key); err != nil {
			return wrongf("--store-key: %v", err)
		}
	}
	var err error
	if c.certs, err = certs.Open(certs.Files{Cert: c.Cert, Key: c.Key, CA: c.CA, GuardKey: checkKeyFile, Min: tls.VersionTLS12}); err != nil {
		return wrongf("TLS of the store: %v", err)
	}
	return nil
}

// client returns how to connect to a server of a name; nil is what the URL says by itself. Files are
// read again for each connection, of which there are few: those that cannot be used change nothing.
func (c *StoreTLS) client() func(server string) *tls.Config {
	if c.certs == nil {
		return nil
	}
	return func(server string) *tls.Config {
		_, _ = c.certs.Reload()
		return c.certs.Client(server)
	}
}

package session

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/spf13/pflag"
)

// TLS is how a command reaches a server over TLS.
type TLS struct {
	On            bool
	CA, Cert, Key string
	ServerName    string
}

func (t *TLS) flags(fs *pflag.FlagSet) {
	fs.BoolVar(&t.On, "tls", false, "talk to the server over TLS; the other --tls flags imply it")
	fs.StringVar(&t.CA, "tls-ca", "", "file of the authorities that signed the server's certificate, in PEM (default the system's)")
	fs.StringVar(&t.Cert, "tls-cert", "", "file of a certificate to show to the server")
	fs.StringVar(&t.Key, "tls-key", "", "file of its key")
	fs.StringVar(&t.ServerName, "tls-server-name", "", "name that the server's certificate is for (default that of --addr)")
}

// config is nil without TLS.
func (t *TLS) config() (*tls.Config, error) {
	if !t.On && t.CA == "" && t.Cert == "" && t.Key == "" && t.ServerName == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, Usagef("--tls-ca: %v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usagef("--tls-ca: %s has no certificate in PEM", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, Usagef("--tls-cert and --tls-key go together")
	}
	if t.Cert != "" {
		if _, err := tls.LoadX509KeyPair(t.Cert, t.Key); err != nil {
			return nil, Usagef("--tls-cert and --tls-key: %v", err)
		}
		// Read for each connection: a worker runs for longer than a certificate.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
			return &pair, err
		}
	}
	return config, nil
}

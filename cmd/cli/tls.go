package cli

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/spf13/pflag"
)

// tlsFlags are how a command reaches a server over TLS.
type tlsFlags struct {
	on            bool
	ca, cert, key string
	serverName    string
}

func (t *tlsFlags) flags(fs *pflag.FlagSet) {
	fs.BoolVar(&t.on, "tls", false, "talk to the server over TLS; the other --tls flags imply it")
	fs.StringVar(&t.ca, "tls-ca", "", "file of the authorities that signed the server's certificate, in PEM (default the system's)")
	fs.StringVar(&t.cert, "tls-cert", "", "file of a certificate to show to the server")
	fs.StringVar(&t.key, "tls-key", "", "file of its key")
	fs.StringVar(&t.serverName, "tls-server-name", "", "name that the server's certificate is for (default that of --addr)")
}

// config is nil without TLS.
func (t *tlsFlags) config() (*tls.Config, error) {
	if !t.on && t.ca == "" && t.cert == "" && t.key == "" && t.serverName == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.serverName}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, usagef("--tls-ca: %v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, usagef("--tls-ca: %s has no certificate in PEM", t.ca)
		}
	}
	if (t.cert == "") != (t.key == "") {
		return nil, usagef("--tls-cert and --tls-key go together")
	}
	if t.cert != "" {
		if _, err := tls.LoadX509KeyPair(t.cert, t.key); err != nil {
			return nil, usagef("--tls-cert and --tls-key: %v", err)
		}
		// Read for each connection: a worker runs for longer than a certificate.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.cert, t.key)
			return &pair, err
		}
	}
	return config, nil
}

package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/peer"
)

// TLSConfig is how connections are encrypted. Without a certificate they are not.
type TLSConfig struct {
	Cert, Key  string
	CA         string
	ClientCA   string
	ClientAuth string
	Min        string
	ServerName string

	certs *certs.Certs  // set by check; nil without a certificate
	every time.Duration // how often the files are looked at; 0 is renewal
}

func (c *TLSConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.Cert, "tls-cert", "", "file of the certificate of the gRPC and HTTP ports, in PEM (default none: no TLS)")
	fs.StringVar(&c.Key, "tls-key", "", "file of its key")
	fs.StringVar(&c.CA, "tls-ca", "", "file of the authorities that signed the certificates of other nodes (default the system's)")
	fs.StringVar(&c.ServerName, "tls-server-name", "", "name that the certificates of other nodes are for (default their address)")
	fs.StringVar(&c.ClientCA, "tls-client-ca", "", "file of the authorities that signed the certificates of clients")
	fs.StringVar(&c.ClientAuth, "tls-client-auth", "off", "certificates of clients: off, request or require")
	fs.StringVar(&c.Min, "tls-min", "1.2", "least version of TLS: 1.2 or 1.3")
}

// Certificates of clients, by --tls-client-auth.
var clientAuths = map[string]tls.ClientAuthType{
	"": tls.NoClientCert, "off": tls.NoClientCert, "request": tls.VerifyClientCertIfGiven, "require": tls.RequireAndVerifyClientCert,
}

var tlsVersions = map[string]uint16{"": tls.VersionTLS12, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func (c *TLSConfig) check() error {
	clients, known := clientAuths[c.ClientAuth]
	least, version := tlsVersions[c.Min]
	switch {
	case !known:
		return wrongf("--tls-client-auth is off, request or require, not %q", c.ClientAuth)
	case !version:
		return wrongf("--tls-min is 1.2 or 1.3, not %q", c.Min)
	case (c.Cert == "") != (c.Key == ""):
		return wrongf("--tls-cert and --tls-key go together")
	case c.Cert == "" && (c.ClientCA != "" || clients != tls.NoClientCert):
		return wrongf("TLS needs --tls-cert and --tls-key")
	case (c.ClientCA == "") != (clients == tls.NoClientCert):
		return wrongf("--tls-client-ca and --tls-client-auth request or require go together")
	case c.Cert == "":
		return nil
	}
	if err := checkKeyFile(c.Key); err != nil {
		return wrongf("--tls-key: %v", err)
	}
	var err error
	c.certs, err = certs.Open(certs.Files{Cert: c.Cert, Key: c.Key, CA: c.CA, ClientCA: c.ClientCA, GuardKey: checkKeyFile, ClientAuth: clients, Min: least})
	if err != nil {
		return wrongf("TLS: %v", err)
	}
	return nil
}

// on reports whether connections are encrypted.
func (c *TLSConfig) on() bool { return c.certs != nil }

// serverOptions are those of the gRPC port.
func (c *TLSConfig) serverOptions() []grpc.ServerOption {
	if !c.on() {
		return nil
	}
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(c.certs.Server("h2")))}
}

// dialOptions are those of connections to other nodes.
func (c *TLSConfig) dialOptions() []grpc.DialOption {
	if !c.on() {
		return nil
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(peer.TLS(func() *tls.Config { return c.certs.Client(c.ServerName) }))}
}

// renewal is how often the files are looked at, unless a test says otherwise.
const renewal = 5 * time.Second

// certFollower follows the files of the certificate while the node runs. It owns one
// goroutine, gone after stop.
type certFollower struct {
	certs    *certs.Certs
	every    time.Duration
	log      *slog.Logger
	failures prometheus.Counter
	cancel   context.CancelFunc
	loop     sync.WaitGroup
}

// newCertFollower returns nil when there is no certificate.
func newCertFollower(cfg *Config, log *slog.Logger, reg *prometheus.Registry) *certFollower {
	if !cfg.TLS.on() {
		return nil
	}
	f := &certFollower{certs: cfg.TLS.certs, every: cmp.Or(cfg.TLS.every, renewal), log: log, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "ddq_tls_reload_failures_total", Help: "Reads of the certificate's files that failed; the last good ones are in use.",
	})}
	reg.MustRegister(f.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ddq_tls_expiry_seconds", Help: "Time until the certificate in use expires.",
	}, func() float64 { return time.Until(f.certs.Expires()).Seconds() }))
	return f
}

func (f *certFollower) start() {
	if f == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.loop.Go(func() { f.certs.Follow(ctx, f.every, f.tell) })
}

func (f *certFollower) tell(err error) {
	if err != nil {
		f.failures.Inc()
		f.log.Warn("certificate cannot be read again; the former one stays", "err", err)
		return
	}
	f.log.Info("certificate was renewed", "expires", f.certs.Expires())
}

func (f *certFollower) stop() {
	if f != nil && f.cancel != nil {
		f.cancel()
		f.loop.Wait()
	}
}

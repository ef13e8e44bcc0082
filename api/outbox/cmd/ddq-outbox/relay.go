package main

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/client/token"
	"github.com/ddq-io/ddq/api/outbox"
)

// target is the server that tasks are handed on to. Its flags are those of ddq.
type target struct {
	addr, token        string
	namespace          string
	tls                bool
	ca, cert, key      string
	serverName         string
	window, poll, keep time.Duration
	http               string
}

func (t *target) flags(fs *pflag.FlagSet) {
	fs.StringVar(&t.addr, "addr", "127.0.0.1:9090", "address of the server, or of several nodes: a:9090,b:9090")
	fs.StringVar(&t.token, "token-file", "", "file of the token that says who calls, read again when it changes; DDQ_TOKEN is the token itself")
	fs.StringVar(&t.namespace, "namespace", "", "namespace of the topics that tasks go to (default that of the token)")
	fs.BoolVar(&t.tls, "tls", false, "talk to the server over TLS; the other --tls flags imply it")
	fs.StringVar(&t.ca, "tls-ca", "", "file of the authorities that signed the server's certificate, in PEM (default the system's)")
	fs.StringVar(&t.cert, "tls-cert", "", "file of a certificate to show to the server")
	fs.StringVar(&t.key, "tls-key", "", "file of its key")
	fs.StringVar(&t.serverName, "tls-server-name", "", "name that the server's certificate is for (default that of --addr)")
	fs.DurationVar(&t.window, "window", outbox.MinWindow, "how long the server knows a task that was enqueued, should it be asked again")
	fs.DurationVar(&t.poll, "poll", time.Second, "how often to look when nothing is heard of commits")
	fs.StringVar(&t.http, "http-addr", "", "address for /metrics and /healthz, such as 127.0.0.1:8081 (default none)")
	fs.DurationVar(&t.keep, "keep", outbox.DefaultKeep, "how long effects are remembered; below 0 for good")
}

func (p *program) relayCommand() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "relay",
		Short: "Hand tasks on to ddq until a signal ends it",
		Long: `Hand tasks on to ddq, in the order in which they were written, until a signal ends
it. Run as many as you like: one reads, the others stand by. The connection to the
database must not go through a pooler that shares it between transactions.`,
		Example: "  ddq-outbox relay --dsn postgres://user@host/base --addr ddq:9090",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.open(cmd.Context(), func(db outbox.Database) error { return p.relay(cmd, db, t) })
		},
	}
	t.flags(cmd.Flags())
	return cmd
}

func (p *program) relay(cmd *cobra.Command, db outbox.Database, t target) error {
	secure, err := t.config()
	if err != nil {
		return err
	}
	cfg := client.Config{TLS: secure, Namespace: t.namespace}
	if err := p.whoCalls(t, &cfg); err != nil {
		return err
	}
	c, err := client.Dial(t.addr, cfg)
	if err != nil {
		return usagef("%v", err)
	}
	defer c.Close()
	log := slog.New(slog.NewTextHandler(p.err, nil))
	relay := outbox.NewRelay(db, c, outbox.RelayConfig{Window: t.window, Poll: t.poll, Keep: t.keep, Log: log})
	if t.http != "" {
		stop, err := newMetrics(db, relay, log).serve(t.http)
		if err != nil {
			return err
		}
		defer stop()
	}
	log.Info("outbox relay started", "addr", t.addr)
	if err := relay.Run(cmd.Context()); err != nil {
		return err
	}
	n := relay.Counts()
	log.Info("outbox relay ended", "enqueued", n.Enqueued, "refused", n.Refused)
	return nil
}

// whoCalls adds to the configuration of a client what says who calls, if there is something.
func (p *program) whoCalls(t target, cfg *client.Config) error {
	if t.token == "" {
		cfg.Token = p.lookup("DDQ_TOKEN")
		return nil
	}
	source, err := token.OpenFile(t.token)
	if err != nil {
		return usagef("--token-file: %v", err)
	}
	cfg.Tokens = source
	return nil
}

// config is nil without TLS.
func (t target) config() (*tls.Config, error) {
	if !t.tls && t.ca == "" && t.cert == "" && t.key == "" && t.serverName == "" {
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
		// Read for each connection: a relay runs for longer than a certificate.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.cert, t.key)
			return &pair, err
		}
		if _, err := config.GetClientCertificate(nil); err != nil {
			return nil, usagef("--tls-cert and --tls-key: %v", err)
		}
	}
	return config, nil
}

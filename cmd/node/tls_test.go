package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/api/client"
)

// makeCerts makes ca and node in a folder.
func makeCerts(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ca, caKey := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if err := certs.Issue(certs.Request{Name: "ca", CA: true, For: time.Hour}, nil, ca, caKey); err != nil {
		t.Fatal(err)
	}
	by, err := certs.Authority(ca, caKey)
	if err != nil {
		t.Fatal(err)
	}
	r := certs.Request{Name: "node", Hosts: []string{"127.0.0.1"}, For: time.Hour}
	if err := certs.Issue(r, by, filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// configOf is what `ddq server` makes of flags.
func configOf(t *testing.T, args ...string) *Config {
	t.Helper()
	cfg := &Config{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	cfg.Flags(fs)
	args = append([]string{"--store", "memory", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"}, args...)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestBothPortsSpeakTLS(t *testing.T) {
	dir := makeCerts(t)
	n, err := Start(context.Background(), configOf(t, "--tls-cert", dir+"/node.crt", "--tls-key", dir+"/node.key"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop()
	pem, _ := os.ReadFile(dir + "/ca.crt")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)

	for what, tc := range map[string]struct {
		tls *tls.Config
		ok  bool
	}{"plain": {nil, false}, "TLS": {&tls.Config{RootCAs: pool}, true}, "another authority": {&tls.Config{}, false}} {
		c, err := client.Dial(n.GRPCAddr(), client.Config{TLS: tc.tls, MaxElapsed: -1, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Server(context.Background()); (err == nil) != tc.ok {
			t.Errorf("gRPC, %s: %v", what, err)
		}
		c.Close()
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: tc.tls}}
		scheme := "https"
		if tc.tls == nil {
			scheme = "http"
		}
		answer, err := web.Get(scheme + "://" + n.HTTPAddr() + "/readyz")
		ok := err == nil && answer.StatusCode == http.StatusOK
		if err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		if ok != tc.ok {
			t.Errorf("HTTP, %s: %v", what, err)
		}
		web.CloseIdleConnections()
	}
}

func TestTLSSettingsThatCannotWork(t *testing.T) {
	dir := makeCerts(t)
	crt, key := dir+"/node.crt", dir+"/node.key"
	for want, args := range map[string][]string{
		"go together":          {"--tls-cert", crt},
		"--tls-key go":         {"--tls-key", key},
		"no such file":         {"--tls-cert", dir + "/none.crt", "--tls-key", key},
		"private key":          {"--tls-cert", crt, "--tls-key", dir + "/ca.key"},
		"needs --tls-cert":     {"--tls-client-ca", dir + "/ca.crt", "--tls-client-auth", "require"},
		"--tls-client-ca and":  {"--tls-cert", crt, "--tls-key", key, "--tls-client-auth", "require"},
		"off, request":         {"--tls-cert", crt, "--tls-key", key, "--tls-client-auth", "maybe"},
		"1.2 or 1.3":           {"--tls-min", "1.1"},
		"no certificate in":    {"--tls-cert", crt, "--tls-key", key, "--tls-ca", key},
		"request or require g": {"--tls-cert", crt, "--tls-key", key, "--tls-client-ca", dir + "/ca.crt"},
	} {
		if err := configOf(t, args...).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

package node

import (
	"context"
	"crypto/tls"
	"errors"
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
	"github.com/ddq-io/ddq/api/client/access"
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
	pool := rootsOf(t, dir)

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

// TestOldTLSIsRefused: what authenticates no ciphertext, and what is older than TLS 1.2, by each port that speaks TLS.
func TestOldTLSIsRefused(t *testing.T) {
	dir := makeCerts(t)
	secure := []string{"--tls-cert", dir + "/node.crt", "--tls-key", dir + "/node.key"}
	pool := rootsOf(t, dir)
	cbc := []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	}
	for least, cases := range map[string]map[string]struct {
		from, to uint16
		suites   []uint16
		alert    string // of the server; empty: it is let in
	}{
		"1.2": {
			"TLS 1.0":           {tls.VersionTLS10, tls.VersionTLS10, nil, "protocol version"},
			"TLS 1.1":           {tls.VersionTLS10, tls.VersionTLS11, nil, "protocol version"},
			"TLS 1.2 with CBC":  {tls.VersionTLS12, tls.VersionTLS12, cbc, "handshake failure"},
			"TLS 1.2 with AEAD": {tls.VersionTLS12, tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, ""},
			"TLS 1.3":           {tls.VersionTLS13, tls.VersionTLS13, nil, ""},
		},
		"1.3": {
			"TLS 1.2": {tls.VersionTLS12, tls.VersionTLS12, nil, "protocol version"},
			"TLS 1.3": {tls.VersionTLS13, tls.VersionTLS13, nil, ""},
		},
	} {
		n, err := Start(t.Context(), configOf(t, append(secure, "--tls-min", least)...), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for port, c := range map[string]struct{ addr, proto string }{"gRPC": {n.GRPCAddr(), "h2"}, "HTTP": {n.HTTPAddr(), "http/1.1"}} {
			for what, tc := range cases {
				conn, err := tls.Dial("tcp", c.addr, &tls.Config{RootCAs: pool, MinVersion: tc.from, MaxVersion: tc.to, CipherSuites: tc.suites, NextProtos: []string{c.proto}})
				if err == nil {
					conn.Close()
				}
				if tc.alert == "" && err != nil || tc.alert != "" && (err == nil || !strings.Contains(err.Error(), "remote error: tls: "+tc.alert)) {
					t.Errorf("%s with --tls-min %s, %s: %v, want %q", port, least, what, err, tc.alert)
				}
			}
		}
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
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

// A server that other machines can reach asks callers who they are, on both ports.
func TestPortsThatOthersReachAskWhoCalls(t *testing.T) {
	dir := makeCerts(t)
	root := filepath.Join(t.TempDir(), "root")
	start := func() *Node {
		n, err := Start(context.Background(), configOf(t, "--grpc-addr", "0.0.0.0:0", "--http-addr", "0.0.0.0:0", "--root-token", "file:"+root,
			"--tls-cert", dir+"/node.crt", "--tls-key", dir+"/node.key"), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := start()
	defer n.Stop()
	info, err := os.Stat(root)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("root token: %v, %v", info, err)
	}
	text, _ := os.ReadFile(root)
	token := strings.TrimSpace(string(text))

	pool := rootsOf(t, dir)
	local := func(addr string) string { return "127.0.0.1" + addr[strings.LastIndexByte(addr, ':'):] }
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer web.CloseIdleConnections()
	status := func(path, token string) int {
		t.Helper()
		req, _ := http.NewRequest(http.MethodGet, "https://"+local(n.HTTPAddr())+path, nil)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := web.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		io.Copy(io.Discard, answer.Body)
		if answer.StatusCode == http.StatusUnauthorized && answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: 401 does not say what is wanted", path)
		}
		return answer.StatusCode
	}
	c, err := client.Dial(local(n.GRPCAddr()), client.Config{TLS: &tls.Config{RootCAs: pool}, Token: token, MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, viewer, err := c.CreateToken(context.Background(), access.NewToken{Name: "viewer of mail", Grants: []access.Grant{{Verbs: []string{"viewer"}, Namespace: "default", Topics: "mail"}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][3]int{ // nobody, root, viewer of mail
		"/healthz": {200, 200, 200}, "/readyz": {200, 200, 200}, "/metrics": {401, 200, 403},
		"/v1/topics": {401, 200, 200}, "/v1/topics/sms/tasks": {401, 404, 403}, "/v1/topics/sms/tasks:export": {401, 404, 403},
	} {
		for i, who := range []string{"", token, viewer} {
			if got := status(path, who); got != want[i] {
				t.Errorf("%s as %d: %d, want %d", path, i, got, want[i])
			}
		}
	}
	anonymous, err := client.Dial(local(n.GRPCAddr()), client.Config{TLS: &tls.Config{RootCAs: pool}, MaxElapsed: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer anonymous.Close()
	if _, err := anonymous.Server(context.Background()); !errors.Is(err, client.ErrDenied) {
		t.Errorf("without a token: %v", err)
	}
	if _, err := client.Dial("192.0.2.1:9090", client.Config{Token: token}); err == nil {
		t.Error("a token would be sent without TLS")
	}
	if err := os.Chmod(root, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(context.Background(), n.cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a root token that others can read: %v", err)
	}
}

func TestPortsThatOthersReachAreRefusedWithoutTLSAndTokens(t *testing.T) {
	dir := makeCerts(t)
	secure := []string{"--tls-cert", dir + "/node.crt", "--tls-key", dir + "/node.key"}
	for _, port := range []string{"--grpc-addr", "--http-addr"} {
		for what, tc := range map[string]struct {
			args []string
			want string
		}{
			"nothing":            {nil, "--tls-cert FILE"},
			"no TLS":             {[]string{"--auth", "token"}, "--tls-cert FILE"},
			"no authentication":  {append([]string{"--auth", "off"}, secure...), "--auth token"},
			"TLS":                {secure, ""},
			"plaintext":          {[]string{"--plaintext"}, ""},
			"plaintext, no auth": {[]string{"--plaintext", "--auth", "off"}, "--auth token"},
			"insecure":           {[]string{"--insecure"}, ""},
			"a bare token":       {append([]string{"--root-token", "ddq_x"}, secure...), "file:PATH"},
			"another way":        {append([]string{"--auth", "password"}, secure...), "token or off"},
		} {
			cfg := configOf(t, append([]string{port, "0.0.0.0:0"}, tc.args...)...)
			err := cfg.Check()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s, %s: %v, want %q", port, what, err, tc.want)
			}
			if on := cfg.Auth.on(); err == nil && on != (what != "insecure") {
				t.Errorf("%s, %s: authentication %v", port, what, on)
			}
		}
	}
	if cfg := configOf(t); cfg.Check() != nil || cfg.Auth.on() {
		t.Error("a server for this machine alone asks nobody")
	}
	fleet := append([]string{"--store", "redis://127.0.0.1:1", "--grpc-addr", "192.0.2.1:9090", "--gossip-addr", "127.0.0.1:0"}, secure...)
	if err := configOf(t, fleet...).Check(); err == nil || !strings.Contains(err.Error(), "needs --gossip-key") {
		t.Errorf("a fleet without a key: %v", err)
	}
}

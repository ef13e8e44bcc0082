package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ddq-io/ddq/api/auth/certs"
	"github.com/ddq-io/ddq/cmd/node"
)

func TestTokenCommands(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	n := startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.Auth = node.Memory, node.AuthConfig{Mode: "token", RootToken: "file:" + root}
	})
	run := on(t, n)
	if got := run(exitFailed, "topic", "list"); !strings.Contains(got.err, "NO_CREDENTIALS") {
		t.Errorf("without a token: %s", got.err)
	}
	as := []string{"--token-file", root}
	var made struct{ ID, Secret string }
	out := run(exitOK, append([]string{"token", "create", "mailer", "--grant", "worker,producer:mail*", "-o", "json"}, as...)...).out
	if err := json.Unmarshal([]byte(out), &made); err != nil || len(made.Secret) != 64 {
		t.Fatalf("%s: %v", out, err)
	}
	mailer := filepath.Join(t.TempDir(), "mailer")
	if err := os.WriteFile(mailer, []byte(made.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(exitOK, "enqueue", "--topic", "mail", "--payload", "x", "--token-file", mailer)
	if got := run(exitFailed, "enqueue", "--topic", "sms", "--payload", "x", "--token-file", mailer); !strings.Contains(got.err, "NOT_ALLOWED") {
		t.Errorf("another topic: %s", got.err)
	}
	run(exitFailed, "token", "list", "--token-file", mailer)
	if got := run(exitOK, "whoami", "--token-file", mailer); !strings.Contains(got.out, "enqueue,work:mail*") {
		t.Error(got.out)
	}
	bounded := append([]string{"token", "create", "slow", "--grant", "producer:mail", "--calls-per-second", "5", "--bytes-per-second", "4096", "-o", "json"}, as...)
	if got := run(exitOK, bounded...); !strings.Contains(got.out, `"calls_per_second":5,"bytes_per_second":4096`) {
		t.Error(got.out)
	}
	run(exitFailed, append([]string{"token", "create", "x", "--grant", "producer:mail", "--bytes-per-second", "-1"}, as...)...)
	if got := run(exitOK, append([]string{"token", "list"}, as...)...); !strings.Contains(got.out, made.ID) || strings.Contains(got.out, made.Secret) {
		t.Error(got.out)
	}
	run(exitOK, append([]string{"token", "rotate", made.ID, "--overlap", "1h"}, as...)...)
	run(exitOK, append([]string{"token", "revoke", made.ID}, as...)...)
	run(exitFailed, append([]string{"token", "revoke", made.ID, "--with-made"}, as...)...)
	run(exitFailed, "whoami", "--token-file", mailer)
	run(exitFailed, append([]string{"token", "create", "x", "--grant", "work:*mail"}, as...)...)
	run(exitUsage, append([]string{"token", "create", "x"}, as...)...)
	run(exitUsage, "topic", "list", "--token-file", root+".none")

	with := ddqWith(t.Context(), "", []string{"DDQ_ADDR=" + n.GRPCAddr(), "DDQ_TOKEN=" + strings.TrimSpace(read(t, root))}, "whoami")
	if with.code != exitOK || !strings.Contains(with.out, "root") {
		t.Errorf("DDQ_TOKEN: %d, %s%s", with.code, with.out, with.err)
	}
}

// TestSecretsGoIntoFiles: what is repeated at each start of a deployment makes a token once.
func TestSecretsGoIntoFiles(t *testing.T) {
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "prometheus")
	if code := ddqWith(t.Context(), "", nil, "token", "root", root).code; code != exitOK {
		t.Fatal(code)
	}
	if got := ddqWith(t.Context(), "", nil, "token", "root", root); got.code != exitFailed {
		t.Errorf("a second root token: %d, %s", got.code, got.out)
	}
	run := on(t, startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.Auth = node.Memory, node.AuthConfig{Mode: "token", RootToken: "file:" + root}
	}))
	create := []string{"token", "create", "prometheus", "--grant", "viewer", "--secret-file", file, "--token-file", root}
	if got := run(exitOK, create...); strings.Contains(got.out, "ddq_") {
		t.Errorf("the secret was printed, too: %s", got.out)
	}
	secret := read(t, file)
	run(exitOK, "topic", "list", "--token-file", file)
	run(exitUsage, create...)
	run(exitOK, append(create, "--keep")...)
	if read(t, file) != secret {
		t.Error("--keep made another token")
	}
	run(exitUsage, "token", "create", "x", "--grant", "viewer", "--keep", "--token-file", root)
	if got := run(exitOK, "token", "list", "--token-file", root); strings.Count(got.out, "prometheus") != 1 {
		t.Error(got.out)
	}
}

func TestAuditLogIsVerified(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "audit.log")
	n := startTestNode(t, func(cfg *node.Config) { cfg.Store, cfg.AuditLog = node.Memory, log })
	on(t, n)(exitOK, "topic", "create", "mail")
	verify := func(want int) string {
		t.Helper()
		got := ddqWith(t.Context(), "", nil, "audit", "verify", log)
		if got.code != want {
			t.Errorf("%d, want %d: %s%s", got.code, want, got.out, got.err)
		}
		return got.out + got.err
	}
	if text := verify(exitOK); !strings.Contains(text, "3") { // started, asked, answered
		t.Error(text)
	}
	changed := strings.Replace(read(t, log), "mail", "nail", 1)
	if err := os.WriteFile(log, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := verify(exitFailed); !strings.Contains(text, "line 2") {
		t.Error(text)
	}
	log = filepath.Join(dir, "none")
	verify(exitUsage)
}

func TestHealthNeedsNoToken(t *testing.T) {
	n := startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.Auth = node.Memory, node.AuthConfig{Mode: "token", RootToken: "file:" + filepath.Join(t.TempDir(), "root")}
	})
	run := on(t, n)
	if got := run(exitOK, "health"); got.out != "serving\n" {
		t.Error(got.out)
	}
	if got := run(exitOK, "health", "-o", "json"); got.out != `{"status":"SERVING"}`+"\n" {
		t.Error(got.out)
	}
	draining := grpc.NewServer()
	state := health.NewServer()
	state.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(draining, state)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = draining.Serve(l) })
	t.Cleanup(func() { draining.Stop(); serving.Wait() })
	if got := ddqWith(t.Context(), "", nil, "health", "--addr", l.Addr().String()); got.code != exitFailed || !strings.Contains(got.err, "does not serve") {
		t.Errorf("draining: %d, %s", got.code, got.err)
	}
	if got := ddqWith(t.Context(), "", nil, "health", "--addr", "127.0.0.1:1", "--timeout", "2s"); got.code != exitFailed || !strings.Contains(got.err, "no ddq server") {
		t.Errorf("%d: %s", got.code, got.err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBindingCommands(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	run := on(t, startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.Auth = node.Memory, node.AuthConfig{Mode: "token", RootToken: "file:" + root}
	}))
	as := func(args ...string) []string {
		return append(append([]string{"binding"}, args...), "--token-file", root)
	}
	run(exitOK, as("put", "mailers", "--certificate", "spiffe://prod/mail/", "--grant", "worker:mail*")...)
	run(exitOK, as("put", "ops", "--issuer", "https://login.example.com", "--claim", "groups=ops", "--grant", "operator")...)
	listed := run(exitOK, as("list")...).out
	for _, want := range []string{"certificate spiffe://prod/mail/", "work:mail*", "https://login.example.com groups=ops", "root"} {
		if !strings.Contains(listed, want) {
			t.Errorf("%q is not in %s", want, listed)
		}
	}
	run(exitOK, as("delete", "ops")...)
	run(exitFailed, as("delete", "ops")...)
	for _, args := range [][]string{
		{"put", "x", "--grant", "worker"},
		{"put", "x", "--certificate", "a.test"},
		{"put", "x", "--issuer", "https://i.test", "--grant", "worker"},
		{"put", "x", "--claim", "groups=ops", "--grant", "worker"},
		{"put", "x", "--issuer", "https://i.test", "--claim", "groups", "--grant", "worker"},
		{"put", "x", "--certificate", "a.test", "--issuer", "https://i.test", "--claim", "groups=ops", "--grant", "worker"},
	} {
		run(exitUsage, as(args...)...)
	}
	if got := run(exitFailed, as("put", "x", "--certificate", "*.test", "--grant", "worker")...); !strings.Contains(got.err, "BAD_BINDING") {
		t.Error(got.err)
	}
}

// TestDoctorFailsForWhatNoSettingAccepts: a certificate that expires soon is nobody's intention.
func TestDoctorFailsForWhatNoSettingAccepts(t *testing.T) {
	dir, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	ca, caKey, crt, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"), filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key")
	if err := certs.Issue(certs.Request{Name: "ca", CA: true, For: time.Hour}, nil, ca, caKey); err != nil {
		t.Fatal(err)
	}
	by, err := certs.Authority(ca, caKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := certs.Issue(certs.Request{Name: "node", Hosts: []string{"127.0.0.1"}, For: time.Hour}, by, crt, key); err != nil {
		t.Fatal(err)
	}
	n := startTestNode(t, func(cfg *node.Config) {
		cfg.Data, cfg.Insecure, cfg.TLS = data, true, node.TLSConfig{Cert: crt, Key: key}
	})
	got := ddqWith(t.Context(), "", nil, "doctor", "--data", data, "--addr", n.GRPCAddr(), "--tls-ca", ca)
	if got.code != exitFailed || !strings.Contains(got.out, "insecure is set") || !regexp.MustCompile(`(?m)^wrong +server .*expires at`).MatchString(got.out) {
		t.Errorf("%d: %s%s", got.code, got.out, got.err)
	}
}

// TestDoctorTellsWhatIsLessSafe: it says what a setting accepts, and does not fail for it.
func TestDoctorTellsWhatIsLessSafe(t *testing.T) {
	root, data := filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "data")
	n := startTestNode(t, func(cfg *node.Config) {
		cfg.Data, cfg.Insecure, cfg.Auth = data, true, node.AuthConfig{Mode: "token", RootToken: "file:" + root}
	})
	got := ddqWith(t.Context(), "", nil, "doctor", "--data", data, "--addr", n.GRPCAddr(), "--token-file", root)
	if got.code != exitOK || !strings.Contains(got.out, "insecure is set") || !strings.Contains(got.out, "this is the root token") {
		t.Errorf("%d: %s%s", got.code, got.out, got.err)
	}
}

package cli

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/node"
)

// certificate reads one in PEM.
func certificate(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(read(t, name)))
	if block == nil {
		t.Fatalf("%s is no PEM", name)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestCertificatesOfCommandsServe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, args); code != want {
			t.Fatalf("ddq %v: exit code %d, want %d; %s", args, code, want, errs.String())
		}
		return out.String() + errs.String()
	}
	if text := run(exitUsage, "certs", "node", "a", "--dir", dir); !strings.Contains(text, "ddq certs ca") {
		t.Errorf("without an authority: %s", text)
	}
	run(exitOK, "certs", "ca", "--dir", dir)
	if text := run(exitOK, "certs", "node", "a", "--dir", dir, "--hosts", "a,127.0.0.1", "-o", "json"); !strings.Contains(text, `a.key`) {
		t.Error(text)
	}
	run(exitOK, "certs", "client", "b", "--dir", dir)
	run(exitOK, "certs", "node", "named", "--dir", dir, "--hosts", "127.0.0.1", "--identity", "spiffe://prod/ddq/named")
	if uris := certificate(t, filepath.Join(dir, "named.crt")).URIs; len(uris) != 1 || uris[0].String() != "spiffe://prod/ddq/named" {
		t.Errorf("--identity: %v", uris)
	}
	run(exitUsage, "certs", "node", "unnamed", "--dir", dir, "--identity", "ddq")
	run(exitFailed, "certs", "node", "a", "--dir", dir)
	made := read(t, filepath.Join(dir, "a.key"))
	run(exitOK, "certs", "ca", "--dir", dir, "--keep")
	run(exitOK, "certs", "node", "a", "--dir", dir, "--keep")
	if read(t, filepath.Join(dir, "a.key")) != made {
		t.Error("--keep made another key")
	}
	run(exitOK, "certs", "node", "kept", "--dir", dir, "--keep")
	run(exitUsage, "certs", "client", "../x", "--dir", dir)
	run(exitUsage, "certs", "client", "x", "--dir", dir, "--for", "0s")

	ca, crt, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "a.crt"), filepath.Join(dir, "a.key")
	addr := startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.TLS = node.Memory, node.TLSConfig{Cert: crt, Key: key, CA: ca, ClientCA: ca, ClientAuth: "require"}
	}).GRPCAddr()
	client := []string{"--tls-cert", filepath.Join(dir, "b.crt"), "--tls-key", filepath.Join(dir, "b.key")}
	run(exitOK, append([]string{"topic", "list", "--addr", addr, "--tls-ca", ca}, client...)...)
	run(exitFailed, "topic", "list", "--addr", addr, "--tls-ca", ca, "--timeout", "2s")
	run(exitFailed, append([]string{"topic", "list", "--addr", addr, "--tls", "--timeout", "2s"}, client...)...)
	run(exitFailed, append([]string{"topic", "list", "--addr", addr, "--tls-ca", ca, "--tls-server-name", "c", "--timeout", "2s"}, client...)...)
	run(exitFailed, "topic", "list", "--addr", addr, "--timeout", "2s")
	run(exitUsage, "topic", "list", "--addr", addr, "--tls-ca", key)
	run(exitUsage, "topic", "list", "--addr", addr, "--tls-cert", crt)
	if _, err := os.Stat(filepath.Join(dir, "x.crt")); err == nil {
		t.Error("a certificate that was refused is there")
	}
}

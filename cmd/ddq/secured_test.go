//go:build unix

package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The bench drives a server that asks who calls over TLS, with its worker process, in a namespace.
func TestBenchOfASecuredServer(t *testing.T) {
	ddq, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), ddq, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("ddq %v: %v\n%s", args, err, out)
		}
	}
	run("certs", "ca")
	run("certs", "node", "127.0.0.1")
	in := func(name string) string { return filepath.Join(dir, name) }
	p := startProcess(t, "--grpc-addr", "127.0.0.1:0", "--data", in("data"), "--auth", "token",
		"--tls-cert", in("127.0.0.1.crt"), "--tls-key", in("127.0.0.1.key"))
	reach := []string{"--addr", p.addr, "--tls-ca", in("ca.crt"), "--token-file", in("data.root-token")}
	run(append(reach, "namespace", "create", "team")...)
	run(append([]string{"bench", "throughput", "--mode", "batch", "--tasks", "1000", "--namespace", "team"}, reach...)...)
}

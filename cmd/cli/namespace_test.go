package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/node"
)

func TestNamespaceCommands(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	n := startTestNode(t, func(cfg *node.Config) {
		cfg.Store, cfg.Auth = node.Memory, node.AuthConfig{Mode: "token", RootToken: "file:" + root}
	})
	run := on(t, n)
	as := func(args ...string) []string { return append(args, "--token-file", root) }
	run(exitOK, as("namespace", "create", "acme", "--max-pending", "1000000")...)
	if got := run(exitFailed, as("namespace", "create", "acme")...); !strings.Contains(got.err, "NAMESPACE_EXISTS") {
		t.Error(got.err)
	}
	var made struct{ Secret string }
	out := run(exitOK, as("token", "create", "mailer", "--namespace", "acme", "--grant", "producer,viewer", "-o", "json")...).out
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatal(err)
	}
	mailer := filepath.Join(t.TempDir(), "mailer")
	if err := os.WriteFile(mailer, []byte(made.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	run(exitOK, "enqueue", "--topic", "mail", "--payload", "x", "--token-file", mailer)
	if got := run(exitOK, "topic", "list", "--token-file", mailer); !strings.Contains(got.out, "mail") || strings.Contains(got.out, "acme") {
		t.Errorf("its own topics: %s", got.out)
	}
	if got := run(exitOK, as("topic", "list")...); strings.Contains(got.out, "mail") {
		t.Errorf("those of default: %s", got.out)
	}
	if got := run(exitOK, as("topic", "list", "--namespace", "acme")...); !strings.Contains(got.out, "mail") {
		t.Errorf("those of acme: %s", got.out)
	}
	with := ddqWith(t.Context(), "", []string{"DDQ_ADDR=" + n.GRPCAddr(), "DDQ_NAMESPACE=nobody"}, as("topic", "list")...)
	if with.code != exitFailed || !strings.Contains(with.err, "NO_NAMESPACE") {
		t.Errorf("DDQ_NAMESPACE: %d, %s%s", with.code, with.out, with.err)
	}
	run(exitOK, as("namespace", "set", "acme", "--max-pending", "0", "--enqueue-per-second", "500",
		"--bytes-per-second", "100000", "--max-topics", "1", "--max-schedules", "20", "--max-streams", "30", "--max-in-flight", "40")...)
	got := run(exitOK, as("namespace", "get", "acme")...)
	rows := make(map[string]string)
	for line := range strings.Lines(got.out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "  ")
		rows[name] = strings.TrimSpace(value)
	}
	for name, want := range map[string]string{
		"enqueued/s": "500", "bytes/s": "100000", "bytes a payload": "no bound", "pending": "1 of no bound", "in flight": "0 of 40", "topics": "1 of 1", "schedules": "0 of 20", "worker streams": "0 of 30",
	} {
		if rows[name] != want {
			t.Errorf("%s is %q, want %q, in\n%s", name, rows[name], want, got.out)
		}
	}
	if got := run(exitOK, as("namespace", "get", "acme", "-o", "json")...); !strings.Contains(got.out, `"usage":{"pending":1,"in_flight":0,"topics":1,"schedules":0,"streams":0}`) {
		t.Error(got.out)
	}
	got = run(exitOK, as("namespace", "list")...)
	for _, want := range []string{"500 enqueued/s", "100000 bytes/s", "1 topics", "20 schedules", "30 worker streams", "40 in flight"} {
		if !strings.Contains(got.out, want) || strings.Contains(got.out, "pending") {
			t.Errorf("%s, want %s", got.out, want)
		}
	}
	if got := run(exitFailed, as("topic", "create", "more", "--namespace", "acme")...); !strings.Contains(got.err, "QUOTA") {
		t.Error(got.err)
	}
	if got := run(exitFailed, as("namespace", "delete", "acme")...); !strings.Contains(got.err, "NAMESPACE_NOT_EMPTY") {
		t.Error(got.err)
	}
	run(exitOK, as("topic", "delete", "mail", "--force", "--yes", "--namespace", "acme")...)
	run(exitOK, as("namespace", "delete", "acme")...)
	if got := run(exitOK, as("namespace", "list")...); strings.Contains(got.out, "acme") || !strings.Contains(got.out, "default") {
		t.Error(got.out)
	}
	run(exitFailed, "topic", "list", "--token-file", mailer)
}

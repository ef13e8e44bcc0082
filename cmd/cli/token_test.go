package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	if got := run(exitOK, append([]string{"token", "list"}, as...)...); !strings.Contains(got.out, made.ID) || strings.Contains(got.out, made.Secret) {
		t.Error(got.out)
	}
	run(exitOK, append([]string{"token", "rotate", made.ID, "--overlap", "1h"}, as...)...)
	run(exitOK, append([]string{"token", "revoke", made.ID}, as...)...)
	run(exitFailed, "whoami", "--token-file", mailer)
	run(exitFailed, append([]string{"token", "create", "x", "--grant", "work:*mail"}, as...)...)
	run(exitUsage, append([]string{"token", "create", "x"}, as...)...)
	run(exitUsage, "topic", "list", "--token-file", root+".none")

	with := ddqWith(t.Context(), "", []string{"DDQ_ADDR=" + n.GRPCAddr(), "DDQ_TOKEN=" + strings.TrimSpace(read(t, root))}, "whoami")
	if with.code != exitOK || !strings.Contains(with.out, "root") {
		t.Errorf("DDQ_TOKEN: %d, %s%s", with.code, with.out, with.err)
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

//go:build unix

package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/cmd/node"
)

// TestEncryptionKeys: a master key is exchanged, and doctor says what is in the way of it.
func TestEncryptionKeys(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	const one, two = "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=", "MjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjIyMjI="
	master := func(name string, keys ...string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + file
	}
	begun, both, ended := master("begun", one), master("both", two, one), master("ended", two)
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := ddqWith(t.Context(), "", nil, append(args, "--data", data)...)
		if got.code != code {
			t.Fatalf("ddq %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), got.code, code, got.out, got.err)
		}
		return got
	}
	startAndStop := func(key string) {
		t.Helper()
		cfg := &node.Config{Store: node.Embedded, Data: data, GRPCAddr: "127.0.0.1:0", HTTPAddr: node.Off, ShutdownGrace: time.Second, Encryption: node.EncryptionConfig{Key: key}}
		n, err := node.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			err = n.Stop()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	doctor := func(code int, want string, args ...string) {
		t.Helper()
		if got := run(code, append([]string{"doctor", "--no-server"}, args...)...); !strings.Contains(got.out, want) {
			t.Errorf("doctor says %s, want %q", got.out, want)
		}
	}

	if got := run(exitOK, "encryption", "status"); !strings.Contains(got.err, "not encrypted") {
		t.Error(got.out, got.err)
	}
	startAndStop(begun)
	if got := run(exitOK, "encryption", "status", "--encryption-key", begun); strings.Count(got.out, "true") != 1 {
		t.Error(got.out)
	}
	doctor(exitOK, "the store is encrypted: 1 data keys", "--encryption-key", begun)
	doctor(exitFailed, "--encryption-key is not given")
	doctor(exitFailed, "1 of 1 data keys do not open", "--encryption-key", ended)
	run(exitUsage, "encryption", "rotate")
	run(exitUsage, "encryption", "rotate", "--encryption-key", ended)
	doctor(exitOK, "ddq encryption rotate", "--encryption-key", both)
	if got := run(exitOK, "encryption", "rotate", "--encryption-key", both, "-o", "json"); !strings.HasPrefix(got.out, `{"rotated":1,`) {
		t.Error(got.out)
	}
	startAndStop(ended)
	doctor(exitFailed, "2 of 2 data keys do not open", "--encryption-key", begun)
}

// TestReencryptCommand has a node encrypt anew what it has, over gRPC, and says which keys are not needed then.
func TestReencryptCommand(t *testing.T) {
	dir := t.TempDir()
	data, key := filepath.Join(dir, "data"), filepath.Join(dir, "master")
	if err := os.WriteFile(key, []byte("MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(key string, do func(ddq func(code int, args ...string) outcome)) {
		t.Helper()
		cfg := &node.Config{Store: node.Embedded, Data: data, GRPCAddr: "127.0.0.1:0", HTTPAddr: node.Off, ShutdownGrace: time.Second, Encryption: node.EncryptionConfig{Key: key}}
		n, err := node.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		do(on(t, n))
		if err := n.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	with("", func(ddq func(code int, args ...string) outcome) {
		ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--count", "20", "--payload", "plain")
		if got := ddq(exitFailed, "encryption", "reencrypt"); !strings.Contains(got.err, "NOT_ENCRYPTED") {
			t.Errorf("without a key: %s", got.err)
		}
	})
	with("file:"+key, func(ddq func(code int, args ...string) outcome) {
		ddq(exitOK, "enqueue", "--topic", "mail", "--delay", "1h", "--id", "sealed", "--payload", "formerly")
	})
	with("file:"+key, func(ddq func(code int, args ...string) outcome) {
		if got := ddq(exitOK, "encryption", "reencrypt", "--rate", "1000", "-o", "json").out; !strings.Contains(got, `"changed":21,"skipped":0`) || !strings.Contains(got, `"state":"done"`) {
			t.Errorf("it ended as %s", got)
		}
		if got := ddq(exitOK, "operation", "list").out; !strings.Contains(got, "reencrypt") {
			t.Errorf("listed are %s", got)
		}
		if got := ddq(exitOK, "task", "get", "sealed", "--topic", "mail").out; !strings.Contains(got, "formerly") {
			t.Errorf("the task is read as %s", got)
		}
	})
	got := ddqWith(t.Context(), "", nil, "encryption", "status", "--data", data, "--encryption-key", "file:"+key, "-o", "json")
	if strings.Count(got.out, `"needed":false`) != 2 || strings.Count(got.out, `"needed":true`) != 1 {
		t.Errorf("keys: %s%s", got.out, got.err)
	}
}

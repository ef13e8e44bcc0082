package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ddq-io/ddq/cmd/node"
)

func TestKeyrings(t *testing.T) {
	n := startTestNode(t, func(cfg *node.Config) { cfg.Store = node.Memory })
	run := on(t, n)
	ring := filepath.Join(t.TempDir(), "ring")
	with := []string{"--keyring", ring}
	made := run(exitOK, "keyring", "create", ring, "--id", "one").out
	if keys := read(t, ring); strings.Contains(made, strings.Fields(keys)[1]) || !strings.Contains(made, "encrypts") {
		t.Error(made)
	}
	run(exitUsage, "keyring", "create", ring)
	run(exitUsage, "keyring", "create", ring+"2", "--id", "a b")

	enqueue := append([]string{"enqueue", "--topic", "mail", "--id", "a", "--payload", "hush", "--delay", "1h"}, with...)
	run(exitOK, enqueue...)
	run(exitUsage, "keyring", "use", ring, "two")
	run(exitOK, "keyring", "add", ring, "--id", "two")
	run(exitUsage, "keyring", "add", ring, "--id", "two")
	if got := run(exitOK, "keyring", "use", ring, "two", "-o", "json").out; got != "{\"id\":\"two\",\"encrypts\":true}\n{\"id\":\"one\",\"encrypts\":false}\n" {
		t.Error(got)
	}
	if got := run(exitOK, enqueue...); !strings.Contains(got.out, "enqueued before") {
		t.Errorf("again under another key: %s", got.out)
	}
	if got := run(exitOK, "task", "get", "a"); strings.Contains(got.out, "hush") {
		t.Error(got.out)
	}
	if got := run(exitOK, append([]string{"task", "get", "a"}, with...)...); !strings.Contains(got.out, "hush") {
		t.Error(got.out)
	}
	run(exitOK, append([]string{"task", "update", "a", "--topic", "mail", "--payload", "louder"}, with...)...)
	run(exitUsage, "keyring", "remove", ring, "two", "--yes")
	run(exitUsage, "keyring", "remove", ring, "one") // nobody can be asked
	run(exitOK, "keyring", "remove", ring, "one", "--yes")
	run(exitOK, "task", "promote", "a")
	if got := run(exitOK, append([]string{"work", "--topic", "mail", "--count", "1", "--exec", "cat"}, with...)...); strings.TrimSpace(got.out) != "louder" {
		t.Errorf("worked on %q", got.out)
	}

	run(exitOK, enqueue...)
	other := filepath.Join(t.TempDir(), "other")
	run(exitOK, "keyring", "create", other, "--id", "three")
	if got := run(exitFailed, "task", "get", "a", "--keyring", other); !strings.Contains(got.err, `key "two"`) {
		t.Error(got.err)
	}
	if info, err := os.Stat(ring); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(ring, 0o640); err != nil {
		t.Fatal(err)
	}
	if got := run(exitUsage, enqueue...); !strings.Contains(got.err, "chmod 600") {
		t.Error(got.err)
	}
	if all, err := filepath.Glob(filepath.Join(filepath.Dir(ring), ".*")); err != nil || len(all) != 0 {
		t.Errorf("left %v, %v", all, err)
	}
}

//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutboxHandsItsCommandLineOver(t *testing.T) {
	bin := t.TempDir()
	program := filepath.Join(bin, outboxProgram)
	script := "#!/bin/sh\necho \"out: $* $DDQ_DSN\"\necho err >&2\n[ \"$1\" != fail ] || exit 2\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	got := ddqWith(t.Context(), "", []string{"DDQ_DSN=base"}, "outbox", "status", "-o", "json", "--dsn", "x")
	if got != (outcome{exitOK, "out: status -o json --dsn x base\n", "err\n"}) {
		t.Errorf("%+v", got)
	}
	if got := ddq(t, "outbox", "fail"); got.code != exitUsage || got.err != "err\n" {
		t.Errorf("%+v", got)
	}
	t.Setenv("PATH", t.TempDir())
	if got := ddq(t, "outbox", "status"); got.code != exitFailed || !strings.Contains(got.err, "make outbox") {
		t.Errorf("%+v", got)
	}
}

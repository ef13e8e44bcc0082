//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/outbox/internal/ddqtest"
	"github.com/ddq-io/ddq/api/outbox/internal/pgtest"
)

const page = "../../../../docs/outbox.md"

// notRun says of blocks of commands, by how they begin, why they are not run.
var notRun = map[string]string{
	"export DDQ_DSN": "the test has a database of its own",
	"go mod edit":    "needs a program and the network",
}

// background are blocks that go on while the others run.
const background = "ddq outbox relay\n"

// shows is what the commands have to print, here and there.
var shows = []string{
	`mail: {"to":"a@example.com"}`, "mail: thanks", "to be handed on  0", `"bad":0`, "max_retries must be 0 to 1000 (OUT_OF_RANGE_FIELD)", "1 of 1 put back",
}

var fences = regexp.MustCompile("(?ms)^```(sh|go)\n(.*?)^```$")

// blocks are those of a language in the page.
func blocks(t *testing.T, lang string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range fences.FindAllSubmatch(text, -1) {
		if string(m[1]) == lang {
			found = append(found, string(m[2]))
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block of %s", page, lang)
	}
	return found
}

func TestGoInThePageCompiles(t *testing.T) {
	for i, b := range blocks(t, "go") {
		file := filepath.Join(t.TempDir(), fmt.Sprintf("block%d.go", i))
		if err := os.WriteFile(file, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("go", "vet", file).CombinedOutput(); err != nil {
			t.Errorf("block %d: %v\n%s", i, err, out)
		}
	}
}

// TestCommandsInThePageRun pastes them, one after the other, into a shell.
func TestCommandsInThePageRun(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	bin := t.TempDir()
	ddq, err := ddqtest.Build(bin, "../../../..")
	if err != nil {
		t.Fatal(err)
	}
	if ddq != filepath.Join(bin, "ddq") {
		if err := os.Symlink(ddq, filepath.Join(bin, "ddq")); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "ddq-outbox"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	var script strings.Builder
	skipped := map[string]bool{}
	script.WriteString("set -eE -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	for _, b := range blocks(t, "sh") {
		begin, left := "", false
		for begin = range notRun {
			if left = strings.HasPrefix(b, begin); left {
				break
			}
		}
		switch {
		case left:
			skipped[begin] = true
		case b == background:
			script.WriteString(strings.TrimSpace(b) + " &\n")
		default:
			script.WriteString(b)
		}
	}
	for begin := range notRun {
		if !skipped[begin] {
			t.Errorf("no block begins with %q any more", begin)
		}
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-x", "-c", script.String())
	shell.Cancel = func() error { return shell.Process.Signal(os.Interrupt) }
	shell.WaitDelay = 10 * time.Second
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), "PATH="+bin+":"+server.Bin()+":"+os.Getenv("PATH"), "DDQ_DSN="+server.Database(t), "DDQ_ADDR="+ddqtest.Start(t, ddq))
	var out bytes.Buffer
	shell.Stdout, shell.Stderr = &out, &out
	if err := shell.Run(); err != nil {
		t.Errorf("the commands ended with %v", err)
	}
	for _, want := range shows {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no command shows %q", want)
		}
	}
	if t.Failed() {
		t.Logf("printed:\n%s", out.String())
	}
}

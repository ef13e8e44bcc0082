//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// The second interrupt ends `ddq work` at once, also where a shell has it ignore
// interrupts as it does for what it starts in the background; and the command that
// it ran ends with it.
func TestSecondInterruptEndsWorkAtOnce(t *testing.T) {
	p := startProcess(t, "--grpc-addr", "127.0.0.1:0", "--store", "memory")
	c, err := client.Dial(p.addr, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Enqueue(t.Context(), client.Task{Topic: "mail"}); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ddq, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	work := exec.Command("sh", "-c", `trap '' INT; exec "$0" work --addr "$1" --topic mail --exec "exec 3> $2; echo up >&2; exec sleep 600"`, ddq, p.addr, fifo)
	stderr, err := work.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // reads until the command, which has the other end, is gone
		defer close(ended)
		_ = exec.Command("cat", fifo).Run()
	}()
	lines := bufio.NewScanner(stderr)
	said := ""
	until := func(what string) {
		for !strings.Contains(said, what) {
			if !lines.Scan() {
				t.Fatalf("ended without %q: %s", what, said)
			}
			said += lines.Text() + "\n"
		}
	}
	until("up")
	began := time.Now()
	if err := work.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	until("interrupt again to end at once")
	if err := work.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stderr)
	var exit *exec.ExitError
	if err := work.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("ended with %v, want exit code 130", err)
	}
	<-ended
	if took := time.Since(began); took > 5*time.Minute { // half of what the command sleeps
		t.Errorf("ended after %v", took)
	}
}

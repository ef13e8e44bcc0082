//go:build unix

package main

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// working is a `ddq work` whose command has the other end of a pipe, with all that it started.
type working struct {
	*exec.Cmd
	t      *testing.T
	stderr io.Reader
	lines  *bufio.Scanner
	said   string
	gone   chan struct{} // closed once nobody has the pipe
}

// startWork works on a task with a command that gets the path of a pipe as $0.
func startWork(t *testing.T, command string, flags ...string) *working {
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
	args := append([]string{"-c", `trap '' INT; exec "$0" "$@"`, ddq, "work", "--addr", p.addr, "--topic", "mail",
		"--exec", "exec 3> " + fifo + "; " + command}, flags...)
	w := &working{Cmd: exec.Command("sh", args...), t: t, gone: make(chan struct{})}
	if w.stderr, err = w.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	w.lines = bufio.NewScanner(w.stderr)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // reads until the command, which has the other end, is gone
		defer close(w.gone)
		_ = exec.Command("cat", fifo).Run()
	}()
	w.until("up")
	return w
}

// until reads what is said up to a line.
func (w *working) until(what string) {
	for !strings.Contains(w.said, what) {
		if !w.lines.Scan() {
			w.t.Fatalf("ended without %q: %s", what, w.said)
		}
		w.said += w.lines.Text() + "\n"
	}
}

func (w *working) interrupt() {
	if err := w.Process.Signal(syscall.SIGINT); err != nil {
		w.t.Fatal(err)
	}
}

// end waits until it has ended, with a code, and all that it started.
func (w *working) end(code int, within time.Duration) {
	began := time.Now()
	_, _ = io.Copy(io.Discard, w.stderr)
	err := w.Wait()
	if got := w.ProcessState.ExitCode(); got != code {
		w.t.Errorf("ended with %v, want exit code %d", err, code)
	}
	<-w.gone
	if took := time.Since(began); took > within {
		w.t.Errorf("ended after %v", took)
	}
}

// The second interrupt ends `ddq work` at once, also where a shell has it ignore
// interrupts as it does for what it starts in the background; and the command that
// it ran ends with it.
func TestSecondInterruptEndsWorkAtOnce(t *testing.T) {
	w := startWork(t, "echo up >&2; exec sleep 600")
	w.interrupt()
	w.until("interrupt again to end at once")
	w.interrupt()
	w.end(130, 5*time.Minute) // half of what the command sleeps
}

// What ignores to be asked to end, and what that started, is gone when the time for
// running tasks is over.
func TestEndOfGraceEndsWhatCommandsStarted(t *testing.T) {
	w := startWork(t, `trap "" TERM INT; sleep 600 & sleep 600 & echo up >&2; wait`, "--grace", "100ms")
	w.interrupt()
	w.end(0, 5*time.Minute)
}

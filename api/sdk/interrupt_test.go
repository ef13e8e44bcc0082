//go:build linux

package sdk_test

import (
	"context"
	"net"
	"os/exec"
	"testing"
)

// interruptedEarly sets the interrupt of a call between its watch and its socket.
const interruptedEarly = `
import sys
from ddq._transport import Interrupt, Interrupted, Transport

class Early(Interrupt):
    def watch(self, connection):
        super().watch(connection)
        if connection is not None:
            assert connection.sock is None
            self.set()

try:
    Transport(sys.argv[1], None, 3600, None).call("POST", "/", body={}, interrupt=Early())
except Interrupted:
    print("interrupted")
`

// interruptedAtStart presses Ctrl-C when a worker starts its first thread: before it runs, or when it runs already.
const interruptedAtStart = `
import sys, threading
import ddq

def pressed(thread):
    threading.Thread.start = start
    if sys.argv[2] == "after":
        start(thread)
    raise KeyboardInterrupt

start, threading.Thread.start = threading.Thread.start, pressed
ddq.Worker(ddq.Client(sys.argv[1]), "t", lambda task: None).run()
print("interrupted")
`

// Ctrl-C ends a worker also while it starts its threads.
func TestInterruptOfAStart(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			python(t, interruptedAtStart, "http://"+silence(t), when)
		})
	}
}

// A worker that is stopped while its poll is connecting does not wait for the poll.
func TestInterruptBeforeTheSocket(t *testing.T) {
	t.Parallel()
	python(t, interruptedEarly, "http://"+silence(t))
}

// silence is the address of a server that never answers.
func silence(t *testing.T) string {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	return silent.Addr().String()
}

// python runs a program that is to print that it was interrupted.
func python(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", append([]string{"-B", "-c", program}, args...)...)
	cmd.Env = append(cmd.Environ(), "PYTHONPATH=python")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "interrupted\n" {
		t.Errorf("%v: %s", err, out)
	}
}

//go:build unix

package cli

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
)

func TestWorkSaysWhatItWaitsFor(t *testing.T) {
	n := startTestNode(t, nil)
	ddq := on(t, n)
	ddq(exitOK, "enqueue", "--topic", "mail")
	addr := n.GRPCAddr()
	if got := ddq(exitOK, "work", "--topic", "mail", "--count", "1"); got.err != "subscribed to mail at "+addr+"\n" {
		t.Errorf("stderr = %q", got.err)
	}
	ctx, stop := context.WithCancel(t.Context())
	said, errs := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, Streams{In: strings.NewReader(""), Out: io.Discard, Err: errs}, []string{"work", "--addr", addr, "--topic", "mial"})
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	if want := "subscribed to mial at " + addr + "; the topic is new, made by this subscription\n"; err != nil || line != want {
		t.Errorf("stderr = %q, %v, want %q", line, err, want)
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestCommandPastTheHandlerTimeoutFails(t *testing.T) {
	ddq := on(t, startTestNode(t, nil))
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "a", "--max-retries", "0")
	got := ddq(exitOK, "work", "--topic", "mail", "--count", "1", "--handler-timeout", "200ms", "--exec", "sleep 600")
	if !strings.Contains(got.err, "task a, attempt 1: handler timed out after 200ms") {
		t.Errorf("stderr = %s", got.err)
	}
	ddq(exitOK, "enqueue", "--topic", "mail", "--id", "b", "--max-retries", "0", "--handler-timeout", "1h")
	ddq(exitOK, "task", "update", "b", "--handler-timeout", "300ms")
	got = ddq(exitOK, "work", "--topic", "mail", "--count", "1", "--exec", "sleep 600")
	if !strings.Contains(got.err, "task b, attempt 1: handler timed out after 300ms") {
		t.Errorf("stderr = %s", got.err)
	}
	if dead := ddq(exitOK, "dlq", "list", "--topic", "mail").out; !strings.Contains(dead, "handler timed out after 200ms") {
		t.Errorf("dead letters: %s", dead)
	}
}

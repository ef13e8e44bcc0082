package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestCommandGetsPayloadAndVariables(t *testing.T) {
	var out, errs bytes.Buffer
	s := &Command{Text: `cat; echo " $GREETING"`, Environ: os.Environ(), Out: &out, Err: &errs}
	if err := s.Run(t.Context(), []byte("hello"), []string{"GREETING=there"}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "hello there\n"; got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}

func TestCommandReportsItsLastWords(t *testing.T) {
	var out, errs bytes.Buffer
	s := &Command{Text: `echo trying >&2; echo no route >&2; echo >&2; exit 3`, Environ: os.Environ(), Out: &out, Err: &errs}
	err := s.Run(t.Context(), nil, nil)
	if err == nil || err.Error() != "exit status 3: no route" {
		t.Errorf("err = %v, want exit status 3: no route", err)
	}
	if got, want := errs.String(), "trying\nno route\n\n"; got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
}

func TestCommandThatReadsNothing(t *testing.T) {
	var out, errs bytes.Buffer
	s := &Command{Text: `true`, Environ: os.Environ(), Out: &out, Err: &errs}
	if err := s.Run(t.Context(), make([]byte, 1<<20), nil); err != nil {
		t.Errorf("a command may leave its payload: %v", err)
	}
}

var errHoldLost = errors.New("hold lost")

// The command and its child both ignore SIGTERM. The child has one end of a
// FIFO, which reads as ended when no process is left that has it; one that lives on says so.
func TestCommandDiesWithAllItStarted(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, lose := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		r, err := os.Open(fifo) // waits for the child
		lose(errHoldLost)
		if err == nil {
			var said []byte
			if said, err = io.ReadAll(r); len(said) > 0 {
				err = fmt.Errorf("the child %s", said)
			}
		}
		ended <- err
	}()
	var out, errs bytes.Buffer
	s := &Command{Text: `trap '' TERM; (sleep 30; echo lived on) >"$FIFO" & wait; sleep 600`, Environ: os.Environ(), Out: &out, Err: &errs}
	if err := s.Run(ctx, nil, []string{"FIFO=" + fifo}); !errors.Is(err, errHoldLost) {
		t.Errorf("err = %v, want the reason for the cancellation", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLineWriterKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	w := &lineWriter{to: &out}
	for _, part := range []string{"a", "b\nc", "\n", "\n", "tail"} {
		w.Write([]byte(part))
	}
	if got := out.String(); got != "ab\nc\n\n" {
		t.Errorf("before flush: %q", got)
	}
	w.flush()
	if got := out.String(); !strings.HasSuffix(got, "\ntail\n") || w.last != "tail" {
		t.Errorf("after flush: %q, last %q", got, w.last)
	}
}

// A child in the background keeps the output open. All that the shell wrote is read, and the child goes on.
func TestCommandIsReadWholeBesideAChild(t *testing.T) {
	var out bytes.Buffer
	s := &Command{Text: `sleep 60 & echo $! >&2; printf '%0300000d' 7`, Environ: os.Environ(), Out: io.Discard, Raw: &out, Err: io.Discard}
	var child bytes.Buffer
	s.Err = &child
	if err := s.Run(t.Context(), nil, nil); err != nil || out.Len() != 300_000 {
		t.Errorf("%d bytes were read, want 300000: %v", out.Len(), err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(child.String()))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the child is gone: %v", err)
	}
}

package box

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestBoxStopsWhatItStarted(t *testing.T) {
	b, err := New()
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Start("sleep", exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Running() {
		t.Fatal("not running after start")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if p.Running() {
		t.Error("still running after the b was closed")
	}
	if _, err := os.Stat(b.Dir); !os.IsNotExist(err) {
		t.Errorf("directory is still there: %v", err)
	}
}

func TestKillEndsTheWholeGroup(t *testing.T) {
	b := newTestBox(t)
	// The shell ignores SIGTERM, and its child holds the pipe open while it lives.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("sh", "-c", "trap '' TERM; sleep 1000 & echo up; wait")
	cmd.Stdout = w
	p, err := b.Start("sh", cmd)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3)
	if _, err := r.Read(buf); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(buf); err == nil {
		t.Errorf("read %d bytes from a killed group, want end of file", n)
	}
}

func TestWaitReadyTellsWhyAProcessEnded(t *testing.T) {
	b := newTestBox(t)
	p, err := b.Start("sh", exec.Command("sh", "-c", "echo no room >&2; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	err = p.WaitReady(t.Context(), func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v, want what the process printed", err)
	}
}

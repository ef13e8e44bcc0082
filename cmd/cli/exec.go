package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// killDelay is how long a command may take to end after SIGTERM.
const killDelay = time.Second

// shellCommand runs one shell command for each task. Commands run at the same
// time; lines of their output are not mixed.
type shellCommand struct {
	command string
	environ []string // added to by each task
	out     io.Writer
	err     io.Writer
	raw     io.Writer               // takes stdout in place of out, as it is; nil for none
	next    func(line []byte) error // takes lines of file descriptor 3; nil for none
	abort   *Abort                  // may be nil
}

// run feeds payload to the command and returns nil when it exits 0. Otherwise
// the error says how it ended and the last thing it wrote to stderr. When ctx
// ends, the command and all that it started are killed.
func (s *shellCommand) run(ctx context.Context, payload []byte, vars []string) error {
	out, errs := &lineWriter{to: s.out}, &lineWriter{to: s.err}
	cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
	cmd.Env = append(s.environ[:len(s.environ):len(s.environ)], vars...)
	cmd.Stdin = bytes.NewReader(payload)
	cmd.Stdout, cmd.Stderr = out, errs
	if s.raw != nil {
		cmd.Stdout = s.raw
	}
	next, err := s.openNext(cmd)
	if err != nil {
		return err
	}
	inOwnGroup(cmd)
	cmd.WaitDelay = killDelay // then the shell is killed and its pipes closed

	err = s.wait(cmd)
	refused := next.end()
	out.flush()
	errs.flush()
	switch {
	case ctx.Err() != nil:
		killGroup(cmd) // what ignored SIGTERM, or the shell left behind
		return context.Cause(ctx)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return refused // exit 0; a background child may still have the pipes
	case errs.last != "":
		return fmt.Errorf("%w: %s", err, errs.last)
	}
	return err
}

// wait runs cmd to its end.
func (s *shellCommand) wait(cmd *exec.Cmd) error {
	err := cmd.Start()
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // the command has its own
	}
	if err != nil {
		return err
	}
	defer s.abort.add(func() { killGroup(cmd) })()
	return cmd.Wait()
}

// errLongResult ends a command that printed too much for a result.
var errLongResult = errors.New("what the command printed is too long for a result")

// resultBuffer takes what there is room for. More than that is an error, which ends the
// command.
type resultBuffer struct {
	got  bytes.Buffer
	left int
	full bool
}

func (b *resultBuffer) Write(p []byte) (int, error) {
	if len(p) > b.left {
		b.full = true
		return 0, errLongResult
	}
	b.left -= len(p)
	return b.got.Write(p)
}

// lineWriter passes whole lines on and remembers the last one that is not
// empty. It is written to by one goroutine.
type lineWriter struct {
	to   io.Writer
	part []byte
	last string
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	end := bytes.LastIndexByte(w.part, '\n') + 1
	if end == 0 {
		return len(p), nil
	}
	lines := w.part[:end]
	for line := range strings.Lines(string(lines)) {
		w.last = cmp.Or(strings.TrimSpace(line), w.last)
	}
	_, err := w.to.Write(lines)
	w.part = append(w.part[:0], w.part[end:]...)
	return len(p), err
}

// flush passes on a last line that has no end.
func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		_, _ = w.Write([]byte{'\n'}) // to memory or a terminal: nobody to tell
	}
}

// lockedWriter lets several goroutines write to one stream.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer // guarded by mu
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

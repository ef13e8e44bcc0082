// Package shell runs the commands of `ddq work`: one for each task, with all that it starts in a process group of
// its own.
package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// killDelay is how long a command may take to end after SIGTERM. It is below the second that a worker gives
	// a handler whose task it gave up: the command is gone before the task runs elsewhere, or the process ends.
	killDelay = 700 * time.Millisecond

	// leftDelay is how much longer than the shell its output is read, when a child that it left behind has it.
	leftDelay = 50 * time.Millisecond
)

// Command is one that runs for a task. Commands run at the same time; lines of their output are not mixed
// if Out and Err take a whole Write at a time.
type Command struct {
	Text    string   // for sh -c
	Environ []string // added to by each task
	Out     io.Writer
	Err     io.Writer
	Raw     io.Writer               // takes stdout in place of Out, as it is; nil for none
	Next    func(line []byte) error // takes lines of file descriptor 3; nil for none
	Abort   *Abort                  // may be nil
}

// Run feeds payload to the command and returns nil when it exits 0. Otherwise
// the error says how it ended and the last thing it wrote to stderr. When ctx
// ends, the command and all that it started are killed.
func (s *Command) Run(ctx context.Context, payload []byte, vars []string) error {
	out, errs := &lineWriter{to: s.Out}, &lineWriter{to: s.Err}
	cmd := exec.Command("sh", "-c", s.Text)
	cmd.Env = append(s.Environ[:len(s.Environ):len(s.Environ)], vars...)
	cmd.Stdin = bytes.NewReader(payload)
	var o outputs
	defer o.close()
	to := io.Writer(out)
	if s.Raw != nil {
		to = s.Raw
	}
	next := &nextLines{take: s.Next}
	var err error
	if cmd.Stdout, err = o.open(to); err != nil {
		return err
	}
	if cmd.Stderr, err = o.open(errs); err != nil {
		return err
	}
	if s.Next != nil {
		w, err := o.open(next)
		if err != nil {
			return err
		}
		cmd.ExtraFiles = []*os.File{w}
	}
	InOwnGroup(cmd)
	cmd.WaitDelay = leftDelay // of a payload that nobody reads

	err = s.wait(ctx, cmd, &o)
	out.flush()
	errs.flush()
	refused := next.end()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return refused // exit 0; a background child may still have the pipes
	case errs.last != "":
		return fmt.Errorf("%w: %s", err, errs.last)
	}
	return err
}

// wait runs cmd to its end, and reads what it has written by then. When ctx ends, its group is killed first: no
// process is left then that could keep the output open.
func (s *Command) wait(ctx context.Context, cmd *exec.Cmd, o *outputs) error {
	err := cmd.Start()
	o.started()
	if err != nil {
		o.end()
		return err
	}
	defer s.Abort.add(func() { killGroup(cmd) })()
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	select {
	case err = <-gone:
	case <-ctx.Done():
		EndGroup(cmd)
		kill := time.AfterFunc(killDelay, func() { killGroup(cmd) })
		err = <-gone
		kill.Stop()
	}
	if ctx.Err() != nil {
		killGroup(cmd) // what ignored SIGTERM, or the shell left behind
	}
	o.end()
	return err
}

// outputs are the pipes that a command writes to. Each has a goroutine, which is gone once end returns.
type outputs struct {
	read, write []*os.File
	readers     sync.WaitGroup
	left        atomic.Bool // the command has ended: what is there is read, and no more is waited for
}

// open returns what a command writes to, for it to reach to.
func (o *outputs) open(to io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.read, o.write = append(o.read, r), append(o.write, w)
	o.readers.Go(func() {
		if _, err := io.Copy(to, &outputReader{from: r, of: o}); err != nil {
			_ = r.Close() // which ends a command that goes on writing
		}
	})
	return w, nil
}

// started closes what the command has by itself now.
func (o *outputs) started() {
	for _, w := range o.write {
		_ = w.Close()
	}
	o.write = nil
}

// end reads what the command has written. A child that it left behind may have the pipes for as long as it likes.
func (o *outputs) end() {
	o.left.Store(true)
	for _, r := range o.read {
		_ = r.SetReadDeadline(time.Now().Add(leftDelay))
	}
	o.readers.Wait()
	o.close()
}

func (o *outputs) close() {
	o.started()
	for _, r := range o.read {
		_ = r.Close()
	}
}

// outputReader reads a pipe to its end, or, behind a deadline, what is there.
type outputReader struct {
	from *os.File
	of   *outputs
	late bool
}

func (r *outputReader) Read(p []byte) (int, error) {
	if !r.late {
		n, err := r.from.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !r.of.left.Load() {
			return n, err
		}
		r.late = true
		_ = r.from.SetReadDeadline(time.Time{}) // behind it, not even what is there is read
	}
	return readReady(r.from, p)
}

// readReady reads what there is in a pipe, and does not wait for more: that is its end.
func readReady(f *os.File, p []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	readErr := raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		for errors.Is(err, syscall.EINTR) {
			n, err = syscall.Read(int(fd), p)
		}
		return true
	})
	switch {
	case readErr != nil:
		return 0, readErr
	case n <= 0 && (err == nil || errors.Is(err, syscall.EAGAIN)):
		return 0, io.EOF
	}
	return max(n, 0), err
}

// InOwnGroup gives cmd a process group of its own: an interrupt at the terminal lets it finish.
func InOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// EndGroup asks cmd, and all that it started, to end.
func EndGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// killGroup ends what is left of cmd's group.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}

package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
)

// StopGrace is how long a process has to end by itself before it is killed.
const StopGrace = 10 * time.Second

// Usage is what a process used.
type Usage struct {
	CPU float64 // seconds, with its children and its earlier lives
	RSS int64   // bytes now
}

// CPU is what processes used since their start, in seconds.
func CPU(processes []*Process) (seconds float64) {
	for _, p := range processes {
		seconds += p.Usage().CPU
	}
	return seconds
}

// RSS is what processes occupy, in bytes.
func RSS(processes []*Process) (total int64) {
	for _, p := range processes {
		total += p.Usage().RSS
	}
	return total
}

// Process is a child of the harness. It owns one goroutine per life, which ends
// with the process.
type Process struct {
	Name string
	log  string

	mu   sync.Mutex // guards the rest
	cmd  *exec.Cmd
	past float64 // CPU seconds of earlier lives
	done chan struct{}
	err  error // how the process ended, once done is closed

	killed bool
}

// start begins a life of the process.
func (p *Process) start(cmd *exec.Cmd) error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close() // the child has its own copy
	if cmd.Stdout == nil {
		cmd.Stdout = out
	}
	cmd.Stderr = out
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.done, p.killed = cmd, done, false
	p.mu.Unlock()
	go p.reap(cmd, done)
	return nil
}

// reap waits for the process, so that its CPU is known and no zombie stays.
func (p *Process) reap(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	p.past += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	close(done)
}

// Done is closed when the present life of the process is over.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Running reports whether the process lives.
func (p *Process) Running() bool {
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

// ExitCode is how the last life of the process ended: -1 by a signal, or not yet.
func (p *Process) ExitCode() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.ProcessState.ExitCode()
}

// Killed reports whether Kill ended the last life of the process.
func (p *Process) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// Usage reads what the process and its children used so far.
func (p *Process) Usage() Usage {
	p.mu.Lock()
	past, pid := p.past, p.cmd.Process.Pid
	p.mu.Unlock()
	if !p.Running() {
		return Usage{CPU: past}
	}
	now := readUsage(pid)
	now.CPU += past
	return now
}

// Pid is the id of the process in its present life.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Kill ends the process and its children at once, without a chance to tidy up,
// and waits for it.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	if err := kill(p.cmd.Process); err != nil && p.Running() {
		return err
	}
	<-p.Done()
	return nil
}

// Stop asks the process to end and kills it when it does not in time.
func (p *Process) Stop() error {
	if !p.Running() {
		return nil
	}
	if err := interrupt(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.Done():
		return nil
	case <-time.After(StopGrace):
	}
	dump(p.cmd.Process) // so that its log says where it hangs
	select {
	case <-p.Done():
	case <-time.After(time.Second):
	}
	return p.Kill()
}

// Revive starts the same command again after the process ended.
func (p *Process) Revive() error {
	if p.Running() {
		return fmt.Errorf("start %s again: it still runs", p.Name)
	}
	old := p.cmd
	cmd := exec.Command(old.Path)
	cmd.Args, cmd.Env, cmd.Dir = old.Args, old.Env, old.Dir
	return p.start(cmd)
}

// Become has the next lives run another program in the place of one that the command names, with the same arguments.
func (p *Process) Become(was, path string) {
	for i, arg := range p.cmd.Args {
		if arg == was {
			p.cmd.Args[i] = path
		}
	}
	if p.cmd.Path == was {
		p.cmd.Path = path
	}
}

// WaitReady polls until check passes, the process ends, or ctx does.
func (p *Process) WaitReady(ctx context.Context, check func(context.Context) error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended before it was ready:\n%s", p.Name, p.Tail())
		case <-ctx.Done():
			return fmt.Errorf("%s not ready: %w:\n%s", p.Name, err, p.Tail())
		case <-tick.C:
		}
	}
}

// Tail is the end of what the process printed.
func (p *Process) Tail() string {
	f, err := os.Open(p.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-2048), io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	return string(bytes.TrimSpace(text))
}

// Pause stops the process where it is, with its children, until Resume.
func (p *Process) Pause() error { return suspend(p.cmd.Process, true) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return suspend(p.cmd.Process, false) }

// Dialable returns nil when something listens on addr.
func Dialable(ctx context.Context, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

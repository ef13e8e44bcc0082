package box

import (
	"os"
	"os/exec"
	"syscall"
)

// detach keeps a terminal's Ctrl-C from reaching the child before the harness
// has measured and stopped it, and lets the child die with the harness.
func detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// interrupt asks a process to end.
func interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// kill ends a process and all it started, which are one group.
func kill(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGKILL) }

// dump makes a Go program print its goroutines and end.
func dump(p *os.Process) { _ = p.Signal(syscall.SIGQUIT) }

// suspend stops a process and all it started, or lets them go on.
func suspend(p *os.Process, stop bool) error {
	if stop {
		return syscall.Kill(-p.Pid, syscall.SIGSTOP)
	}
	return syscall.Kill(-p.Pid, syscall.SIGCONT)
}

// OwnCPU is the CPU this process used, in seconds.
func OwnCPU() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(r.Utime) + seconds(r.Stime)
}

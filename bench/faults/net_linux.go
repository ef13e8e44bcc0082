package faults

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// alone runs this program again in a network namespace of its own, where newNetwork
// can make a switch without touching the machine's network.
func alone(ctx context.Context, o Options, args []string) error {
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		return ErrPrivilege
	}
	cmd := exec.CommandContext(ctx, o.Bin, append([]string{"bench", "faults", "--in-namespace"}, args...)...)
	cmd.Stdout, cmd.Stderr = o.Out, o.Log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return errBroken
	}
	return err
}

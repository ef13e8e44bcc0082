package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/bench/faults/stand"
)

// alone runs this program again for one round, in a network namespace of its own, where
// newNetwork can make a switch without touching the machine's network.
func alone(ctx context.Context, t todo) (line Line, err error) {
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		return line, stand.ErrPrivilege
	}
	o := t.o
	cmd := exec.CommandContext(ctx, o.Bin, "bench", "faults", "--in-namespace", "-o", "json",
		"--faults", t.fault.Name, "--store", o.Store, "--seed", strconv.FormatUint(o.Seed, 10), "--for", o.For.String(),
		"--nodes", strconv.Itoa(o.Nodes), "--rate", fmt.Sprint(o.Rate), "--work", o.Work.String(), "--ledger", o.Ledger,
		"--sdks", strings.Join(o.SDKs, ","), "--sdk-dir", o.SDKDir, "--outbox", o.Outbox, "--first-bin", o.First)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, o.Log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	err = cmd.Run()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) {
		return line, fmt.Errorf("%w: %w", stand.ErrPrivilege, err)
	}
	if json.Unmarshal(out.Bytes(), &line) != nil {
		return line, fmt.Errorf("%w: %s", err, strings.TrimSpace(out.String()))
	}
	switch {
	case line.Skipped != "":
		return line, fmt.Errorf("%w%s", stand.ErrPrivilege, strings.TrimPrefix(line.Skipped, stand.ErrPrivilege.Error()))
	case line.Failed != "":
		return line, errors.New(line.Failed)
	}
	return line, nil
}

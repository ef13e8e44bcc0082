package box

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ddq-io/ddq/bench/port"
)

// ErrMissing is wrapped where a program that is needed is not installed.
var ErrMissing = errors.New("not installed")

// Box owns a temporary directory, the processes started in it and their ports. Close
// stops them, last started first, and removes the directory.
type Box struct {
	Dir       string
	processes []*Process
	ports     []*port.Claim
}

// New makes an empty box.
func New() (*Box, error) {
	dir, err := os.MkdirTemp("", "ddq-bench-")
	if err != nil {
		return nil, err
	}
	// A database that runs as another user has to be able to look in.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	return &Box{Dir: dir}, nil
}

// Mkdir makes a directory in the box.
func (b *Box) Mkdir(name string) (string, error) {
	dir := filepath.Join(b.Dir, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// Start runs a command; its output goes to a file in the box. It must be called
// from one goroutine at a time.
func (b *Box) Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Name: name, log: filepath.Join(b.Dir, name+".log")}
	if err := p.start(cmd); err != nil {
		return nil, err
	}
	b.processes = append(b.processes, p)
	return p, nil
}

// Stop stops every process, last started first.
func (b *Box) Stop() error {
	var errs []error
	for i := len(b.processes) - 1; i >= 0; i-- {
		errs = append(errs, b.processes[i].Stop())
	}
	return errors.Join(errs...)
}

// Addr is an address of loopback for a process of the box to listen on, in each of its
// lives. It must be called from one goroutine at a time.
func (b *Box) Addr() (string, error) {
	claim, err := port.New(port.Loopback)
	if err != nil {
		return "", err
	}
	b.ports = append(b.ports, claim)
	return claim.Addr(), nil
}

// Close stops every process, gives their ports back and removes the directory.
func (b *Box) Close() error {
	errs := []error{b.Stop()}
	for _, claim := range b.ports {
		errs = append(errs, claim.Release())
	}
	b.ports = nil
	return errors.Join(append(errs, os.RemoveAll(b.Dir))...)
}

//go:build !linux

package box

import (
	"errors"
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

// interrupt kills where there is no portable way to ask.
func interrupt(p *os.Process) error {
	if err := p.Signal(os.Interrupt); err == nil {
		return nil
	}
	return p.Kill()
}

func kill(p *os.Process) error { return p.Kill() }

func dump(*os.Process) {}

// suspend is not possible here.
func suspend(*os.Process, bool) error { return errors.ErrUnsupported }

// OwnCPU is not known here.
func OwnCPU() float64 { return 0 }
